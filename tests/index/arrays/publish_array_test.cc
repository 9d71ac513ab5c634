#include "index/arrays/publish_array.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "index/delta/graph_parts.h"
#include "index/delta/stale_vertices.h"
#include "index/input/npy.h"
#include "rhizome/array_add.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/testing.h"

// Tests of PublishMade, AddArray and AppendRows while the graph is updated and compacted. The rows
// follow a formula of the vertex id, so that misplaced rows are noticed.

namespace rhizome {
namespace {

using testing::BuildStore;
using testing::RandomGraph;

constexpr std::uint64_t kPublishArrayDim = 3;

float ValueOfPublishArray(VertexId vertex, std::uint64_t column) {
  return static_cast<float>(vertex * 8 + static_cast<VertexId>(column) + 1);
}

/// Compacts a store twice, and adds vertices and edges before each compaction.
void WriteAndCompact(const Path& path, std::mt19937_64& rng) {
  auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
  ASSERT_OK(store);
  auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  const JobControl control;
  for (int round = 0; round < 2; ++round) {
    WriteBatch batch;
    for (int e = 0; e < 20; ++e) {
      const auto id = static_cast<std::int64_t>((*graph)->vertex_count() + rng() % 5);
      batch.PutEdge(static_cast<std::int64_t>(rng() % 100), id);
    }
    ASSERT_OK((*graph)->Write(batch));
    CompactOptions options;
    options.repartition = rng() % 2 == 0;
    options.partition.kind = PartitionerKind::kHash2d;
    options.partition.partitions = 2;
    ASSERT_OK((*graph)->Compact(options, control));
  }
}

/// Adds `count` vertices with a few edges. Returns the number of vertices before.
std::uint64_t PutVertices(Graph& graph, std::uint64_t count) {
  WriteBatch batch;
  const std::uint64_t first = graph.vertex_count();
  for (std::uint64_t v = first; v < first + count; ++v) {
    batch.PutVertex(static_cast<std::int64_t>(v));
    batch.PutEdge(static_cast<std::int64_t>(v), static_cast<std::int64_t>(v / 2));
  }
  EXPECT_OK(graph.Write(batch));
  return graph.vertex_count() - first;
}

std::uint64_t PutVertices(const Path& path, std::uint64_t count) {
  auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
  EXPECT_OK(store);
  auto graph = Graph::Open(**store);
  EXPECT_OK(graph);
  return PutVertices(**graph, count);
}

/// Fills the rows of `vertices` with `value`.
void PutRows(const Path& path, const std::string& array, std::initializer_list<VertexId> vertices,
             float value) {
  auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
  ASSERT_OK(store);
  auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  const std::vector<float> row(kPublishArrayDim, value);
  WriteBatch batch;
  for (const VertexId vertex : vertices) batch.PutRow(vertex, array, std::span<const float>(row));
  ASSERT_OK((*graph)->Write(batch));
}

Status AddVersion(ArrayChange& change, const ArraySource& source) {
  return testing::AsStatus(change.AddVersion(source, "emb"));
}

class PublishArrayTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVertices = 300;

  PublishArrayTest() {
    BuildOptions build;
    build.partition.partitions = 3;
    build.partition.kind = PartitionerKind::kRandom;
    EXPECT_OK(BuildStore(path_, RandomGraph(rng_, {.vertices = kVertices, .edges = 900}), build));
  }

  /// Writes the rows of the formula in the order of `store`, then the rows of `more` vertices of
  /// its delta.
  ArraySource Make(const Store& store, ArrayLayout layout, std::uint64_t more = 0) {
    const Path root = dir_ / "job";
    EXPECT_OK(CreateDirectories(FileSystem::Posix(), root));
    const auto order = LoadOrder(store);
    EXPECT_OK(order);
    ArrayEntry entry{.name = "emb",
                     .rows = order->size() + more,
                     .dim = kPublishArrayDim,
                     .dtype = DataType::kFloat32,
                     .layout = layout,
                     .codec = {},
                     .chunk_rows = 128,
                     .array_id = ++array_id_,
                     .attributes = {}};
    if (layout == ArrayLayout::kChunk) entry.codec = {.kind = CodecKind::kZstd, .level = 1};
    auto writer = ChunkArrayWriter::Create(FileSystem::Posix(), root, entry);
    EXPECT_OK(writer);
    for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
      std::vector<float> rows;
      for (std::uint64_t r = chunk * 128; r < std::min(entry.rows, chunk * 128 + 128); ++r)
        for (std::uint64_t c = 0; c < kPublishArrayDim; ++c)
          rows.push_back(ValueOfPublishArray(
              r < order->size() ? order->VertexAt(static_cast<Row>(r)) : VertexId(r), c));
      EXPECT_OK((*writer)->WriteChunk(chunk, std::as_bytes(std::span(rows))));
    }
    auto files = (*writer)->Finish();
    EXPECT_OK(files);
    files_ = *std::move(files);
    arrays_ = (*writer)->arrays();
    return {arrays_, root, files_};
  }

  /// Writes the formula's rows of `count` vertices, starting at `first`, to a file.
  AddArrayOptions FileOf(const std::string& name, VertexId first, std::uint64_t count) {
    const std::uint64_t shape[] = {count, kPublishArrayDim};
    const auto header = EncodeNpyHeader(DataType::kFloat32, shape);
    std::string text(reinterpret_cast<const char*>(header.data()), header.size());
    for (VertexId v = first; v < first + static_cast<VertexId>(count); ++v) {
      for (std::uint64_t c = 0; c < kPublishArrayDim; ++c) {
        const float value = ValueOfPublishArray(v, c);
        text.append(reinterpret_cast<const char*>(&value), sizeof(value));
      }
    }
    AddArrayOptions options{.file = {}};
    options.file.name = name;
    options.file.path = dir_ / (name + ".npy");
    std::ofstream(options.file.path, std::ios::binary) << text;
    return options;
  }

  std::uint64_t VerticesOfGeneration() const {
    const auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
    return store ? (*store)->manifest().info.vertices : 0;
  }

  /// Expects that the vertices below `given` have the rows of the formula, and all others zeros.
  void ExpectRows(const std::string& array, std::uint64_t given) {
    ExpectRows(array, given, given);
  }
  /// `said` is the number of rows that the array claims to have. `put` has vertices whose rows are
  /// filled with a value instead.
  void ExpectRows(const std::string& array, std::uint64_t given, std::uint64_t said,
                  const std::map<VertexId, float>& put = {}) {
    const auto open = testing::OpenStoreGraph(path_);
    ASSERT_OK(open);
    const Graph& graph = *open->graph;
    const ArrayEntry* entry = open->store->manifest().FindArray(array);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(RowsGiven(*entry), said);
    for (VertexId v = 0; v < static_cast<VertexId>(graph.vertex_count()); ++v) {
      std::vector<float> row(kPublishArrayDim);
      ASSERT_OK(graph.ReadRows(array, std::span(&v, 1), std::as_writable_bytes(std::span(row))));
      const auto filled = put.find(v);
      for (std::uint64_t c = 0; c < kPublishArrayDim; ++c) {
        const float made = static_cast<std::uint64_t>(v) < given ? ValueOfPublishArray(v, c) : 0.0F;
        ASSERT_EQ(row[c], filled == put.end() ? made : filled->second) << v;
      }
    }
    const auto report = VerifyStore(FileSystem::Posix(), path_, JobControl());
    ASSERT_OK(report);
    for (const Damage& damage : report->damaged)
      ADD_FAILURE() << damage.file << ": " << damage.what;
  }

  std::mt19937_64 rng_{testing::TestSeed()};
  testing::TempDir dir_;
  const Path path_ = dir_ / "g.rz";
  std::uint64_t array_id_ = 76;
  std::vector<ArrayEntry> arrays_;
  std::vector<FileEntry> files_;
};

TEST_F(PublishArrayTest, RowsFollowTheirVerticesAcrossCompactions) {
  for (const ArrayLayout layout : {ArrayLayout::kRow, ArrayLayout::kChunk}) {
    const auto made_for = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
    ASSERT_OK(made_for);
    const std::uint64_t vertices = (*made_for)->manifest().info.vertices;
    const ArraySource source = Make(**made_for, layout);
    WriteAndCompact(path_, rng_);
    const std::string name = layout == ArrayLayout::kRow ? "emb" : "emb@2";
    const auto report = PublishMade(path_, {**made_for, source, 1 << 12}, JobControl(),
                                    [](ArrayChange& change, const ArraySource& moved) -> Status {
                                      RHIZOME_RETURN_IF_ERROR(change.AddVersion(moved, "emb"));
                                      return Status::Ok();
                                    });
    ASSERT_OK(report);
    EXPECT_GT(report->new_vertices, 0U);
    EXPECT_EQ(report->generation, (*made_for)->manifest().generation + 2);
    ExpectRows(name, vertices);
    std::filesystem::remove_all(dir_ / "job");
  }
}

// The path leads to a copy of the store that was compacted independently.
TEST_F(PublishArrayTest, ACopyThatHasDivergedIsRefused) {
  std::filesystem::copy(path_, dir_ / "copy", std::filesystem::copy_options::recursive);
  WriteAndCompact(path_, rng_);
  WriteAndCompact(dir_ / "copy", rng_);
  const auto made_for = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
  ASSERT_OK(made_for);
  const ArraySource source = Make(**made_for, ArrayLayout::kRow);
  const auto refused = PublishMade(dir_ / "copy", {**made_for, source}, JobControl(), AddVersion);
  EXPECT_STATUS(refused, kInvalidArgument);
  if (!refused) {
    EXPECT_NE(refused.error().message().find("diverged"), std::string::npos);
  }
  EXPECT_OK(PublishMade(path_, {**made_for, source}, JobControl(), AddVersion));
}

// A second compaction finishes while the rows are moved for the first.
TEST_F(PublishArrayTest, ACompactionMeanwhileMovesTheRowsOnceMore) {
  const auto made_for = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
  ASSERT_OK(made_for);
  const ArraySource source = Make(**made_for, ArrayLayout::kRow);
  WriteAndCompact(path_, rng_);
  bool once = false;
  const JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "move rows to the new order" && !std::exchange(once, true))
      WriteAndCompact(path_, rng_);
  });
  const auto report = PublishMade(path_, {**made_for, source}, control,
                                  [](ArrayChange& change, const ArraySource& moved) -> Status {
                                    RHIZOME_RETURN_IF_ERROR(change.Add(moved));
                                    return Status::Ok();
                                  });
  ASSERT_OK(report);
  EXPECT_EQ(report->generation, 5U);
  ExpectRows("emb", kVertices);
  // A change that fails is not retried.
  EXPECT_STATUS(PublishMade(path_, {**made_for, source}, JobControl(),
                            [](ArrayChange& change, const ArraySource& moved) -> Status {
                              RHIZOME_RETURN_IF_ERROR(change.Add(moved));
                              return Status::Ok();
                            }),
                kAlreadyExists);
}

// The rows of vertices in the delta are put into the delta. A compaction merges them.
TEST_F(PublishArrayTest, RowsOfNewVerticesStandInTheDelta) {
  std::map<std::string, std::uint64_t> had;
  for (const ArrayLayout layout : {ArrayLayout::kRow, ArrayLayout::kChunk}) {
    SCOPED_TRACE(ArrayLayoutName(layout));
    PutVertices(path_, 1 + rng_() % 200);
    const auto made_for = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
    ASSERT_OK(made_for);
    const auto graph = Graph::Open(std::as_const(**made_for));
    ASSERT_OK(graph);
    const std::uint64_t vertices = (*graph)->vertex_count();
    const ArraySource source = Make(**made_for, layout, vertices - kVertices);
    const std::uint64_t later = PutVertices(path_, 3);
    const std::string name = layout == ArrayLayout::kRow ? "emb@1" : "emb@2";
    const auto report = PublishMade(path_, {**made_for, source, 1 << 12}, JobControl(), AddVersion);
    ASSERT_OK(report);
    EXPECT_EQ(report->new_vertices, later);
    EXPECT_EQ(report->generation, (*made_for)->manifest().generation);
    ASSERT_NO_FATAL_FAILURE(ExpectRows(name, vertices, kVertices));
    had[name] = vertices;
    std::filesystem::remove_all(dir_ / "job");
  }
  WriteAndCompact(path_, rng_);
  for (const auto& [name, given] : had) {
    SCOPED_TRACE(name);
    ASSERT_NO_FATAL_FAILURE(ExpectRows(name, given));
  }
}

// A compaction that was running when the job began has not merged all vertices that the job saw.
TEST_F(PublishArrayTest, RowsOfVerticesThatACompactionDidNotSeeStandInItsDelta) {
  const std::uint64_t seen = PutVertices(path_, 1 + rng_() % 5);
  std::uint64_t unseen = 0;
  std::unique_ptr<Store> made_for;
  {
    auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    const JobControl control([&](const JobControl::Progress&) {
      if (made_for != nullptr) return;
      unseen = PutVertices(**graph, 1 + rng_() % 5);
      auto job = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
      ASSERT_OK(job);
      made_for = *std::move(job);
    });
    ASSERT_OK((*graph)->Compact({}, control));
  }
  ASSERT_NE(made_for, nullptr);
  const ArraySource source = Make(*made_for, ArrayLayout::kChunk, seen + unseen);
  const auto report = PublishMade(path_, {*made_for, source}, JobControl(), AddVersion);
  ASSERT_OK(report);
  EXPECT_EQ(report->generation, 2U);
  EXPECT_EQ(report->new_vertices, 0U);
  ExpectRows("emb", kVertices + seen + unseen, kVertices + seen);
}

TEST_F(PublishArrayTest, AnAddedArrayArrivesWhateverGenerationIsCurrent) {
  bool once = false;
  const JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase == "write array" && !std::exchange(once, true)) WriteAndCompact(path_, rng_);
  });
  const auto report = AddArray(FileSystem::Posix(), path_, FileOf("x", 0, kVertices), control);
  ASSERT_OK(report);
  EXPECT_TRUE(once);
  EXPECT_GT(report->new_vertices, 0U);
  ExpectRows("x", kVertices);
}

// Rows that were put, before or during the append, take precedence over appended rows. All other
// rows are unchanged.
TEST_F(PublishArrayTest, RowsAreAppendedAcrossCompactions) {
  for (const ArrayLayout layout : {ArrayLayout::kRow, ArrayLayout::kChunk}) {
    const std::string name = "by_" + std::string(ArrayLayoutName(layout));
    SCOPED_TRACE(name);
    AddArrayOptions options = FileOf(name, 0, 100);
    options.layout = layout;
    ASSERT_OK(AddArray(FileSystem::Posix(), path_, options, JobControl()));
    PutRows(path_, name, {10, 110}, 5000);
    bool once = false;
    const JobControl control([&](const JobControl::Progress& progress) {
      if (progress.phase != "write array" || std::exchange(once, true)) return;
      PutRows(path_, name, {20, 120}, 6000);
      WriteAndCompact(path_, rng_);
      PutRows(path_, name, {30, 130}, 7000);
    });
    options = FileOf(name, 100, 60);
    options.memory_bytes = 1 << 12;
    const auto report = AppendRows(FileSystem::Posix(), path_, name, options, control);
    ASSERT_OK(report);
    ASSERT_TRUE(once);
    EXPECT_EQ(report->rows_given, 160U);
    EXPECT_EQ(report->array.rows, VerticesOfGeneration());
    EXPECT_EQ(report->array.layout, layout);
    const std::map<VertexId, float> put = {{10, 5000},  {110, 5000}, {20, 6000},
                                           {120, 6000}, {30, 7000},  {130, 7000}};
    ASSERT_NO_FATAL_FAILURE(ExpectRows(name, 160, 160, put));
  }
}

TEST_F(PublishArrayTest, NothingIsAppendedToAnArrayThatIsGone) {
  ASSERT_OK(AddArray(FileSystem::Posix(), path_, FileOf("x", 0, 100), JobControl()));
  bool once = false;
  const JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase != "write array" || std::exchange(once, true)) return;
    ASSERT_OK(ArrayChange::Run(FileSystem::Posix(), path_, {},
                               [](ArrayChange& change) { return change.Drop("x"); }));
    WriteAndCompact(path_, rng_);
    ASSERT_OK(AddArray(FileSystem::Posix(), path_, FileOf("y", 0, 90), JobControl()));
    ASSERT_OK(ArrayChange::Run(FileSystem::Posix(), path_, {},
                               [](ArrayChange& change) { return change.Rename("y", "x"); }));
  });
  EXPECT_STATUS(AppendRows(FileSystem::Posix(), path_, "x", FileOf("x", 100, 60), control),
                kNotFound);
  EXPECT_TRUE(once);
  ExpectRows("x", 90);
}

// The embedding has one layer, on a path 0 -> 1 -> ... -> 9 with a delta. The job has seen part of
// the delta.
TEST(PublishedEmbeddingTest, WhatItHasNotSeenIsMarked) {
  GraphInput input;
  input.vertex_count = 10;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  for (VertexId v = 0; v < 9; ++v) {
    input.edges.src.push_back(v);
    input.edges.dst.push_back(v + 1);
  }
  for (const bool moved : {false, true}) {
    testing::TempDir dir;
    const Path path = dir / "g.rz";
    SCOPED_TRACE(moved ? "moved" : "carried over");
    GraphInput copy = input;
    ASSERT_OK(BuildStore(path, std::move(copy), {}));
    const auto write = [&](std::int64_t src, std::int64_t dst, bool compact) {
      auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
      ASSERT_OK(store);
      auto graph = Graph::Open(**store);
      ASSERT_OK(graph);
      WriteBatch batch;
      batch.PutEdge(src, dst);
      ASSERT_OK((*graph)->Write(batch));
      const JobControl control;
      if (compact) ASSERT_OK((*graph)->Compact({}, control));
    };
    write(7, 3, false);   // seen by the job
    write(9, 10, false);  // seen by the job: a new vertex
    const auto job = testing::OpenStoreGraph(path);
    ASSERT_OK(job);
    ArrayEntry entry{.name = "emb",
                     .rows = 11,
                     .dim = 1,
                     .dtype = DataType::kFloat32,
                     .layout = ArrayLayout::kChunk,
                     .codec = {.kind = CodecKind::kZstd, .level = 1},
                     .chunk_rows = 128,
                     .array_id = 5,
                     .attributes = {{"fanout", "all"},
                                    {"features", "feat"},
                                    {"hops", "1"},
                                    {"made_by", "infer layerwise"},
                                    {"snapshot", "generation 1 version 1 sequence " +
                                                     std::to_string(job->graph->sequence())}}};
    ASSERT_OK(CreateDirectories(FileSystem::Posix(), dir / "job"));
    auto writer = ChunkArrayWriter::Create(FileSystem::Posix(), dir / "job", entry);
    ASSERT_OK(writer);
    const std::vector<float> rows(11, 1);
    ASSERT_OK((*writer)->WriteChunk(0, std::as_bytes(std::span(rows))));
    const auto files = (*writer)->Finish();
    ASSERT_OK(files);
    const auto arrays = (*writer)->arrays();
    const auto publish = [&] {
      EXPECT_OK(PublishMade(path, {*job->store, {arrays, dir / "job", *files}}, JobControl(),
                            [](ArrayChange& change, const ArraySource& source) -> Status {
                              RHIZOME_RETURN_IF_ERROR(change.AddVersion(source, "emb"));
                              return Status::Ok();
                            }));
    };
    // The array is published either before the compaction, which then marks it, or after it.
    if (!moved) publish();
    write(1, 11, false);
    write(0, 5, true);
    if (moved) publish();
    const auto open = testing::OpenStoreGraph(path);
    ASSERT_OK(open);
    std::vector<int> stale;
    for (VertexId v = 0; v < 12; ++v) {
      std::byte flag{};
      ASSERT_OK(open->graph->ReadRows(StaleName("emb.v1"), std::span(&v, 1), std::span(&flag, 1)));
      if (flag != std::byte{0}) stale.push_back(static_cast<int>(v));
    }
    EXPECT_EQ(stale, (std::vector<int>{5, 11}));
  }
}

}  // namespace
}  // namespace rhizome
