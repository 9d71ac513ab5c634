#include "index/generation/spill.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "index/generation/edge_spool.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Operation = testing::FakeFileSystem::Operation;

std::vector<std::byte> RandomBytes(std::mt19937_64& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class SpillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(fs_.CreateDirectory("/store"));
    auto space = SpillSpace::Create(fs_, "/store/scratch", "job", 4096);
    ASSERT_OK(space);
    space_ = *std::move(space);
  }

  std::string SpillPath() {
    for (const auto& [path, bytes] : fs_.Files())
      if (path.ends_with(".spill")) return path;
    return {};
  }

  testing::FakeFileSystem fs_;
  std::unique_ptr<SpillSpace> space_;
};

TEST_F(SpillTest, RecordsComeBackWholeAndInOrder) {
  std::mt19937_64 random(testing::TestSeed());
  auto writer = SpillWriter::Create(*space_, 1000);
  ASSERT_OK(writer);
  std::vector<std::byte> all;
  for (int i = 0; i < 200; ++i) {
    const auto record = RandomBytes(random, 1 + random() % (i % 20 == 0 ? 5000 : 100));
    ASSERT_OK(writer->Append(record));
    all.insert(all.end(), record.begin(), record.end());
  }
  const auto file = writer->Finish();
  ASSERT_OK(file);
  for (const bool ahead : {false, true}) {
    auto reader = SpillReader::Open(*file, ahead);
    ASSERT_OK(reader);
    std::vector<std::byte> back;
    while (true) {
      const auto block = reader->Next();
      ASSERT_OK(block);
      if (block->empty()) break;
      back.insert(back.end(), block->begin(), block->end());
    }
    EXPECT_EQ(all, back);
  }
}

TEST_F(SpillTest, DamageIsNoticedWhereverItIs) {
  std::mt19937_64 random(testing::TestSeed());
  auto writer = SpillWriter::Create(*space_, 100);
  ASSERT_OK(writer);
  for (int i = 0; i < 10; ++i) ASSERT_OK(writer->Append(RandomBytes(random, 90)));
  const auto file = writer->Finish();
  ASSERT_OK(file);
  const std::string path = SpillPath();
  const auto read_all = [&]() -> Status {
    RHIZOME_ASSIGN_OR_RETURN(SpillReader reader, SpillReader::Open(*file, false));
    while (true) {
      RHIZOME_ASSIGN_OR_RETURN(const auto block, reader.Next());
      if (block.empty()) return Status::Ok();
    }
  };
  ASSERT_OK(read_all());
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t bit = random() % (file->size_bytes() * 8);
    ASSERT_OK(fs_.FlipBit(path, bit));
    SCOPED_TRACE(bit);
    EXPECT_STATUS(read_all(), kCorruption);
    ASSERT_OK(fs_.FlipBit(path, bit));
  }
  auto bytes = fs_.Files()[path];
  // Two blocks of equal length are exchanged. Each is valid on its own.
  std::swap_ranges(bytes.begin(), bytes.begin() + 98, bytes.begin() + 98);
  ASSERT_OK(fs_.Overwrite(path, bytes));
  EXPECT_STATUS(read_all(), kCorruption);
}

TEST_F(SpillTest, AFailedWriteIsSaidAndNothingHangs) {
  for (const Operation failing : {Operation::kAppend, Operation::kClose}) {
    fs_.FailWhen(
        [=](Operation operation, const Path& path) {
          return operation == failing && path.extension() == ".spill";
        },
        ENOSPC);
    auto space = SpillSpace::Create(fs_, "/store/scratch",
                                    fmt::format("job{}", static_cast<int>(failing)), 4096);
    ASSERT_OK(space);
    auto writer = SpillWriter::Create(**space, 1000);
    ASSERT_OK(writer);
    Status status;
    const std::vector<std::byte> record(900);
    for (int i = 0; i < 100 && status.ok(); ++i) status = writer->Append(record);
    if (status.ok()) status = testing::AsStatus(writer->Finish());
    EXPECT_STATUS(status, kOutOfSpace);
    fs_.ClearFailures();
    EXPECT_OK((*space)->Clear());
  }
}

TEST_F(SpillTest, TheFolderGoesWithTheSpaceAndIsLockedMeanwhile) {
  auto writer = SpillWriter::Create(*space_, 10);
  ASSERT_OK(writer);
  ASSERT_OK(writer->Append(std::vector<std::byte>(100)));
  EXPECT_STATUS(SpillSpace::Create(fs_, "/store/scratch", "job", 4096), kBusy);
  space_.reset();  // while a writer is unfinished
  EXPECT_STATUS(fs_.List("/store/scratch"), kNotFound);
}

TEST_F(SpillTest, EdgesComeBackWithAllColumns) {
  std::mt19937_64 random(testing::TestSeed());
  auto writer = EdgeSpoolWriter::Create(*space_, 64);
  ASSERT_OK(writer);
  writer->edges.attributes = {EdgeAttribute("a"), EdgeAttribute("b")};
  EdgeList expected;
  expected.attributes = writer->edges.attributes;
  for (int e = 0; e < 300; ++e) {
    const bool wide = e >= 150 && random() % 8 == 0;
    for (EdgeList* list : {&expected, &writer->edges}) {
      std::mt19937_64 same(static_cast<std::uint64_t>(e));
      list->src.push_back(static_cast<VertexId>(wide ? same() >> 1 : same() >> 33));
      list->dst.push_back(wide ? -static_cast<VertexId>(same() >> 8) - 1
                               : static_cast<VertexId>(same() >> 32));
      list->type.push_back(static_cast<TypeId>(same()));
      list->weight.push_back(static_cast<float>(same() % 100));
      list->attributes[0].Add(static_cast<std::int64_t>(same()));
      if (e < 200)
        list->attributes[1].Add(static_cast<std::int64_t>(same() % 100));
      else
        list->attributes[1].Add(static_cast<float>(same() % 100) / 8);
    }
    ASSERT_OK(writer->FlushIfFull(writer->edges.size()));
  }
  const auto spool = writer->Finish(writer->edges.size());
  ASSERT_OK(spool);
  EXPECT_EQ(spool->edges, 300U);
  auto reader = EdgeSpoolReader::Open(*spool);
  ASSERT_OK(reader);
  EdgeList back;
  back.attributes = {EdgeAttribute("a"), EdgeAttribute("b")};
  EdgeList block;
  while (true) {
    const auto more = reader->Next(block);
    ASSERT_OK(more);
    if (!*more) break;
    back.src.insert(back.src.end(), block.src.begin(), block.src.end());
    back.dst.insert(back.dst.end(), block.dst.begin(), block.dst.end());
    back.type.insert(back.type.end(), block.type.begin(), block.type.end());
    back.weight.insert(back.weight.end(), block.weight.begin(), block.weight.end());
    for (std::size_t a = 0; a < 2; ++a)
      EXPECT_OK(
          back.attributes[a].AddBytes(block.attributes[a].dtype(), block.attributes[a].bytes()));
  }
  EXPECT_EQ(back.src, expected.src);
  EXPECT_EQ(back.dst, expected.dst);
  EXPECT_EQ(back.type, expected.type);
  EXPECT_EQ(back.weight, expected.weight);
  for (std::size_t a = 0; a < 2; ++a) {
    EXPECT_EQ(back.attributes[a].dtype(), expected.attributes[a].dtype());
    EXPECT_TRUE(std::ranges::equal(back.attributes[a].bytes(), expected.attributes[a].bytes()));
  }
}

// Only the library writes blocks, but a disk may return any bytes.
TEST_F(SpillTest, ABlockOfEdgesThatIsCutOffIsRefused) {
  EdgeList edges;
  edges.src = {1, 2};
  edges.dst = {3, 4};
  edges.weight = {1, 2};
  edges.attributes = {EdgeAttribute("a")};
  edges.attributes[0].Add(std::int64_t{5});
  edges.attributes[0].Add(std::int64_t{6});
  const auto block = EncodeEdges(edges);
  EdgeList back;
  ASSERT_OK(DecodeEdges(block, back));
  for (std::size_t bytes = 0; bytes < block.size(); ++bytes)
    EXPECT_STATUS(DecodeEdges(std::span(block).first(bytes), back), kCorruption);
}

}  // namespace
}  // namespace rhizome
