#include "tools/import/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <set>

#include "index/input/npy.h"
#include "testing/testing.h"

// Tests of the graph generators: sizes and distributions of RMAT and planted graphs, features with
// a weak signal, reproducibility, refused options and cancellation.

namespace rhizome {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

template <typename T>
std::vector<T> ReadArray(const Path& path, std::uint64_t& rows, std::uint64_t& dim) {
  auto reader = NpyReader::Open(FileSystem::Posix(), path);
  EXPECT_OK(reader);
  rows = (*reader)->header().rows();
  dim = (*reader)->header().dim();
  std::vector<T> values(rows * dim);
  EXPECT_OK((*reader)->Read(std::as_writable_bytes(std::span(values))));
  EXPECT_OK((*reader)->Finish());
  return values;
}

std::vector<Pair> ReadEdges(const Path& folder) {
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  const auto values = ReadArray<std::int64_t>(folder / "edges.npy", rows, dim);
  EXPECT_EQ(dim, 2U);
  std::vector<Pair> edges;
  for (std::size_t i = 0; i < values.size(); i += 2) edges.emplace_back(values[i], values[i + 1]);
  return edges;
}

std::string Bytes(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Node {
  std::int64_t id = 0;
  std::int64_t label = 0;
  std::string split;
};
std::vector<Node> ReadNodes(const Path& folder) {
  std::vector<Node> nodes;
  std::ifstream file(folder / "nodes.tsv");
  for (Node node; file >> node.id >> node.label >> node.split;) nodes.push_back(node);
  return nodes;
}

Result<std::vector<GeneratedFile>> Generate(const Path& folder, const GenerateOptions& options) {
  return GenerateGraph(FileSystem::Posix(), folder, options, JobControl());
}

TEST(GenerateTest, RmatHasItsSizeAndTheSharesOfItsQuarters) {
  testing::TempDir dir;
  GenerateOptions options;
  options.scale = 12;
  options.seed = testing::TestSeed();
  const auto files = Generate(dir.path(), options);
  ASSERT_OK(files);
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ((*files)[0].rows, 16U << 12);
  EXPECT_EQ((*files)[0].dtype, "int64");
  EXPECT_EQ((*files)[1].rows, 1U << 12);
  const auto edges = ReadEdges(dir.path());
  ASSERT_EQ(edges.size(), 16U << 12);
  double quarter[2][2] = {};
  const std::int64_t half = 1 << 11;
  for (const auto& [src, dst] : edges) {
    ASSERT_TRUE(src >= 0 && src < 2 * half && dst >= 0 && dst < 2 * half);
    quarter[src >= half][dst >= half] += 1.0 / static_cast<double>(edges.size());
  }
  EXPECT_NEAR(quarter[0][0], 0.57, 0.01);
  EXPECT_NEAR(quarter[0][1], 0.19, 0.01);
  EXPECT_NEAR(quarter[1][0], 0.19, 0.01);
  EXPECT_NEAR(quarter[1][1], 0.05, 0.01);
}

TEST(GenerateTest, SameSeedSameBytesOtherSeedOthers) {
  for (const GraphKind kind : {GraphKind::kRmat, GraphKind::kPlanted}) {
    testing::TempDir dir;
    GenerateOptions options{.kind = kind, .scale = 8, .permute = true, .dim = 5};
    ASSERT_OK(Generate(dir / "a", options));
    ASSERT_OK(Generate(dir / "b", options));
    options.seed = 2;
    ASSERT_OK(Generate(dir / "c", options));
    for (const char* name : {"edges.npy", "nodes.tsv", "features.npy"})
      EXPECT_EQ(Bytes(dir / "a" / name), Bytes(dir / "b" / name)) << name;
    for (const char* name : {"edges.npy", "features.npy"})
      EXPECT_NE(Bytes(dir / "a" / name), Bytes(dir / "c" / name)) << name;
  }
}

TEST(GenerateTest, SimpleEdgesAreTheDistinctOnesWithoutLoops) {
  for (const bool undirected : {false, true}) {
    testing::TempDir dir;
    GenerateOptions options;
    options.scale = 7;
    options.undirected = undirected;
    ASSERT_OK(Generate(dir / "all", options));
    options.simple = true;
    ASSERT_OK(Generate(dir / "simple", options));
    std::set<Pair> expected;
    for (const Pair& edge : ReadEdges(dir / "all")) {
      if (undirected) {
        EXPECT_LE(edge.first, edge.second);
      }
      if (edge.first != edge.second) expected.insert(edge);
    }
    const auto simple = ReadEdges(dir / "simple");
    EXPECT_EQ(simple, std::vector<Pair>(expected.begin(), expected.end()));
  }
}

TEST(GenerateTest, PermuteRenamesVerticesOnly) {
  testing::TempDir dir;
  GenerateOptions options;
  options.scale = 8;
  ASSERT_OK(Generate(dir / "plain", options));
  options.permute = true;
  ASSERT_OK(Generate(dir / "permuted", options));
  const auto plain = ReadEdges(dir / "plain");
  const auto permuted = ReadEdges(dir / "permuted");
  ASSERT_EQ(plain.size(), permuted.size());
  std::vector<std::int64_t> name(256, -1);
  std::set<std::int64_t> used;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    for (const auto& [from, to] :
         {Pair(plain[i].first, permuted[i].first), Pair(plain[i].second, permuted[i].second)}) {
      auto& known = name[static_cast<std::size_t>(from)];
      if (known < 0) {
        EXPECT_TRUE(used.insert(to).second);
        known = to;
      }
      ASSERT_EQ(known, to);
    }
  }
}

// With homophily h and c communities of equal size, h + (1 - h) / c of the edges are inside a
// community.
TEST(GenerateTest, PlantedGraphHasItsHomophilyClassesAndSplit) {
  for (const bool permute : {false, true}) {
    testing::TempDir dir;
    GenerateOptions options{
        .kind = GraphKind::kPlanted, .scale = 12, .permute = permute, .classes = 5};
    ASSERT_OK(Generate(dir.path(), options));
    const auto nodes = ReadNodes(dir.path());
    ASSERT_EQ(nodes.size(), 1U << 12);
    std::vector<double> share(5);
    double train = 0;
    for (const Node& node : nodes) {
      share[static_cast<std::size_t>(node.label)] += 1.0 / 4096;
      train += node.split == "train" ? 1.0 / 4096 : 0;
    }
    for (const double of_class : share) EXPECT_NEAR(of_class, 0.2, 0.01);
    EXPECT_NEAR(train, 0.6, 0.04);
    double inside = 0;
    const auto edges = ReadEdges(dir.path());
    for (const auto& [src, dst] : edges)
      inside +=
          nodes[static_cast<std::size_t>(src)].label == nodes[static_cast<std::size_t>(dst)].label;
    EXPECT_NEAR(inside / static_cast<double>(edges.size()), 0.7 + 0.3 / 5, 0.02);
  }
}

// The means of two classes differ visibly over many rows, but a single row does not reveal its
// class: the nearest mean is right more often than chance, but not always.
TEST(GenerateTest, PlantedFeaturesCarryAWeakSignal) {
  testing::TempDir dir;
  GenerateOptions options{
      .kind = GraphKind::kPlanted, .scale = 13, .permute = true, .dim = 32, .classes = 4};
  ASSERT_OK(Generate(dir.path(), options));
  const auto nodes = ReadNodes(dir.path());
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  const auto x = ReadArray<float>(dir / "features.npy", rows, dim);
  ASSERT_EQ(rows, nodes.size());
  ASSERT_EQ(dim, 32U);
  std::vector<std::vector<double>> mean(4, std::vector<double>(dim));
  std::vector<double> count(4);
  for (std::size_t v = 0; v < rows; ++v) {
    const auto label = static_cast<std::size_t>(nodes[v].label);
    count[label] += 1;
    for (std::size_t c = 0; c < dim; ++c) mean[label][c] += x[v * dim + c];
  }
  for (std::size_t k = 0; k < 4; ++k)
    for (double& value : mean[k]) value /= count[k];
  double right = 0;
  for (std::size_t v = 0; v < rows; ++v) {
    const auto distance = [&](std::size_t k) {
      double sum = 0;
      for (std::size_t c = 0; c < dim; ++c) sum += std::pow(x[v * dim + c] - mean[k][c], 2);
      return sum;
    };
    std::size_t best = 0;
    for (std::size_t k = 1; k < 4; ++k)
      if (distance(k) < distance(best)) best = k;
    right += best == static_cast<std::size_t>(nodes[v].label) ? 1 : 0;
  }
  EXPECT_GT(right / static_cast<double>(rows), 0.35);
  EXPECT_LT(right / static_cast<double>(rows), 0.80);
}

TEST(GenerateTest, FeatureNoiseHasMeanZeroAndDeviationOne) {
  testing::TempDir dir;
  const auto file = GenerateFeatures(dir / "x.npy", 1000, 50, testing::TestSeed(), JobControl());
  ASSERT_OK(file);
  EXPECT_EQ(file->dtype, "float32");
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  const auto x = ReadArray<float>(dir / "x.npy", rows, dim);
  EXPECT_EQ(rows, 1000U);
  EXPECT_EQ(dim, 50U);
  double sum = 0;
  double squares = 0;
  for (const float value : x) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / 50000, 0, 0.03);
  EXPECT_NEAR(squares / 50000, 1, 0.03);
  EXPECT_STATUS(GenerateFeatures(dir / "y.npy", 10, 0, 1, JobControl()), kInvalidArgument);
}

TEST(GenerateTest, OptionsOutOfRangeAreRefusedAndNothingIsWritten) {
  testing::TempDir dir;
  std::vector<GenerateOptions> bad(7);
  bad[0].scale = 0;
  bad[1].scale = 33;
  bad[2].edge_factor = 0;
  bad[3] = {.kind = GraphKind::kPlanted, .classes = 1};
  bad[4] = {.kind = GraphKind::kPlanted, .scale = 2, .classes = 5};
  bad[5] = {.kind = GraphKind::kPlanted, .homophily = 1.5};
  bad[6] = {.kind = GraphKind::kPlanted, .feature_signal = std::nan("")};
  for (const GenerateOptions& options : bad)
    EXPECT_STATUS(Generate(dir / "out", options), kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(dir / "out"));
}

TEST(GenerateTest, CancelLeavesNothing) {
  testing::TempDir dir;
  JobControl control;
  control.Cancel();
  EXPECT_STATUS(GenerateGraph(FileSystem::Posix(), dir / "out", {}, control), kInterrupted);
  EXPECT_FALSE(std::filesystem::exists(dir / "out"));
}

}  // namespace
}  // namespace rhizome
