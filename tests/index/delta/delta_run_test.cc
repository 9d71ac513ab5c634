#include "index/delta/delta_run.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "index/delta/delta.h"
#include "testing/delta_histories.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::DeltaHistory;

using Key = std::tuple<VertexId, TypeId, VertexId>;  // vertex, type, neighbour
using Added = std::tuple<VertexId, TypeId, VertexId, float, std::vector<std::int64_t>>;

DeltaHistory::Shape DrawShape(std::mt19937_64& rng) {
  return {.symmetric = rng() % 2 == 0,
          .string_ids = rng() % 2 == 0,
          .attribute_count = static_cast<std::uint32_t>(rng() % 3),
          .base_vertices = 1 + rng() % 8,
          .base_sequence = rng() % 100};
}

Delta::Base BaseOf(const DeltaHistory::Shape& shape) {
  return {.symmetric = shape.symmetric,
          .string_ids = shape.string_ids,
          .attribute_count = shape.attribute_count,
          .vertices = shape.base_vertices,
          .vertex_types = {"a", "b"},
          .edge_types = {"t0"},
          .sequence = shape.base_sequence};
}

// Returns the edges of a list as plain values, with the attributes read through their run.
std::vector<Added> Plain(const DeltaRun& run, std::span<const DeltaEdge> edges) {
  std::vector<Added> plain;
  for (const DeltaEdge& edge : edges) {
    if (edge.erase) continue;
    const auto first = run.attributes.begin() +
                       static_cast<std::ptrdiff_t>(std::size_t{edge.number} * run.attribute_count);
    plain.emplace_back(edge.vertex, edge.type, edge.neighbor, edge.weight,
                       std::vector<std::int64_t>(first, first + run.attribute_count));
  }
  std::sort(plain.begin(), plain.end());
  return plain;
}

std::vector<Added> Expected(const DeltaHistory& history, Direction direction, VertexId vertex) {
  std::vector<Added> expected;
  for (const auto& edge : history.edges()) {
    const bool out = direction == Direction::kOut;
    if ((out ? edge.src : edge.dst) != vertex) continue;
    expected.emplace_back(vertex, edge.type, out ? edge.dst : edge.src, edge.weight,
                          edge.attributes);
  }
  std::sort(expected.begin(), expected.end());
  return expected;
}

std::vector<Key> ExpectedErased(const DeltaHistory& history, Direction direction, VertexId vertex) {
  std::vector<Key> expected;
  for (const auto& [src, type, dst] : history.erased()) {
    const bool out = direction == Direction::kOut;
    if ((out ? src : dst) == vertex) expected.emplace_back(vertex, type, out ? dst : src);
  }
  std::sort(expected.begin(), expected.end());
  return expected;
}

void ExpectLists(const DeltaHistory& history, const DeltaHistory::Shape& shape,
                 const Delta& delta) {
  const auto merged = delta.Merged();
  for (VertexId v = 0; v < static_cast<VertexId>(history.vertices()); ++v) {
    for (const Direction direction : {Direction::kOut, Direction::kIn}) {
      SCOPED_TRACE(::testing::Message() << "vertex " << v << (direction == Direction::kIn));
      const auto added = Expected(history, direction, v);
      const auto erased = ExpectedErased(history, direction, v);
      EXPECT_EQ(Plain(*merged, merged->ListOf(v, direction, shape.symmetric)), added);
      const auto changes = delta.ChangesOf(v, direction);
      ASSERT_EQ(changes.added.size(), added.size());
      for (std::size_t i = 0; i < added.size(); ++i) {
        EXPECT_EQ(std::get<1>(added[i]), changes.added[i].type);
        EXPECT_EQ(std::get<2>(added[i]), changes.added[i].neighbor);
      }
      std::vector<Key> found;
      for (const DeltaEdge& edge : changes.erased)
        found.emplace_back(edge.vertex, edge.type, edge.neighbor);
      EXPECT_EQ(found, erased);
      if (!added.empty() || !erased.empty()) {
        EXPECT_TRUE(delta.Touches(v, direction));
      }
    }
    EXPECT_EQ(delta.IsDeleted(v), history.deleted().contains(v));
    if (::testing::Test::HasFailure()) return;
  }
}

void ExpectNames(const DeltaHistory& history, const DeltaHistory::Shape& shape,
                 const Delta& delta) {
  std::map<ExternalId, VertexId> newest;
  for (std::size_t i = 0; i < history.ids().size(); ++i) {
    const auto vertex = static_cast<VertexId>(shape.base_vertices + i);
    newest[history.ids()[i]] = vertex;
    EXPECT_EQ(delta.IdOf(vertex), history.ids()[i]);
  }
  for (const auto& [id, vertex] : newest) {
    if (history.deleted().contains(vertex)) {
      EXPECT_EQ(delta.Find(id), std::nullopt);
    } else {
      EXPECT_EQ(delta.Find(id), vertex);
    }
  }
  EXPECT_EQ(delta.Find(shape.string_ids ? ExternalId("none") : ExternalId(777)), std::nullopt);
  for (const auto& [id, texts] : history.texts()) {
    EXPECT_EQ(delta.FirstText(id), DeltaHistory::kFirstText);
    EXPECT_EQ(delta.EndOfTexts(id), history.text_ends()[id]);
    EXPECT_EQ(delta.TextOf(id, history.text_ends()[id]), nullptr);
    std::int64_t code = DeltaHistory::kFirstText;
    for (const std::string& text : texts) {
      EXPECT_EQ(delta.FindText(id, text), code);
      ASSERT_NE(delta.TextOf(id, code), nullptr);
      EXPECT_EQ(*delta.TextOf(id, code++), text);
    }
    EXPECT_EQ(delta.FindText(id, "none"), std::nullopt);
  }
  EXPECT_EQ(delta.FirstText(99), std::nullopt);
  for (std::uint64_t array = 1; array <= 3; ++array) {
    for (VertexId v = 0; v < static_cast<VertexId>(history.vertices()); ++v) {
      const auto row = history.rows().find({array, v});
      EXPECT_EQ(delta.RowCommit(array, v), row == history.rows().end()
                                               ? std::nullopt
                                               : std::optional<std::uint64_t>(row->second));
    }
  }
}

TEST(DeltaRunTest, ChainsOfCommitsSayWhatTheirChangesSaidInOrder) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 8; ++round) {
    SCOPED_TRACE(round);
    const auto shape = DrawShape(rng);
    DeltaHistory history(shape);
    auto delta = Delta::Empty(BaseOf(shape));
    const std::size_t most = 1 + rng() % 12;
    for (int commit = 1; commit <= 60; ++commit) {
      delta = delta->With(history.Commit(rng, most));
      if (commit % 12 != 0) continue;
      ASSERT_EQ(delta->sequence(), history.sequence());
      ASSERT_EQ(delta->vertices(), history.vertices());
      ExpectLists(history, shape, *delta);
      ExpectNames(history, shape, *delta);
      if (HasFailure()) return;
    }
  }
}

// Runs of similar size are merged, so a long chain of small commits remains a few runs.
TEST(DeltaRunTest, LongChainsStayFewRuns) {
  std::mt19937_64 rng(testing::TestSeed());
  const DeltaHistory::Shape shape;
  DeltaHistory history(shape);
  auto delta = Delta::Empty(BaseOf(shape));
  std::uint64_t max_runs = 0;
  for (int commit = 0; commit < 3000; ++commit) {
    delta = delta->With(history.Commit(rng, 1));
    max_runs = std::max(max_runs, delta->runs());
  }
  EXPECT_LE(max_runs, 14U);  // log2 of 3000 commits, and an empty run at either end
  EXPECT_EQ(delta->Merged()->last_sequence, 3000U);
  EXPECT_EQ(delta->Merged()->first_sequence, 1U);
  ExpectNames(history, shape, *delta);
}

bool SameEdges(const std::vector<DeltaEdge>& a, const std::vector<DeltaEdge>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const DeltaEdge& x, const DeltaEdge& y) {
                      return std::tie(x.vertex, x.type, x.neighbor, x.erase, x.weight) ==
                             std::tie(y.vertex, y.type, y.neighbor, y.erase, y.weight);
                    });
}

TEST(DeltaRunTest, MergingDoesNotDependOnTheOrderOfMerges) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    const auto shape = DrawShape(rng);
    DeltaHistory history(shape);
    const DeltaRun a = history.Commit(rng, 15);
    const DeltaRun b = history.Commit(rng, 15);
    const DeltaRun c = history.Commit(rng, 15);
    const auto left = MergeRuns(*MergeRuns(a, b), c);
    const auto right = MergeRuns(a, *MergeRuns(b, c));
    EXPECT_TRUE(SameEdges(left->out, right->out));
    EXPECT_TRUE(SameEdges(left->in, right->in));
    EXPECT_EQ(left->vertex_ids, right->vertex_ids);
    EXPECT_EQ(left->ids_sorted, right->ids_sorted);
    EXPECT_EQ(left->deleted, right->deleted);
    EXPECT_EQ(left->new_edge_types, right->new_edge_types);
    for (VertexId v = 0; v < static_cast<VertexId>(history.vertices()); ++v) {
      for (const Direction direction : {Direction::kOut, Direction::kIn})
        EXPECT_EQ(Plain(*left, left->ListOf(v, direction, shape.symmetric)),
                  Plain(*right, right->ListOf(v, direction, shape.symmetric)));
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rhizome
