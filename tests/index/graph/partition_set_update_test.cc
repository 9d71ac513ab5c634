#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "index/partition_sets.h"

// The answers of a graph with some of its partitions, beside a writer, are held against a list of
// all edges that the same batches were applied to.

namespace rhizome {
namespace {

using testing::Covers;
using testing::ExpectNotLoaded;
using testing::PartitionMarks;
using testing::UpdateModel;

using Entry = std::tuple<std::string, std::string, float>;  // neighbour, type, weight

class PartitionSetUpdateTest : public testing::PartitionSets {
 protected:
  std::unique_ptr<Graph> OpenWriter() {
    writer_store_ = OpenStore(Store::Mode::kWrite);
    EXPECT_NE(writer_store_, nullptr);
    auto graph = Graph::Open(*writer_store_);
    EXPECT_OK(graph);
    return graph ? *std::move(graph) : nullptr;
  }

  void Write(Graph& writer, UpdateModel& model) {
    const WriteBatch batch = model.DrawBatch(rng_, /*string_ids=*/false, 1 + rng_() % 6);
    model.Apply(batch);
    ASSERT_OK(writer.Write(batch, {.sync = false, .create_types = true}));
  }

  /// The partitions with edges of a vertex of the generation; none of a later vertex.
  PartitionMarks Needed(VertexId vertex) const {
    const auto v = static_cast<std::size_t>(vertex);
    return v < holders_.size() ? holders_[v] : PartitionMarks(All().size(), false);
  }

  static std::vector<Entry> Expected(const UpdateModel& model, const std::string& id,
                                     Direction direction) {
    std::vector<Entry> entries;
    for (const UpdateModel::Edge& edge : model.edges()) {
      const bool out = direction == Direction::kOut;
      if ((out ? edge.src : edge.dst) == id)
        entries.emplace_back(out ? edge.dst : edge.src, edge.type, edge.weight);
    }
    std::sort(entries.begin(), entries.end());
    return entries;
  }

  static std::vector<Entry> Translated(const Graph& graph, const std::vector<Neighbor>& list) {
    std::vector<Entry> entries;
    for (const Neighbor& neighbor : list)
      entries.emplace_back(ToString(*graph.ExternalIdOf(neighbor.vertex)),
                           graph.edge_types()[neighbor.type], neighbor.weight);
    std::sort(entries.begin(), entries.end());
    return entries;
  }

  /// Expects the lists of all vertices whose edges of the generation are loaded, and no others.
  /// Where a degree is told, it is right; it is told of each whole list.
  void ExpectAgrees(const Graph& graph, const PartitionMarks& set, const UpdateModel& model) const {
    EXPECT_EQ(graph.live_vertex_count(), model.vertices().size());
    for (const auto& [id, vertex] : model.vertices()) {
      SCOPED_TRACE("vertex " + id);
      const auto v = graph.FindText(id);
      ASSERT_OK(v);
      const PartitionMarks needed = Needed(*v);
      for (const Direction direction : {Direction::kOut, Direction::kIn}) {
        if (!whole_->partition(0).has(direction)) continue;
        const std::vector<Entry> expected = Expected(model, id, direction);
        const auto list = graph.Neighbors(*v, direction);
        const auto degree = graph.Degree(*v, direction);
        if (Covers(set, needed)) {
          ASSERT_OK(list);
          EXPECT_EQ(Translated(graph, *list), expected);
          ASSERT_OK(degree);
        } else {
          ASSERT_FALSE(list);
          ExpectNotLoaded(list.error(), set, needed);
        }
        if (degree) {
          EXPECT_EQ(*degree, expected.size());
        } else {
          ExpectNotLoaded(degree.error(), set, needed);
        }
      }
    }
  }

  std::unique_ptr<Store> writer_store_;
};

TEST_F(PartitionSetUpdateTest, WhatIsWrittenIsInTheListsThatAreLoaded) {
  for (int round = 0; round < kRounds; ++round) {
    Make(30, 60);
    UpdateModel model(input_);
    const auto writer = OpenWriter();
    ASSERT_NE(writer, nullptr);
    const PartitionMarks set = DrawSet();
    const auto reader_store = OpenStore(Store::Mode::kRead);
    const auto reader = Graph::Open(*reader_store, {.partitions = Named(set)});
    ASSERT_OK(reader);
    for (int step = 0; step < 4; ++step) {
      ASSERT_NO_FATAL_FAILURE(Write(*writer, model));
      ASSERT_OK((*reader)->Refresh());
      ExpectAgrees(**reader, set, model);
      const auto opened = OpenSet(*reader_store, set, DrawPlace());
      ASSERT_NE(opened, nullptr);
      ExpectAgrees(*opened, set, model);
      const auto edges = (*reader)->CountEdges();
      if (!(*reader)->Snapshot()->delta_size().entries) continue;
      ASSERT_FALSE(edges);
      ExpectNotLoaded(edges.error(), set, All());
    }
    if (HasFailure()) return;
  }
}

// The set is kept when a reader goes on to the next generation, which has the same partitions.
TEST_F(PartitionSetUpdateTest, AReaderKeepsItsSetOverACompaction) {
  for (int round = 0; round < kRounds; ++round) {
    Make(30, 60);
    const auto writer = OpenWriter();
    ASSERT_NE(writer, nullptr);
    const PartitionMarks set = DrawSet();
    const auto reader_store = OpenStore(Store::Mode::kRead);
    const auto reader = Graph::Open(*reader_store, {.partitions = Named(set)});
    ASSERT_OK(reader);
    WriteBatch batch;
    for (int i = 0; i < 5; ++i)
      batch.PutEdge(static_cast<std::int64_t>(rng_() % 30), static_cast<std::int64_t>(rng_() % 30));
    ASSERT_OK(writer->Write(batch));
    ASSERT_OK(writer->Compact({}, JobControl()));
    ASSERT_OK((*reader)->Refresh());
    const auto snapshot = (*reader)->Snapshot();
    EXPECT_EQ(snapshot->info().edges, *writer->CountEdges());
    for (std::uint32_t p = 0; p < set.size(); ++p) EXPECT_EQ(snapshot->is_loaded(p), set[p]);
    EXPECT_EQ(*(*reader)->CountEdges(), *writer->CountEdges());
    if (HasFailure()) return;
  }
}

// A graph that names all partitions has all of them, however many the next generation has.
TEST_F(PartitionSetUpdateTest, AGraphThatNamesAllPartitionsIsDividedIntoMoreAndFewer) {
  do Make(30, 60);
  while (whole_->partition_count() < 3);
  writer_store_ = OpenStore(Store::Mode::kWrite);
  const auto graph = Graph::Open(*writer_store_, {.partitions = Named(All())});
  ASSERT_OK(graph);
  UpdateModel model(input_);
  std::uint32_t count = whole_->partition_count();
  for (const bool more : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(Write(**graph, model));
    count = more ? count + 3 : count - 4;
    CompactOptions options{.repartition = true};
    options.partition.partitions = count;
    ASSERT_OK((*graph)->Compact(options, JobControl()));
    const auto snapshot = (*graph)->Snapshot();
    ASSERT_EQ(snapshot->partition_count(), count);
    for (std::uint32_t p = 0; p < count; ++p) EXPECT_TRUE(snapshot->is_loaded(p)) << p;
    EXPECT_EQ(*(*graph)->CountEdges(), model.edges().size());
  }
  ASSERT_NO_FATAL_FAILURE(Write(**graph, model));
}

}  // namespace
}  // namespace rhizome
