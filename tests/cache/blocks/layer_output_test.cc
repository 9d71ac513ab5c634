#include "cache/blocks/layer_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "cache/blocks/inference_log.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

// Tests of LayerOutput, which several threads write at once: the array does not depend on the
// number of writers, rows that are NaN or infinite are counted, and a full disk ends the output
// with an error.

namespace rhizome {
namespace {

constexpr std::uint64_t kRows = 128 * 40 + 7;
constexpr std::uint64_t kOutputDim = 4;

ArrayEntry Entry() {
  return {.name = "out",
          .rows = kRows,
          .dim = kOutputDim,
          .dtype = DataType::kFloat32,
          .layout = ArrayLayout::kChunk,
          .codec = {.kind = CodecKind::kBloscLz4, .level = 5},
          .chunk_rows = 128,
          .array_id = 1,
          .attributes = {}};
}

float ValueOf(std::uint64_t row, std::uint64_t column) {
  return static_cast<float>(row * kOutputDim + column);
}

/// Fills and finishes every chunk that is not done.
Status FillAll(LayerOutput& output) {
  for (std::uint64_t chunk = 0; chunk < output.entry().chunk_count(); ++chunk) {
    if (output.done()[chunk]) continue;
    const std::uint64_t first = chunk * 128;
    const std::uint64_t rows = std::min<std::uint64_t>(128, kRows - first);
    const std::span<float> values = output.Rows(static_cast<Row>(first), rows);
    for (std::uint64_t i = 0; i < values.size(); ++i)
      values[i] = ValueOf(first + i / kOutputDim, i % kOutputDim);
    RHIZOME_RETURN_IF_ERROR(output.FinishChunk(chunk, {}));
  }
  return Status::Ok();
}

TEST(LayerOutputTest, SeveralWritersMakeTheArrayThatOneMakes) {
  std::map<std::string, std::vector<std::byte>> of_one;
  for (const std::uint32_t writers : {1U, 2U, 4U}) {
    testing::FakeFileSystem fs;
    std::map<std::uint64_t, FinishedChunk> told;
    ChunkProgress progress;
    progress.tell = [&](std::uint64_t chunk, const FinishedChunk& finished) {
      EXPECT_TRUE(told.emplace(chunk, finished).second);
      return Status::Ok();
    };
    auto output = LayerOutput::Create(fs, "/out", Entry(), std::move(progress), writers);
    ASSERT_OK(output);
    ASSERT_OK(FillAll(**output));
    const auto written = (*output)->Finish();
    ASSERT_OK(written);
    EXPECT_EQ(told.size(), (*output)->entry().chunk_count());
    std::uint64_t bytes = 0;
    for (const auto& [chunk, finished] : told) bytes += finished.file.size_bytes;
    EXPECT_EQ((*output)->bytes_written(), bytes);
    if (writers == 1) of_one = fs.Files();
    EXPECT_EQ(fs.Files(), of_one) << writers << " writers";
    const auto array = ChunkArray::Open(fs, "/out", written->arrays.front(), written->files);
    ASSERT_OK(array);
    std::vector<float> row(kOutputDim);
    ASSERT_OK((*array)->ReadRows(kRows - 1, 1, std::as_writable_bytes(std::span(row))));
    EXPECT_EQ(row.back(), ValueOf(kRows - 1, kOutputDim - 1));
  }
}

// LayerOutput counts rows that are NaN or infinite, including rows of chunks that an earlier run
// wrote, and reports the count with each chunk.
TEST(LayerOutputTest, RowsThatAreNotFiniteAreCounted) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  testing::FakeFileSystem fs;
  std::map<std::uint64_t, FinishedChunk> told;
  ChunkProgress progress;
  progress.tell = [&](std::uint64_t chunk, const FinishedChunk& finished) {
    const auto decoded = DecodeFinished(EncodeFinished(1, chunk, finished));
    EXPECT_OK(decoded);
    told.emplace(chunk, decoded->finished);
    return Status::Ok();
  };
  auto output = LayerOutput::Create(fs, "/out", Entry(), std::move(progress), 2);
  ASSERT_OK(output);
  for (std::uint64_t chunk = 0; chunk < Entry().chunk_count(); ++chunk) {
    const std::uint64_t first = chunk * 128;
    const std::uint64_t rows = std::min<std::uint64_t>(128, kRows - first);
    const std::span<float> values = (*output)->Rows(static_cast<Row>(first), rows);
    std::fill(values.begin(), values.end(), 1.0F);
    if (chunk == 3) values[0] = kNaN;
    if (chunk == 5) values[1 * kOutputDim + 3] = values[1 * kOutputDim] = kInfinity;  // one row
    if (chunk == 5) values[values.size() - 1] = -kInfinity;
    if (chunk == 40) values[2] = kNaN;  // the last chunk, which is short
    ASSERT_OK((*output)->FinishChunk(chunk, {}));
  }
  ASSERT_OK((*output)->Finish());
  EXPECT_EQ((*output)->non_finite_rows(), 4u);
  EXPECT_EQ(told[3].non_finite_rows, 1u);
  EXPECT_EQ(told[4].non_finite_rows, 0u);
  EXPECT_EQ(told[5].non_finite_rows, 2u);
  output->reset();
  told.erase(7);
  auto again = LayerOutput::Create(fs, "/out", Entry(), {.finished = told, .tell = {}}, 1);
  ASSERT_OK(again);
  std::fill_n((*again)->Rows(7 * 128, 128).begin(), 128 * kOutputDim, kNaN);
  ASSERT_OK((*again)->FinishChunk(7, {}));
  ASSERT_OK((*again)->Finish());
  EXPECT_EQ((*again)->non_finite_rows(), 4u + 128);
}

// The disk becomes full after a random number of operations. The error is reported, no thread waits
// forever, and every chunk that was reported as finished is on disk.
TEST(LayerOutputTest, AnErrorOfAnyWriterEndsTheOutputAndWhatWasToldOfStays) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 40; ++round) {
    testing::FakeFileSystem fs;
    std::map<std::uint64_t, FinishedChunk> told;
    ChunkProgress progress;
    progress.tell = [&](std::uint64_t chunk, const FinishedChunk& finished) {
      told.emplace(chunk, finished);
      return Status::Ok();
    };
    const std::uint32_t writers = 1 + static_cast<std::uint32_t>(round) % 4;
    auto output = LayerOutput::Create(fs, "/out", Entry(), std::move(progress), writers);
    ASSERT_OK(output);
    fs.FailAt(fs.operation_count() + random() % 160, ENOSPC, /*sticky=*/true);
    Status status = FillAll(**output);
    if (status.ok())
      status = (*output)->Finish().has_value() ? Status::Ok() : (*output)->Complete();
    output->reset();
    fs.ClearFailures();
    if (status.ok()) {
      EXPECT_EQ(told.size(), Entry().chunk_count());
      continue;
    }
    EXPECT_EQ(status.code(), StatusCode::kOutOfSpace) << status.ToString();
    auto again = LayerOutput::Create(fs, "/out", Entry(), {.finished = told, .tell = {}}, writers);
    ASSERT_OK(again);
    EXPECT_EQ((*again)->adopted_chunks(), told.size());
    ASSERT_OK(FillAll(**again));
    ASSERT_OK((*again)->Finish());
  }
}

}  // namespace
}  // namespace rhizome
