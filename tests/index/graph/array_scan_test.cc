#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::UpdateModel;
using testing::WithUpdatedGraphs;

constexpr std::uint64_t kDim = UpdateModel::kDim;

std::vector<float> RowOfVertex(const Graph& graph, VertexId vertex) {
  std::vector<float> row(kDim);
  EXPECT_OK(graph.ReadRows("feat", std::span(&vertex, 1), std::as_writable_bytes(std::span(row))));
  return row;
}

TEST(ArrayScanTest, GivesEveryLiveVertexItsRowOnce) {
  std::mt19937_64 rng(testing::TestSeed());
  WithUpdatedGraphs(rng, [&](const Graph& graph) {
    auto scan = ArrayScan::Open(graph, "feat");
    ASSERT_OK(scan);
    const std::uint64_t most = 1 + rng() % 40;
    std::vector<VertexId> seen;
    ArrayScan::Block block;
    while (true) {
      const auto more = scan->Next(most, block);
      ASSERT_OK(more);
      if (!*more) break;
      ASSERT_LE(block.vertices.size(), most);
      ASSERT_EQ(block.rows.size(), block.vertices.size() * kDim * sizeof(float));
      for (std::size_t i = 0; i < block.vertices.size(); ++i) {
        const std::vector<float> expected = RowOfVertex(graph, block.vertices[i]);
        EXPECT_EQ(std::memcmp(&block.rows[i * kDim * sizeof(float)], expected.data(),
                              kDim * sizeof(float)),
                  0);
        seen.push_back(block.vertices[i]);
      }
    }
    EXPECT_TRUE(block.vertices.empty());
    std::vector<VertexId> live;
    for (std::uint64_t v = 0; v < graph.vertex_count(); ++v)
      if (!graph.IsDeleted(static_cast<VertexId>(v))) live.push_back(static_cast<VertexId>(v));
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, live);
    EXPECT_STATUS(ArrayScan::Open(graph, "none"), kNotFound);
  });
}

double CosineOf(const std::vector<float>& a, const std::vector<float>& b) {
  double dot = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return dot / std::sqrt(aa * bb);
}

TEST(NearestTest, IsWhatComparingAllRowsGives) {
  std::mt19937_64 rng(testing::TestSeed());
  const JobControl control;
  WithUpdatedGraphs(rng, [&](const Graph& graph) {
    const std::vector<float> query = {1, -2, 0.5};
    std::vector<ScoredVertex> expected;
    for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
      const auto vertex = static_cast<VertexId>(v);
      const double score = CosineOf(query, RowOfVertex(graph, vertex));
      if (!graph.IsDeleted(vertex) && !std::isnan(score)) expected.push_back({vertex, score});
    }
    std::sort(expected.begin(), expected.end(),
              [](const auto& a, const auto& b) { return a.score > b.score; });
    const std::uint64_t k = rng() % 12;
    const auto found = NearestRows(graph, "feat", query, k, control);
    ASSERT_OK(found);
    ASSERT_EQ(found->size(), std::min<std::uint64_t>(k, expected.size()));
    for (std::size_t i = 0; i < found->size(); ++i)
      EXPECT_NEAR((*found)[i].score, expected[i].score, 1e-9);
  });
}

TEST(NearestTest, LeavesTheVertexItselfOut) {
  std::mt19937_64 rng(testing::TestSeed());
  const JobControl control;
  WithUpdatedGraphs(rng, [&](const Graph& graph) {
    const auto vertex = static_cast<VertexId>(rng() % graph.vertex_count());
    const std::vector<float> row = RowOfVertex(graph, vertex);
    const auto found = NearestVertices(graph, "feat", vertex, 1000, control);
    if (std::all_of(row.begin(), row.end(), [](float x) { return x == 0; })) {
      EXPECT_STATUS(found, kInvalidArgument);
      EXPECT_STATUS(NearestRows(graph, "feat", row, 1, control), kInvalidArgument);
      return;
    }
    ASSERT_OK(found);
    for (const ScoredVertex& scored : *found) EXPECT_NE(scored.vertex, vertex);
    EXPECT_STATUS(NearestRows(graph, "feat", std::span(row).first(1), 1, control),
                  kInvalidArgument);
    EXPECT_STATUS(NearestRows(graph, "none", row, 1, control), kNotFound);
    JobControl cancelled;
    cancelled.Cancel();
    EXPECT_STATUS(NearestRows(graph, "feat", row, 1, cancelled), kInterrupted);
  });
}

}  // namespace
}  // namespace rhizome
