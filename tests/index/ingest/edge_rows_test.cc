#include "index/ingest/edge_rows.h"

#include <fmt/format.h>

#include <limits>
#include <random>

#include "rhizome/ingest.h"
#include "testing/compressed.h"
#include "testing/store_contents.h"

namespace rhizome {
namespace {

using testing::NpyBytes;
using testing::WriteInput;

// Edges between 40 vertices in two files, with attribute values in further files.
class EdgeRowsTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kDim = 64;  // so wide that a spilled block holds few edges

  EdgeRowsTest() {
    const std::size_t first = random_() % 1250;
    for (std::size_t e = 0; e < kEdges; ++e) {
      ends_.push_back(static_cast<std::int64_t>(random_() % 40));
      ends_.push_back(static_cast<std::int64_t>(random_() % 40));
      for (std::size_t c = 0; c < kDim; ++c)
        feat_.push_back(static_cast<double>(random_() % 4096) / 8);
      time_.push_back(static_cast<std::int32_t>(random_() % 1000));
    }
    const auto middle = ends_.begin() + static_cast<std::ptrdiff_t>(2 * first);
    WriteEdges("a.npy", {ends_.begin(), middle});
    WriteEdges("b.npy", {middle, ends_.end()});
    WriteInput(dir_ / "feat.npy", NpyBytes("<f8", fmt::format("{}, {}", kEdges, kDim), feat_));
    WriteInput(dir_ / "time.npy", NpyBytes("<i4", fmt::format("{},", kEdges), time_));
    options_.edges = {dir_ / "a.npy", dir_ / "b.npy"};
    options_.vertices = 40;
    options_.build.partition = {.kind = PartitionerKind::kHdrf, .partitions = 3};
    options_.edge_arrays = {Array("feat", kDim, DataType::kFloat32),
                            Array("time", 1, DataType::kInt64)};
  }

  void WriteEdges(const std::string& name, const std::vector<std::int64_t>& ends) {
    WriteInput(dir_ / name, NpyBytes("<i8", fmt::format("{}, 2", ends.size() / 2), ends));
  }

  EdgeArrayFile Array(const std::string& name, std::uint64_t dim, DataType dtype) {
    ArrayFile file;
    file.name = name;
    file.path = dir_ / (name + ".npy");
    file.dtype = DataType::kFloat32;  // float64 can be read
    return {.name = name, .dim = dim, .dtype = dtype, .files = {file}};
  }

  Status Run(const std::string& name, bool spilled) {
    options_.spill = spilled ? IngestOptions::Spill::kAlways : IngestOptions::Spill::kNever;
    options_.memory_bytes = spilled ? std::uint64_t{1} << 22 : 0;
    const JobControl control;
    const auto report = Ingest(FileSystem::Posix(), dir_ / name, options_, control);
    return report ? Status::Ok() : report.error();
  }

  template <typename T, typename From>
  std::vector<std::pair<testing::NamedEdge, std::vector<T>>> Expected(const std::vector<From>& rows,
                                                                      std::size_t dim) const {
    std::vector<std::pair<testing::NamedEdge, std::vector<T>>> all;
    for (std::size_t e = 0; e < kEdges; ++e) {
      const auto row = rows.begin() + static_cast<std::ptrdiff_t>(e * dim);
      std::vector<T> values;
      std::transform(row, row + static_cast<std::ptrdiff_t>(dim), std::back_inserter(values),
                     [](From value) { return static_cast<T>(value); });
      const testing::NamedEdge edge(ends_[2 * e], "edge", ends_[2 * e + 1]);
      all.emplace_back(edge, values);
      if (options_.undirected && ends_[2 * e] != ends_[2 * e + 1])
        all.emplace_back(testing::NamedEdge(ends_[2 * e + 1], "edge", ends_[2 * e]), values);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  static constexpr std::size_t kEdges = 2500;
  testing::TempDir dir_;
  std::mt19937_64 random_{testing::TestSeed()};
  std::vector<std::int64_t> ends_;
  std::vector<double> feat_;
  std::vector<std::int32_t> time_;
  IngestOptions options_;
};

TEST_F(EdgeRowsTest, EveryEdgeKeepsItsRow) {
  for (const bool undirected : {false, true}) {
    options_.undirected = undirected;
    for (const bool spilled : {false, true}) {
      const std::string name = fmt::format("{}{}.rz", undirected, spilled);
      ASSERT_OK(Run(name, spilled));
      const auto open = testing::OpenStoreGraph(dir_ / name);
      ASSERT_OK(open);
      EXPECT_TRUE(testing::EdgeRowsOf<float>(*open, "feat") == Expected<float>(feat_, kDim));
      EXPECT_TRUE(testing::EdgeRowsOf<std::int64_t>(*open, "time") ==
                  Expected<std::int64_t>(time_, 1));
    }
  }
}

TEST_F(EdgeRowsTest, ArraysThatDoNotFitAreRefused) {
  const auto refuse = [&](const EdgeArrayFile& array, std::string_view part) {
    options_.edge_arrays = {array};
    const Status status = Run("g.rz", false);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << part;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_FALSE(std::filesystem::exists(dir_ / "g.rz"));
  };
  refuse(Array("feat", kDim - 1, DataType::kFloat32), "63 columns of float32 are expected");
  refuse(Array("feat", kDim, DataType::kInt64), "64 columns of int64");
  refuse(Array("feat", 0, DataType::kFloat32), "no columns");
  refuse(Array("feat", kDim, DataType::kFloat16), "not int64, float32 or float64");
  refuse(Array("feat", 1 << 17, DataType::kFloat32), "at most 65536 values");
  refuse(Array("dst", 1, DataType::kFloat32), "the name is in use");
  refuse(Array("time", 1, DataType::kFloat32), "one int64 per edge");
  EdgeArrayFile thrice = Array("feat", kDim, DataType::kFloat32);
  thrice.files.resize(3);
  refuse(thrice, "3 files of rows for 2 edge files");
  const std::vector<float> bad(kEdges, std::numeric_limits<float>::infinity());
  WriteInput(dir_ / "weight.npy", NpyBytes("<f4", fmt::format("{},", kEdges), bad));
  refuse(Array("weight", 1, DataType::kFloat32), "row 0: the weight inf");
  std::vector<double> tiny(kEdges, 1);
  tiny[7] = 0;  // remains 0
  WriteInput(dir_ / "weight.npy", NpyBytes("<f8", fmt::format("{},", kEdges), tiny));
  options_.edge_arrays = {Array("weight", 1, DataType::kFloat32)};
  EXPECT_OK(Run("zero.rz", false));
  tiny[8] = -1e-180;
  WriteInput(dir_ / "weight.npy", NpyBytes("<f8", fmt::format("{},", kEdges), tiny));
  refuse(Array("weight", 1, DataType::kFloat32), "row 8: -1e-180 is not 0, but too small");
  EdgeArrayFile text = Array("time", 1, DataType::kInt64);
  text.files[0].path = dir_ / "time.tsv";
  WriteInput(text.files[0].path, "1\n2\n");
  refuse(text, "time.tsv' is neither a .npy file nor the folder of a Zarr v3 array");
}

}  // namespace
}  // namespace rhizome
