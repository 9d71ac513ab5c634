#include "index/generation/reorder.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "index/base/vertex_column.h"
#include "index/topology/degrees.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

struct Columns {
  std::vector<PartitionId> owner;
  std::vector<TypeId> type;
  std::vector<std::uint64_t> degree;
  Degrees degrees = {};  // the same degrees
  ReorderInput input() const { return {owner, type, &degrees}; }
};

Columns RandomColumns(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Columns columns;
  for (std::size_t v = 0; v < size; ++v) {
    columns.owner.push_back(static_cast<PartitionId>(random() % 7));
    columns.type.push_back(static_cast<TypeId>(random() % 3));
    // Many degrees are equal, and some are huge.
    columns.degree.push_back(random() % 10 == 0 ? random() : random() % 5);
  }
  columns.degrees = Degrees(columns.degree);
  return columns;
}

// Computes the order by comparing the keys of its definition.
std::vector<VertexId> ByComparison(const Columns& columns, OrderKind kind) {
  std::vector<VertexId> order(columns.owner.size());
  std::iota(order.begin(), order.end(), VertexId{0});
  const auto key = [&](VertexId vertex) {
    const auto v = static_cast<std::size_t>(vertex);
    const TypeId type = columns.type.empty() ? TypeId{0} : columns.type[v];
    const bool grouped = kind == OrderKind::kPds || kind == OrderKind::kPs;
    const bool by_degree = kind == OrderKind::kPds || kind == OrderKind::kDegree;
    return std::make_tuple(grouped ? columns.owner[v] : 0, grouped ? type : 0,
                           by_degree ? ~columns.degree[v] : 0, vertex);
  };
  std::sort(order.begin(), order.end(), [&](VertexId a, VertexId b) { return key(a) < key(b); });
  return order;
}

/// Returns the order of the vertices, which must be valid.
std::vector<VertexId> OrderOf(const Columns& columns, OrderKind kind, std::uint64_t seed) {
  const auto order = OrderVertices(columns.input(), kind, seed);
  EXPECT_OK(order);
  std::vector<VertexId> vertices(order->size());
  for (std::size_t row = 0; row < vertices.size(); ++row) vertices[row] = (*order)[row];
  return vertices;
}

TEST(ReorderTest, NamesAreReadBack) {
  for (const auto kind : {OrderKind::kPds, OrderKind::kPs, OrderKind::kNatural, OrderKind::kDegree,
                          OrderKind::kRandom}) {
    EXPECT_EQ(ParseOrder(OrderName(kind)), kind);
    EXPECT_EQ(GroupsByOwner(kind), kind == OrderKind::kPds || kind == OrderKind::kPs);
  }
  EXPECT_EQ(ParseOrder("alphabetical"), std::nullopt);
}

TEST(ReorderTest, OrdersEqualASortByTheirKeys) {
  const std::uint64_t seed = testing::TestSeed();
  for (const std::size_t size : {0, 1, 2, 100, 5000}) {
    Columns columns = RandomColumns(size, seed + size);
    for (int untyped = 0; untyped < 2; ++untyped) {
      if (untyped == 1) columns.type.clear();
      for (const auto kind :
           {OrderKind::kPds, OrderKind::kPs, OrderKind::kNatural, OrderKind::kDegree}) {
        EXPECT_EQ(OrderOf(columns, kind, 1), ByComparison(columns, kind)) << OrderName(kind);
      }
    }
  }
}

TEST(ReorderTest, ColumnsOfDifferentLengthsAreRefused) {
  const Columns columns = RandomColumns(20, 1);
  const Degrees short_one(std::span(columns.degree).first(19));
  const Degrees none;
  for (const auto kind : {OrderKind::kPds, OrderKind::kPs, OrderKind::kNatural, OrderKind::kDegree,
                          OrderKind::kRandom}) {
    for (int wrong = 0; wrong < 4; ++wrong) {
      ReorderInput input = columns.input();
      if (wrong == 0) input.degree = &short_one;
      if (wrong == 1) input.type = input.type.first(1);
      if (wrong == 2) input.owner = input.owner.first(5);
      if (wrong == 3) input.degree = &none;
      const auto order = OrderVertices(input, kind, 1);
      ASSERT_FALSE(order);
      EXPECT_EQ(order.error().code(), StatusCode::kInvalidArgument);
    }
  }
}

TEST(ReorderTest, RandomIsAPermutationThatDependsOnTheSeed) {
  const Columns columns = RandomColumns(3000, testing::TestSeed());
  const std::vector<VertexId> first = OrderOf(columns, OrderKind::kRandom, 1);
  EXPECT_EQ(OrderOf(columns, OrderKind::kRandom, 1), first);
  EXPECT_NE(OrderOf(columns, OrderKind::kRandom, 2), first);
  std::vector<VertexId> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::vector<VertexId> all(3000);
  std::iota(all.begin(), all.end(), VertexId{0});
  EXPECT_EQ(sorted, all);
}

}  // namespace
}  // namespace rhizome
