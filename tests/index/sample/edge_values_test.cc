#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "index/sampler_graphs.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/ingest.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

/// An edge in the test's own records. Its attribute "eid" is its key, and "pair" is computed from
/// the key.
struct Known {
  VertexId src = 0;
  VertexId dst = 0;
  TypeId type = 0;
  float weight = 1;
};

std::pair<float, float> PairOf(std::int64_t eid) {
  return {static_cast<float>(eid) / 2, -static_cast<float>(eid)};
}

/// A store whose edges have attributes, its live graph, and the expected edges by eid.
class EdgeValuesTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVertices = 25;
  static constexpr int kTypes = 3;

  void Make(Direction directions, bool undirected, bool weighted, ArrayLayout layout) {
    undirected_ = undirected;
    weighted_ = weighted;
    GraphInput input = testing::EmptyInput(kVertices);
    input.undirected = undirected;
    input.edge_type_names = {"a", "b", "c"};
    input.edges.attributes = {EdgeAttribute("eid"), EdgeAttribute("pair", DataType::kFloat32, 2)};
    input.attribute_layout = layout;
    for (int i = 0; i < 90; ++i) {
      const Known edge = Draw();
      input.edges.src.push_back(edge.src);
      input.edges.dst.push_back(edge.dst);
      input.edges.type.push_back(edge.type);
      if (weighted) input.edges.weight.push_back(edge.weight);
      input.edges.attributes[0].Add(next_);
      const auto [first, second] = PairOf(next_);
      input.edges.attributes[1].Add(first);
      input.edges.attributes[1].Add(second);
      edges_[next_++] = edge;
    }
    BuildOptions options = testing::RandomPartitions(3, directions);
    path_ = folder_ / (std::to_string(next_) + ".rz");
    ASSERT_OK(testing::BuildStore(path_, std::move(input), options));
    auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }

  Known Draw() {
    const auto vertex = [&] { return static_cast<VertexId>(random_() % (random_() % 3 ? 6 : 25)); };
    Known edge{vertex(), vertex(), static_cast<TypeId>(random_() % kTypes)};
    if (weighted_) edge.weight = static_cast<float>(random_() % 64) / 4;
    return edge;
  }

  bool Same(const Known& a, const Known& b) const {
    const bool forth = a.src == b.src && a.dst == b.dst;
    const bool back = undirected_ && a.src == b.dst && a.dst == b.src;
    return a.type == b.type && (forth || back);
  }

  // Writes a batch that puts, upserts and deletes edges, and sometimes deletes a vertex.
  void Update() {
    WriteBatch batch;
    const std::vector<std::string> types = {"a", "b", "c"};
    for (std::uint64_t left = 1 + random_() % 12; left > 0; --left) {
      const std::uint64_t kind = random_() % 8;
      Known edge = Draw();
      if (kind < 3) edge = std::next(edges_.begin(), Below(edges_.size()))->second;
      if (gone_.contains(edge.src) || gone_.contains(edge.dst)) continue;
      if (kind >= 1) {
        const auto [first, second] = PairOf(next_);
        const EdgeFields fields{
            .type = types[edge.type], .weight = edge.weight, .attributes = {next_, first, second}};
        if (kind == 1) {
          batch.UpsertEdge(edge.src, edge.dst, fields);
        } else {
          batch.PutEdge(edge.src, edge.dst, fields);
        }
      } else {
        batch.DeleteEdge(edge.src, edge.dst, types[edge.type]);
      }
      if (kind <= 1) std::erase_if(edges_, [&](const auto& e) { return Same(e.second, edge); });
      if (kind >= 1) edges_[next_++] = edge;
    }
    if (random_() % 4 == 0 && gone_.size() < 6) {
      const VertexId vertex = static_cast<VertexId>(random_() % kVertices);
      batch.DeleteVertex(vertex);
      gone_.insert(vertex);
      std::erase_if(
          edges_, [&](const auto& e) { return e.second.src == vertex || e.second.dst == vertex; });
    }
    ASSERT_OK(graph_->Write(batch, {.sync = false}));
  }
  std::ptrdiff_t Below(std::size_t bound) { return static_cast<std::ptrdiff_t>(random_() % bound); }

  template <typename T>
  std::vector<T> Read(const Graph& graph, std::string_view name,
                      std::span<const std::int64_t> numbers, std::size_t dim = 1) {
    std::vector<T> values(numbers.size() * dim);
    EXPECT_OK(ReadEdgeRows(graph, name, numbers, std::as_writable_bytes(std::span(values))));
    return values;
  }

  // Samples all edges in a direction, and compares the values read for each with the expected ones.
  void ExpectColumns(const Graph& live, Direction direction) {
    const auto graph = live.Snapshot();
    SamplerOptions options = testing::Fanouts({kAllNeighbors});
    options.direction = direction;
    options.edge_ids = true;
    const auto sampler = testing::MakeSampler(*graph, options);
    ASSERT_NE(sampler, nullptr);
    const auto sample = sampler->Sample(testing::AllVertices(*graph), 0);
    ASSERT_OK(sample);
    const EdgeNumbering numbering(*graph);
    std::vector<std::int64_t> numbers;
    for (const EdgeId& edge : sample->edges) numbers.push_back(numbering.Of(edge));
    const auto eids = Read<std::int64_t>(live, "eid", numbers);
    const auto pairs = Read<float>(live, "pair", numbers, 2);
    const auto types = Read<std::int64_t>(live, "type", numbers);
    const auto weights = weighted_ ? Read<float>(live, "weight", numbers) : std::vector<float>();
    std::set<std::int64_t> found;
    for (std::uint64_t v = 0; v < graph->vertex_count(); ++v) {
      for (std::uint64_t e = sample->offsets[v]; e < sample->offsets[v + 1]; ++e) {
        const auto known = edges_.find(eids[e]);
        ASSERT_NE(known, edges_.end()) << eids[e];
        found.insert(eids[e]);
        const Known& edge = known->second;
        const auto neighbor =
            *graph->VertexAt(sample->rows[static_cast<std::size_t>(sample->neighbors[e])]);
        const auto vertex = static_cast<VertexId>(v);
        const bool out = edge.src == vertex && edge.dst == neighbor;
        const bool in = edge.dst == vertex && edge.src == neighbor;
        EXPECT_TRUE((out && (undirected_ || direction != Direction::kIn)) ||
                    (in && (undirected_ || direction != Direction::kOut)));
        EXPECT_EQ(std::pair(pairs[2 * e], pairs[2 * e + 1]), PairOf(eids[e]));
        EXPECT_EQ(types[e], edge.type);
        EXPECT_EQ(types[e], sample->types[e]);
        if (weighted_) {
          EXPECT_EQ(weights[e], edge.weight);
        }
        if (numbers[e] >= static_cast<std::int64_t>(numbering.generation_edges())) {
          EXPECT_EQ(eid_of_number_.try_emplace(numbers[e], eids[e]).first->second, eids[e])
              << "the number has become another edge's";
        }
      }
    }
    EXPECT_EQ(found.size(), edges_.size());
  }

  void ExpectAll(const Graph& graph) {
    const Direction kept = graph.Snapshot()->info().directions;
    for (const Direction direction : {Direction::kOut, Direction::kIn, Direction::kBoth}) {
      SCOPED_TRACE(static_cast<int>(direction));
      const bool walked = (static_cast<unsigned>(kept) & static_cast<unsigned>(direction)) ==
                          static_cast<unsigned>(direction);
      if (undirected_ || walked) ExpectColumns(graph, direction);
      if (HasFailure()) return;
    }
  }

  std::mt19937_64 random_{testing::TestSeed()};
  testing::TempDir folder_;
  Path path_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  bool undirected_ = false;
  bool weighted_ = false;
  std::map<std::int64_t, Known> edges_;
  std::set<VertexId> gone_;
  std::int64_t next_ = 1000;
  std::map<std::int64_t, std::int64_t> eid_of_number_;  // edges written after the generation
};

TEST_F(EdgeValuesTest, AreThoseOfTheEdgesThroughUpdatesAndCompactions) {
  constexpr Direction kDirections[] = {Direction::kOut, Direction::kIn, Direction::kBoth};
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    graph_ = nullptr;
    store_ = nullptr;
    edges_.clear();
    gone_.clear();
    eid_of_number_.clear();
    ASSERT_NO_FATAL_FAILURE(Make(kDirections[round], random_() % 3 == 0, random_() % 2 == 0,
                                 random_() % 2 == 0 ? ArrayLayout::kRow : ArrayLayout::kChunk));
    for (int step = 0; step < 6; ++step) {
      SCOPED_TRACE(step);
      ExpectAll(*graph_);
      if (step == 3) {
        ASSERT_OK(graph_->Compact({}, JobControl()));
        eid_of_number_.clear();
        ExpectAll(*graph_);
      }
      ASSERT_NO_FATAL_FAILURE(Update());
      if (HasFailure()) return;
    }
    ExpectAll(*graph_);
    // A reader that loads the commits from the store numbers the edges in the same way as the
    // writer.
    const auto reader = testing::OpenStore(path_, Store::Mode::kRead);
    ASSERT_OK(reader);
    const auto follower = Graph::Open(**reader);
    ASSERT_OK(follower);
    ExpectAll(**follower);
    if (HasFailure()) return;
  }
}

TEST_F(EdgeValuesTest, WhatIsWrongIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Make(Direction::kBoth, false, false, ArrayLayout::kRow));
  std::int64_t value = 0;
  const auto out = std::as_writable_bytes(std::span(&value, 1));
  const auto read = [&](std::string_view name, std::int64_t number) {
    return ReadEdgeRows(*graph_, name, std::span(&number, 1), out);
  };
  EXPECT_OK(read("eid", 89));
  const Status unknown = read("weight", 0);
  EXPECT_STATUS(unknown, kNotFound);
  EXPECT_NE(unknown.message().find("eid, pair, type"), std::string::npos) << unknown.message();
  for (const std::int64_t number : {std::int64_t{-1}, std::int64_t{90}}) {
    const Status beyond = read("eid", number);
    EXPECT_STATUS(beyond, kInvalidArgument);
    EXPECT_NE(beyond.message().find(std::to_string(number)), std::string::npos);
  }
  EXPECT_STATUS(ReadEdgeRows(*graph_, "eid", {}, out), kInvalidArgument);
  const std::int64_t number = 0;
  EXPECT_STATUS(ReadEdgeRows(*graph_, "pair", std::span(&number, 1), out.first(4)),
                kInvalidArgument);

  WriteBatch put;
  put.PutEdge(VertexId{1}, VertexId{24}, {.type = "c", .attributes = {7, 0.5, 0.25}});
  ASSERT_OK(graph_->Write(put, {.sync = false}));
  ASSERT_OK(read("eid", 90));
  EXPECT_EQ(value, 7);
  EXPECT_OK(read("type", 90));
  EXPECT_EQ(value, 2);
  WriteBatch tiny;  // it would be 0 as float32
  tiny.PutEdge(VertexId{1}, VertexId{24}, {.type = "c", .attributes = {7, 0.5, 1e-180}});
  const auto refused = graph_->Write(tiny, {.sync = false});
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_NE(refused.error().message().find("'pair', 1e-180, is not 0"), std::string::npos)
      << refused.error().message();
  WriteBatch gone;
  gone.DeleteEdge(VertexId{1}, VertexId{24}, "c");
  ASSERT_OK(graph_->Write(gone, {.sync = false}));
  EXPECT_STATUS(read("eid", 90), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
