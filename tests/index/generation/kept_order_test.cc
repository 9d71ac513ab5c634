#include "index/generation/kept_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "index/base/memory_sink.h"
#include "index/topology/degrees.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

/// Vertices with owners, types and degrees, and an order of the first `before` vertices, in which
/// some of them had other owners and degrees.
struct OrderChange {
  std::vector<PartitionId> owner;
  std::vector<TypeId> type;
  std::vector<std::uint64_t> degree;
  std::vector<PartitionId> old_owner;
  std::optional<VertexOrder> before;
  Degrees degrees;  // see input

  ReorderInput input() {
    degrees = Degrees(degree);
    return {.owner = owner, .type = type, .degree = &degrees};
  }
  auto GroupOf(VertexId v) const {
    const auto i = static_cast<std::size_t>(v);
    return std::tuple(owner[i], type.empty() ? TypeId{0} : type[i]);
  }
  bool Stays(VertexId v) const {
    const auto i = static_cast<std::size_t>(v);
    return i < old_owner.size() && old_owner[i] == owner[i];
  }
};

OrderChange DrawOfKeptOrder(std::mt19937_64& rng) {
  OrderChange change;
  const std::size_t before = rng() % 60;
  const std::size_t after = before + rng() % 20;
  const auto partitions = static_cast<std::uint32_t>(1 + rng() % 4);
  const auto types = static_cast<std::uint32_t>(1 + rng() % 3);
  const std::uint64_t moved_of_ten = rng() % 11;
  std::vector<std::uint64_t> old_degree;
  for (std::size_t v = 0; v < after; ++v) {
    change.owner.push_back(static_cast<PartitionId>(rng() % partitions));
    if (types > 1) change.type.push_back(static_cast<TypeId>(rng() % types));
    change.degree.push_back(rng() % 9);
    if (v >= before) continue;
    const bool moved = rng() % 10 < moved_of_ten;
    change.old_owner.push_back(moved ? static_cast<PartitionId>(rng() % partitions)
                                     : change.owner.back());
    old_degree.push_back(moved ? rng() % 9 : change.degree.back());
  }
  const auto old_types = std::span(change.type).first(types > 1 ? before : 0);
  const Degrees old_degrees(old_degree);
  const auto order =
      OrderVertices({.owner = change.old_owner, .type = old_types, .degree = &old_degrees},
                    OrderKind::kPds, 1)
          .value();
  MemorySink sink;
  EXPECT_OK(VertexOrder::Write(sink, StoreId{},
                               {.vertex_of_row = order,
                                .owner_of_vertex = change.old_owner,
                                .type_of_vertex = old_types,
                                .partitions = partitions,
                                .vertex_types = types}));
  auto file = SectionFile::Parse(sink.Take(), "order.ord", FileKind::kOrder, StoreId{});
  EXPECT_OK(file);
  auto parsed = VertexOrder::Parse(*std::move(file), before, partitions, types);
  EXPECT_OK(parsed);
  change.before.emplace(*std::move(parsed));
  return change;
}

TEST(KeptOrderTest, OldRowsFollowOneAnotherAsTheyDid) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    OrderChange change = DrawOfKeptOrder(rng);
    const auto order = KeepOrder(change.input(), *change.before);
    std::vector<VertexId> all(change.owner.size());
    std::iota(all.begin(), all.end(), VertexId{0});
    std::vector<VertexId> kept;
    for (std::size_t row = 0; row < order.size(); ++row) kept.push_back(order[row]);
    ASSERT_TRUE(std::is_permutation(kept.begin(), kept.end(), all.begin(), all.end()));
    std::optional<Row> last_old;
    std::optional<std::uint64_t> last_degree;  // of the vertices that are new in the group
    for (std::size_t row = 0; row < order.size(); ++row) {
      const VertexId v = order[row];
      if (row > 0 && change.GroupOf(order[row - 1]) != change.GroupOf(v)) {
        EXPECT_LT(change.GroupOf(order[row - 1]), change.GroupOf(v));
        last_degree.reset();
      }
      if (change.Stays(v)) {
        const Row old = change.before->RowOf(v);
        if (last_old) {
          EXPECT_GT(old, *last_old);
        }
        last_old = old;
      } else {
        const std::uint64_t degree = change.degree[static_cast<std::size_t>(v)];
        if (last_degree) {
          EXPECT_LE(degree, *last_degree);
        }
        last_degree = degree;
      }
    }
  }
}

TEST(KeptOrderTest, WithoutChangesItIsTheOrderThatWas) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 50; ++round) {
    OrderChange change = DrawOfKeptOrder(rng);
    change.owner = change.old_owner;
    change.type.resize(std::min(change.type.size(), change.owner.size()));
    change.degree.resize(change.owner.size());
    const auto order = KeepOrder(change.input(), *change.before);
    for (std::size_t row = 0; row < order.size(); ++row)
      EXPECT_EQ(order[row], change.before->VertexAt(static_cast<Row>(row)));
  }
}

// Returns the share of hits that a static cache of the first rows of each group loses compared with
// a sorted order, averaged over all cache sizes.
double MeanLoss(const OrderChange& change, const VertexColumn& order, const VertexColumn& sorted) {
  std::map<std::tuple<PartitionId, TypeId>, std::pair<std::vector<double>, std::vector<double>>>
      groups;
  double all = 0;
  for (std::size_t row = 0; row < order.size(); ++row) {
    const auto degree_of = [&](VertexId v) {
      return static_cast<double>(change.degree[static_cast<std::size_t>(v)]);
    };
    groups[change.GroupOf(order[row])].first.push_back(degree_of(order[row]));
    groups[change.GroupOf(sorted[row])].second.push_back(degree_of(sorted[row]));
    all += degree_of(order[row]);
  }
  double loss = 0;
  for (const auto& [group, degrees] : groups) {
    double hits = 0;
    double best = 0;
    for (std::size_t size = 0; size < degrees.first.size(); ++size) {
      hits += degrees.first[size];
      best += degrees.second[size];
      loss += (best - hits) / static_cast<double>(degrees.first.size());
    }
  }
  return all == 0 ? 0 : loss / all;
}

TEST(KeptOrderTest, DriftIsTheMeanLossOfAStaticCache) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    OrderChange change = DrawOfKeptOrder(rng);
    const auto sorted = OrderVertices(change.input(), OrderKind::kPds, 1).value();
    const auto order = KeepOrder(change.input(), *change.before);
    EXPECT_EQ(OrderDrift(change.input(), sorted, sorted), 0);
    const double drift = OrderDrift(change.input(), order, sorted);
    EXPECT_NEAR(drift, MeanLoss(change, order, sorted), 1e-9);
    EXPECT_GE(drift, -1e-12);
    EXPECT_LE(drift, 1);
  }
}

}  // namespace
}  // namespace rhizome
