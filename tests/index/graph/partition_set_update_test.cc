#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "index/partition_sets.h"
#include "rhizome/graph.h"

// Compares a graph with some of its partitions, during writes, with a list of all edges to which
// the same batches were applied.

namespace rhizome {
namespace {

using testing::Covers;
using testing::ExpectNotLoaded;
using testing::PartitionMarks;
using testing::UpdateModel;

class PartitionSetUpdateTest : public testing::PartitionSets {
 protected:
  std::unique_ptr<Graph> OpenWriter() {
    writer_store_ = OpenStore(Store::Mode::kWrite);
    EXPECT_NE(writer_store_, nullptr);
    auto graph = Graph::Open(*writer_store_);
    EXPECT_OK(graph);
    return graph ? *std::move(graph) : nullptr;
  }

  /// Creates a store with a writer, and a reader of a random set of its partitions.
  void OpenBoth() {
    Make(30, 60);
    // Graphs of the previous round refer to their stores, which are about to be replaced.
    reader_ = nullptr;
    writer_ = nullptr;
    writer_ = OpenWriter();
    ASSERT_NE(writer_, nullptr);
    set_ = DrawSet();
    reader_store_ = OpenStore(Store::Mode::kRead);
    ASSERT_NE(reader_store_, nullptr);
    auto reader = Graph::Open(*reader_store_, {.partitions = Named(set_)});
    ASSERT_OK(reader);
    reader_ = *std::move(reader);
  }

  void Write(Graph& writer, UpdateModel& model) {
    const WriteBatch batch = model.DrawBatch(rng_, /*string_ids=*/false, 1 + rng_() % 6);
    model.Apply(batch);
    ASSERT_OK(writer.Write(batch, {.sync = false, .create_types = true}));
  }

  /// Returns the partitions with edges of a vertex of the generation. A later vertex has none.
  PartitionMarks Needed(VertexId vertex) const {
    const auto v = static_cast<std::size_t>(vertex);
    return v < holders_.size() ? holders_[v] : PartitionMarks(All().size(), false);
  }

  /// Expects the lists of all vertices whose edges in the generation are loaded, and no others.
  /// Every returned degree must be correct, and each complete list must have a degree.
  void ExpectAgrees(const Graph& graph, const PartitionMarks& set, const UpdateModel& model) const {
    EXPECT_EQ(graph.live_vertex_count(), model.vertices().size());
    for (const auto& [id, vertex] : model.vertices()) {
      SCOPED_TRACE("vertex " + id);
      const auto v = graph.FindText(id);
      ASSERT_OK(v);
      const PartitionMarks needed = Needed(*v);
      for (const Direction direction : {Direction::kOut, Direction::kIn}) {
        if (!whole_->partition(0).has(direction)) continue;
        const std::vector<UpdateModel::Entry> expected = model.EntriesOf(id, direction);
        const auto list = graph.Neighbors(*v, direction);
        const auto degree = graph.Degree(*v, direction);
        if (Covers(set, needed)) {
          ASSERT_OK(list);
          EXPECT_EQ(UpdateModel::Translated(graph, *list), expected);
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
  std::unique_ptr<Store> reader_store_;
  std::unique_ptr<Graph> writer_;
  std::unique_ptr<Graph> reader_;
  PartitionMarks set_;  // of the reader
};

TEST_F(PartitionSetUpdateTest, WhatIsWrittenIsInTheListsThatAreLoaded) {
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(OpenBoth());
    UpdateModel model(input_);
    for (int step = 0; step < 4; ++step) {
      ASSERT_NO_FATAL_FAILURE(Write(*writer_, model));
      ASSERT_OK(reader_->Refresh());
      ExpectAgrees(*reader_, set_, model);
      const auto opened = OpenSet(*reader_store_, set_, DrawPlace());
      ASSERT_NE(opened, nullptr);
      ExpectAgrees(*opened, set_, model);
      const auto edges = reader_->CountEdges();
      if (!reader_->Snapshot()->delta_size().entries) continue;
      ASSERT_FALSE(edges);
      ExpectNotLoaded(edges.error(), set_, All());
    }
    if (HasFailure()) return;
  }
}

// A reader keeps its set when it moves to the next generation, which has the same partitions.
TEST_F(PartitionSetUpdateTest, AReaderKeepsItsSetOverACompaction) {
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(OpenBoth());
    WriteBatch batch;
    for (int i = 0; i < 5; ++i)
      batch.PutEdge(static_cast<std::int64_t>(rng_() % 30), static_cast<std::int64_t>(rng_() % 30));
    ASSERT_OK(writer_->Write(batch));
    ASSERT_OK(writer_->Compact({}, JobControl()));
    ASSERT_OK(reader_->Refresh());
    const auto snapshot = reader_->Snapshot();
    EXPECT_EQ(snapshot->info().edges, *writer_->CountEdges());
    for (std::uint32_t p = 0; p < set_.size(); ++p) EXPECT_EQ(snapshot->is_loaded(p), set_[p]);
    EXPECT_EQ(*reader_->CountEdges(), *writer_->CountEdges());
    if (HasFailure()) return;
  }
}

// A graph that was opened with all partitions has all of them, for any number in the next
// generation.
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
