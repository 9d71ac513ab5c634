#include "index/ids/id_table.h"

#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "testing/testing.h"

// Tests of IdTable: numbers of integer ids against a map, for ids that fill their range, ids with
// gaps, and ids that are far apart or negative.

namespace rhizome {
namespace {

using Edges = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Ids in the order of first occurrence, nodes first, and their numbers.
struct Numbering {
  std::vector<std::int64_t> ids;
  std::unordered_map<std::int64_t, std::int64_t> number;

  std::int64_t Of(std::int64_t id) {
    const auto [found, is_new] = number.emplace(id, static_cast<std::int64_t>(ids.size()));
    if (is_new) ids.push_back(id);
    return found->second;
  }
};

void CheckNumbers(const std::vector<std::int64_t>& nodes, const Edges& edges) {
  IdTable table(IdType::kAuto);
  Numbering expected;
  for (const std::int64_t id : nodes) {
    const bool is_new = expected.number.count(id) == 0;
    EXPECT_EQ(table.AddNode(std::to_string(id)), is_new);
    expected.Of(id);
  }
  for (const auto& [src, dst] : edges) table.AddEdge(src, dst);
  const auto made = std::move(table).Resolve(0, {});
  ASSERT_OK(made);
  ASSERT_EQ(made->kind, ExternalIdKind::kInteger);
  for (std::size_t i = 0; i < made->nodes.size(); ++i)
    EXPECT_EQ(made->nodes[i], static_cast<VertexId>(i));
  ASSERT_EQ(made->src.size(), edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    ASSERT_EQ(made->src[i], expected.Of(edges[i].first)) << i;
    ASSERT_EQ(made->dst[i], expected.Of(edges[i].second)) << i;
  }
  EXPECT_EQ(made->count, expected.ids.size());
  EXPECT_EQ(made->integer_ids, expected.ids);
}

TEST(IdTableTest, IntegersAreNumberedInOrderOfFirstOccurrence) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    // A range that most ids fill, one with gaps, and one that is far too large for a table.
    const std::uint64_t range = round % 3 == 0 ? 40 : round % 3 == 1 ? 400 : 1ULL << 40;
    const std::int64_t first = round % 5 == 0 ? -3 : 0;
    const auto draw = [&] { return first + static_cast<std::int64_t>(random() % range); };
    std::vector<std::int64_t> nodes;
    for (std::uint64_t i = random() % 20; i > 0; --i) nodes.push_back(draw());
    Edges edges = {{first + static_cast<std::int64_t>(range) + 1, draw()}};  // leaves a gap
    for (std::uint64_t i = random() % 200; i > 0; --i) edges.emplace_back(draw(), draw());
    CheckNumbers(nodes, edges);
  }
}

TEST(IdTableTest, IdsThatFillTheirRangeAreTheVertices) {
  IdTable table(IdType::kAuto);
  EXPECT_TRUE(table.AddNode("7"));
  for (std::int64_t id = 0; id < 10; ++id) table.AddEdge(9 - id, id);
  const auto made = std::move(table).Resolve(0, {});
  ASSERT_OK(made);
  EXPECT_EQ(made->kind, ExternalIdKind::kDense);
  EXPECT_EQ(made->count, 10U);
  EXPECT_EQ(made->nodes, std::vector<VertexId>{7});
  EXPECT_EQ(made->src.front(), 9);
}

}  // namespace
}  // namespace rhizome
