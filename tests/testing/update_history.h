#pragma once

#include <random>

#include "index/generation/graph_builder.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/maintenance.h"
#include "storage/maintenance/verify_files.h"
#include "testing/test_store.h"
#include "testing/update_model.h"

namespace rhizome::testing {

/// A small store of a random kind, with the array "feat".
struct RandomBase {
  GraphInput input;
  BuildOptions options;
  bool string_ids() const { return input.id_kind == ExternalIdKind::kString; }
};

inline RandomBase DrawBase(std::mt19937_64& rng) {
  constexpr ExternalIdKind kIdKinds[] = {ExternalIdKind::kDense, ExternalIdKind::kInteger,
                                         ExternalIdKind::kString};
  constexpr Direction kDirections[] = {Direction::kOut, Direction::kIn, Direction::kBoth};
  RandomGraphOptions options;
  options.vertices = 1 + rng() % 30;
  options.edges = rng() % 90;
  options.vertex_types = 1 + static_cast<std::uint32_t>(rng() % 2);
  options.edge_types = 1 + static_cast<std::uint32_t>(rng() % 4);
  options.weighted = rng() % 2 == 0;
  options.undirected = rng() % 3 == 0;
  options.id_kind = kIdKinds[rng() % 3];
  RandomBase base{.input = RandomGraph(rng, options), .options = {}};
  UpdateModel::AddRows(base.input);
  base.options.partition.kind = PartitionerKind::kRandom;
  base.options.partition.partitions = 1 + static_cast<std::uint32_t>(rng() % 4);
  base.options.directions = kDirections[rng() % 3];
  if (rng() % 3 == 0) base.options.topology_codec = TopologyCodec::kEliasFano;
  return base;
}

inline Result<std::unique_ptr<Store>> OpenStore(const Path& path, Store::Mode mode) {
  return Store::Open(FileSystem::Posix(), path, mode);
}

/// Calls `check` with random graphs that have the array "feat" in either layout, initially and
/// after each of several random updates.
template <typename Check>
void WithUpdatedGraphs(std::mt19937_64& rng, Check check) {
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const TempDir dir;
    RandomBase base = DrawBase(rng);
    if (round % 2 == 0) base.input.arrays.front().layout = ArrayLayout::kChunk;
    UpdateModel model(base.input);
    const bool string_ids = base.string_ids();
    ASSERT_OK(BuildStore(dir / "g.rz", std::move(base.input), base.options));
    const auto store = OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    for (int step = 0; step < 4; ++step) {
      check(**graph);
      const WriteBatch batch = model.DrawBatch(rng, string_ids, 1 + rng() % 12);
      model.Apply(batch);
      ASSERT_OK((*graph)->Write(batch, {.sync = false, .create_types = true}));
    }
  }
}

inline CompactOptions DrawCompaction(std::mt19937_64& rng) {
  CompactOptions options;
  options.threads = 1 + static_cast<std::uint32_t>(rng() % 2);
  if (rng() % 3 != 0) return options;
  options.repartition = true;
  options.partition.kind = rng() % 2 == 0 ? PartitionerKind::kRefined : PartitionerKind::kHash2d;
  options.partition.partitions = static_cast<std::uint32_t>(rng() % 5);
  options.order = rng() % 2 == 0 ? OrderKind::kNatural : OrderKind::kPds;
  return options;
}

/// Returns a memory limit that is too small for all edges at once, but large enough for each part.
inline std::uint64_t JustNotHolding(const GraphSnapshot& graph, const CompactOptions& options) {
  const std::uint64_t edges = graph.info().edges + graph.delta()->entries();
  const std::uint32_t partitions =
      options.partition.partitions == 0 ? graph.info().partitions : options.partition.partitions;
  const std::uint64_t edge_bytes = kWriteBytesPerEdge + 6 + (graph.info().weighted ? 16 : 0) +
                                   24 * graph.edge_attributes().size();
  return BuildVertexBytes(graph.vertex_count(), partitions) +
         WritePartitionBytes(edges, edge_bytes, graph.vertex_count(), graph.vertex_count());
}

inline void ExpectVerifies(const Path& path) {
  const JobControl control;
  auto report = VerifyFiles(FileSystem::Posix(), path, control);
  ASSERT_OK(report);
  ASSERT_OK(VerifyGraph(FileSystem::Posix(), path, control, *report));
  for (const Damage& damage : report->damaged) ADD_FAILURE() << damage.file << ": " << damage.what;
}

/// Applies random updates, and after each compares every query with the model: on the live graph, a
/// snapshot, a second handle that follows the first, after reopening and, if `compact`, after a
/// compaction.
inline void RunHistories(std::mt19937_64& rng, int rounds, bool compact) {
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    TempDir dir;
    RandomBase base = DrawBase(rng);
    UpdateModel model(base.input);
    const Direction directions = base.options.directions;
    const bool string_ids = base.string_ids();
    ASSERT_OK(BuildStore(dir / "g.rz", std::move(base.input), base.options));
    auto store = OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    const auto reader = OpenStore(dir / "g.rz", Store::Mode::kRead);
    ASSERT_OK(reader);
    const auto follower = Graph::Open(
        **reader, {.topology = rng() % 2 == 0 ? TopologyPlace::kMemory : TopologyPlace::kDirect});
    ASSERT_OK(follower);
    model.ExpectExactEnds(**graph);
    for (int step = 0; step < 12; ++step) {
      SCOPED_TRACE(step);
      const UpdateModel before = model;
      auto snapshot = (*graph)->Snapshot();
      const WriteBatch batch = model.DrawBatch(rng, string_ids, 1 + rng() % 12);
      model.Apply(batch);
      const auto written = (*graph)->Write(batch, {.sync = rng() % 2 == 0, .create_types = true});
      ASSERT_OK(written);
      EXPECT_EQ(written->commit, (*graph)->sequence());
      model.ExpectAgrees(**graph, directions);
      before.ExpectAgrees(*snapshot, directions);
      if (step % 3 == 0) {
        ASSERT_OK((*follower)->Refresh());
        EXPECT_EQ((*follower)->sequence(), (*graph)->sequence());
        model.ExpectAgrees(**follower, directions);
      }
      if (compact && rng() % 4 == 0) {
        const JobControl control;
        CompactOptions options = DrawCompaction(rng);
        if (options.repartition && rng() % 2 == 0)
          options.memory_bytes = JustNotHolding(*(*graph)->Snapshot(), options);
        const auto compacted = (*graph)->Compact(options, control);
        ASSERT_OK(compacted);
        EXPECT_TRUE(compacted->compacted);
        EXPECT_TRUE((*graph)->Snapshot()->delta()->empty());
        model.ExpectAgrees(**graph, directions);
        model.ExpectExactEnds(**graph);
        before.ExpectAgrees(*snapshot, directions);
        if (rng() % 2 == 0) {
          ASSERT_OK((*follower)->Refresh());
          model.ExpectAgrees(**follower, directions);
        }
        ExpectVerifies(dir / "g.rz");
      }
      if (step % 4 == 3) {
        snapshot = nullptr;  // it holds the writer's lock
        *graph = nullptr;
        *store = nullptr;
        store = OpenStore(dir / "g.rz", Store::Mode::kWrite);
        ASSERT_OK(store);
        graph = Graph::Open(**store);
        ASSERT_OK(graph);
        model.ExpectAgrees(**graph, directions);
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace rhizome::testing
