// The scenarios of Scenarios(): ingestion, updates, arrays, compaction, attributes, publishing,
// texts and arrays of one vertex type, each a function Run... that runs its steps through a
// Recorder. Also makes the small stores of the damage tests (MakeSmallStore).

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <utility>

#include "index/arrays/publish_array.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/text_column.h"
#include "reliability/damage/damage_run.h"
#include "reliability/harness/description.h"
#include "reliability/harness/history.h"
#include "rhizome/array_add.h"
#include "rhizome/array_change.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "storage/array/array_facts.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/exceptions.h"
#include "storage/io/files.h"
#include "storage/io/job_folder.h"
#include "testing/graph_model.h"
#include "testing/update_model.h"

namespace rhizome::testing {
namespace {

constexpr std::uint64_t kScenariosDim = 3;
constexpr std::uint64_t kChunkRows = 128;

StoreId SmallId() {
  StoreId id;
  id.bytes.fill(std::byte{7});
  return id;
}

/// Returns a typed, weighted graph with names as ids, isolated vertices and an array in row layout.
GraphInput SmallInput(const SmallSize& size) {
  std::mt19937_64 rng(1);
  GraphInput input = RandomGraph(rng, {.vertices = size.vertices,
                                       .edges = size.edges,
                                       .vertex_types = 2,
                                       .edge_types = 2,
                                       .weighted = true,
                                       .id_kind = ExternalIdKind::kString});
  UpdateModel::AddRows(input);
  return input;
}

/// A store that is open for writing, and its graph.
struct Live {
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
};

Result<Live> OpenLive(FileSystem& fs) {
  Live live;
  RHIZOME_ASSIGN_OR_RETURN(live.store, Store::Open(fs, kStorePath, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(live.graph, Graph::Open(*live.store));
  return live;
}

/// Returns batch `number` of a history: new vertices and edges, replaced and deleted ones, rows.
WriteBatch Batch(const Graph& graph, int number) {
  WriteBatch batch;
  const auto old = [&](int i) {
    std::vector<ExternalId> ids;
    for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
      if (graph.IsDeleted(static_cast<VertexId>(v))) continue;
      auto id = graph.ExternalIdOf(static_cast<VertexId>(v));
      if (!id) throw std::bad_alloc();  // Guarded translates it; no other error is possible
      ids.push_back(*std::move(id));
    }
    return ids[static_cast<std::size_t>(i * 5 + number) % ids.size()];
  };
  // Longer than a string that needs no allocation.
  const std::string fresh = "a vertex that is new " + std::to_string(number);
  batch.PutEdge(old(0), ExternalId(fresh), {.weight = static_cast<float>(number)});
  batch.PutEdge(ExternalId(fresh), old(1), {.type = "edge1"});
  batch.UpsertEdge(old(0), old(2), {.weight = 9});
  batch.DeleteEdge(old(1), old(2), "edge0");
  if (number % 2 == 1) batch.DeleteVertex(old(3));
  const float row[kScenariosDim] = {static_cast<float>(number), 2, 3};
  batch.PutRow(old(4), "feat", std::span<const float>(row));
  return batch;
}

Status WriteBatchOf(Graph& graph, int number, bool sync = true) {
  // Making a batch throws if memory is short.
  RHIZOME_ASSIGN_OR_RETURN(const WriteBatch batch,
                           Guarded([&]() -> Result<WriteBatch> { return Batch(graph, number); }));
  return AsStatus(graph.Write(batch, {.sync = sync}));
}

/// An array whose values follow a formula, as a job leaves it in its scratch folder.
struct Made {
  Path root;
  std::vector<ArrayEntry> arrays;
  std::vector<FileEntry> files;
  ArraySource source() const { return {arrays, root, files}; }
};

Result<Made> MakeArray(FileSystem& fs, const Store& store, const Path& folder, std::uint64_t rows,
                       int number, ArrayLayout layout, std::uint64_t dim) {
  Made made{.root = folder / ("job" + std::to_string(number)), .arrays = {}, .files = {}};
  RHIZOME_RETURN_IF_ERROR(testing::AsStatus(ClaimJobFolder(fs, made.root)));
  ArrayEntry entry{.name = "emb",
                   .rows = rows,
                   .dim = dim,
                   .dtype = DataType::kFloat32,
                   .layout = layout,
                   .codec = {},
                   .chunk_rows = kChunkRows,
                   .array_id = store.manifest().arrays.size() + 70 + std::uint64_t(number),
                   .attributes = {}};
  if (layout == ArrayLayout::kChunk) {
    entry.codec = {.kind = CodecKind::kZstd, .level = 1};
    entry.inner_rows = 4;
  }
  RHIZOME_ASSIGN_OR_RETURN(auto writer, ChunkArrayWriter::Create(fs, made.root, entry));
  std::vector<float> values(rows * dim);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i) + static_cast<float>(number) / 8;
  RHIZOME_RETURN_IF_ERROR(writer->WriteChunk(0, std::as_bytes(std::span(values))));
  RHIZOME_ASSIGN_OR_RETURN(made.files, writer->Finish());
  made.arrays = writer->arrays();
  return made;
}

Status Nothing(StoreDisk&) { return Status::Ok(); }

Status RunIngestion(StoreDisk& disk, Recorder& recorder) {
  return recorder.Step([&] { return IngestSmall(disk); });
}

/// Runs a writing step. The handle must show what a new reader sees and, after a failure, accept no
/// further writes.
Status WriteStep(Recorder& recorder, Graph& graph, const std::function<Status()>& write,
                 bool durable = true) {
  const Status status = recorder.Step(write, durable);
  if (status.ok() && !recorder.seen().empty()) {
    RHIZOME_ASSIGN_OR_RETURN(const std::string seen, Describe(graph));
    if (seen != recorder.seen()) recorder.Complain("a writer sees another store than a reader");
  }
  if (!status.ok() && recorder.expects_fail_stop() && WriteBatchOf(graph, 99).ok())
    recorder.Complain("a handle whose write failed took another");
  return status;
}

Status RunUpdates(StoreDisk& disk, Recorder& recorder) {
  for (int round = 0; round < 2; ++round) {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    for (int i = 0; i < 5; ++i) {
      const bool sync = i % 2 == 0;
      RHIZOME_RETURN_IF_ERROR(WriteStep(
          recorder, *live.graph, [&] { return WriteBatchOf(*live.graph, round * 5 + i, sync); },
          sync));
    }
  }
  return Status::Ok();
}

using ArraySteps = std::function<Status(ArrayChange&, const ArraySource&)>;

/// Creates an array as a job does, and lets `steps` publish it.
Status ChangeArrays(StoreDisk& disk, int number, ArrayLayout layout, const ArraySteps& steps,
                    std::uint64_t dim = kScenariosDim) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(disk, kStorePath, Store::Mode::kRead));
  const std::uint64_t rows = store->manifest().info.vertices;
  RHIZOME_ASSIGN_OR_RETURN(const Made made, Guarded([&] {
                             return MakeArray(disk, *store, kStorePath / "scratch", rows, number,
                                              layout, dim);
                           }));
  return ArrayChange::Run(disk, kStorePath, {},
                          [&](ArrayChange& change) { return steps(change, made.source()); });
}

Status RunArrays(StoreDisk& disk, Recorder& recorder) {
  const std::pair<ArrayLayout, ArraySteps> changes[] = {
      {ArrayLayout::kRow,
       [](ArrayChange& change, const ArraySource& source) -> Status {
         return AsStatus(change.AddVersion(source, "emb"));
       }},
      {ArrayLayout::kChunk,
       [](ArrayChange& change, const ArraySource& source) -> Status {
         RHIZOME_RETURN_IF_ERROR(change.AddVersion(source, "emb"));
         return change.SetAlias("emb", "live", 2);
       }},
      {ArrayLayout::kRow,
       [](ArrayChange& change, const ArraySource& source) -> Status {
         return AsStatus(change.Replace("emb@live", source));
       }},
      {ArrayLayout::kChunk,
       [](ArrayChange& change, const ArraySource&) { return change.Drop("emb@1"); }},
      {ArrayLayout::kRow,
       [](ArrayChange& change, const ArraySource&) { return change.Rename("emb", "vec"); }},
  };
  int number = 0;
  for (const auto& [layout, steps] : changes) {
    ++number;
    RHIZOME_RETURN_IF_ERROR(recorder.Step([&, &layout = layout, &steps = steps] {
      return ChangeArrays(disk, number, layout, steps);
    }));
  }
  return Status::Ok();
}

Status Ingest(FileSystem& fs, const SmallSize& size) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(fs, kStorePath, SmallId()));
  BuildOptions options;
  options.partition.kind = PartitionerKind::kRandom;
  options.partition.partitions = 2;
  return BuildGeneration(*store, SmallInput(size), options, JobControl());
}

Status IngestAndUpdate(StoreDisk& disk, const SmallSize& size) {
  RHIZOME_RETURN_IF_ERROR(Ingest(disk, size));
  RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
  for (int i = 0; i < 3; ++i) RHIZOME_RETURN_IF_ERROR(WriteBatchOf(*live.graph, i));
  return Status::Ok();
}

Status IngestSmallAndUpdate(StoreDisk& disk) { return IngestAndUpdate(disk, {}); }

Status Compact(Graph& graph, bool repartition) {
  CompactOptions options;
  options.repartition = repartition;
  options.keep_generations = repartition ? 0 : 1;
  options.partition.kind = PartitionerKind::kHash2d;
  return AsStatus(graph.Compact(options, JobControl()));
}

Status RunCompaction(StoreDisk& disk, Recorder& recorder) {
  RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
  for (int round = 0; round < 2; ++round) {
    const std::string before = recorder.seen();
    RHIZOME_RETURN_IF_ERROR(
        WriteStep(recorder, *live.graph, [&] { return Compact(*live.graph, round == 1); }));
    if (!before.empty() && VerticesIn(before) != VerticesIn(recorder.seen()))
      recorder.Complain("compaction changed what readers see");
    RHIZOME_RETURN_IF_ERROR(
        WriteStep(recorder, *live.graph, [&] { return WriteBatchOf(*live.graph, 10 + round); }));
  }
  return Status::Ok();
}

// Compacts through a handle that is open for reading, and writes through another one afterwards.
// One round: with more openings, RocksDB compacts the catalogue in the background, and its debug
// assertions abort if the disk fails at that time.
Status RunCompactionBeside(StoreDisk& disk, Recorder& recorder) {
  RHIZOME_RETURN_IF_ERROR(recorder.Step([&]() -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Open(disk, kStorePath, Store::Mode::kRead));
    RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
    return Compact(*graph, false);
  }));
  return recorder.Step([&]() -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    return WriteBatchOf(*live.graph, 10);
  });
}

/// Writes an npy file of rows for `array add` and `array append`: float32, little-endian.
Status WriteRows(FileSystem& fs, const Path& path, std::uint64_t rows, float first) {
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, path.parent_path()));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(kScenariosDim) + "), }";
  constexpr std::size_t kHeadBytes = 10;
  header.resize((kHeadBytes + header.size() + 64) / 64 * 64 - kHeadBytes, ' ');
  header.back() = '\n';
  std::string text = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0';
  text += header;
  for (std::uint64_t i = 0; i < rows * kScenariosDim; ++i) {
    const float value = first + static_cast<float>(i);
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return WriteWholeFile(fs, path, std::as_bytes(std::span(text)));
}

Status DeleteVertices(StoreDisk& disk, int count) {
  RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
  WriteBatch batch;
  for (std::uint64_t v = 0; v < live.graph->vertex_count() && count > 0; ++v) {
    const auto vertex = static_cast<VertexId>(v);
    if (live.graph->IsDeleted(vertex)) continue;
    RHIZOME_RETURN_IF_ERROR(Guarded([&]() -> Status {
      RHIZOME_ASSIGN_OR_RETURN(ExternalId id, live.graph->ExternalIdOf(vertex));
      batch.DeleteVertex(std::move(id));
      return Status::Ok();
    }));
    --count;
  }
  return AsStatus(live.graph->Write(batch, {.sync = true}));
}

// Adds rows from files to arrays that are new or not yet full, and drops arrays.
Status RunAttributes(StoreDisk& disk, Recorder& recorder) {
  AddArrayOptions options;
  options.file = {.name = "att", .path = kStorePath.parent_path() / "rows.npy"};
  const Path more = kStorePath.parent_path() / "more.npy";
  RHIZOME_RETURN_IF_ERROR(Guarded([&]() -> Status {
    RHIZOME_RETURN_IF_ERROR(WriteRows(disk, options.file.path, 10, 1));
    return WriteRows(disk, more, 4, 100);
  }));
  RHIZOME_RETURN_IF_ERROR(
      recorder.Step([&] { return AsStatus(AddArray(disk, kStorePath, options, JobControl())); }));
  options.file.path = more;
  RHIZOME_RETURN_IF_ERROR(recorder.Step(
      [&] { return AsStatus(AppendRows(disk, kStorePath, "att", options, JobControl())); }));
  RHIZOME_RETURN_IF_ERROR(recorder.Step([&] { return DeleteVertices(disk, 2); }));
  RHIZOME_RETURN_IF_ERROR(recorder.Step([&]() -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    return Compact(*live.graph, false);
  }));
  return recorder.Step([&] {
    return ArrayChange::Run(disk, kStorePath, {},
                            [&](ArrayChange& change) { return change.Drop("att", true); });
  });
}

// Publishes as an inference does: the rows were computed for a snapshot, including vertices in its
// delta; since then the store was compacted and vertices were added.
Status RunPublishing(StoreDisk& disk, Recorder& recorder) {
  RHIZOME_ASSIGN_OR_RETURN(const auto seen, Store::Open(disk, kStorePath, Store::Mode::kRead));
  std::uint64_t vertices = 0;
  {
    RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(std::as_const(*seen)));
    vertices = graph->vertex_count();
  }
  RHIZOME_ASSIGN_OR_RETURN(const Made made, Guarded([&] {
                             return MakeArray(disk, *seen, kStorePath.parent_path(), vertices, 1,
                                              ArrayLayout::kRow, kScenariosDim);
                           }));
  {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    RHIZOME_RETURN_IF_ERROR(recorder.Step([&] { return Compact(*live.graph, true); }));
    RHIZOME_RETURN_IF_ERROR(recorder.Step([&] { return WriteBatchOf(*live.graph, 20); }));
  }
  return recorder.Step([&] {
    return Guarded([&] {
      return AsStatus(PublishMade(
          kStorePath, {.made_for = *seen, .source = made.source(), .memory_bytes = 1 << 12},
          JobControl(), [](ArrayChange& change, const ArraySource& source) -> Status {
            return AsStatus(change.AddVersion(source, "emb"));
          }));
    });
  });
}

/// Ingests the small graph with texts: the array "motto", and "memo" of the edges.
Status IngestTexts(StoreDisk& disk) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(disk, kStorePath, SmallId()));
  return Guarded([&] {
    GraphInput input = SmallInput({});
    const auto texts = std::make_shared<const std::vector<std::string>>(
        std::vector<std::string>{"a text of the ingestion", "another text of it"});
    ArrayInput motto;
    motto.name = "motto";
    motto.dim = 1;
    motto.dtype = DataType::kInt64;
    motto.write_texts = WriterOf(texts);
    motto.read_rows = [](std::span<const VertexId> vertices, std::span<std::byte> out) {
      for (std::size_t i = 0; i < vertices.size(); ++i) {
        const std::int64_t code = vertices[i] % 3 - 1;
        std::memcpy(out.data() + i * sizeof(code), &code, sizeof(code));
      }
      return Status::Ok();
    };
    input.arrays.push_back(std::move(motto));
    EdgeAttribute& memo = input.edges.attributes.emplace_back("memo");
    memo.attributes = {{std::string(kTypeAttribute), std::string(kTypeText)}};
    for (std::size_t i = 0; i < input.edges.size(); ++i)
      memo.Add(static_cast<std::int64_t>(i % 3) - 1);
    input.attribute_texts["memo"] = {WriterOf(texts)};
    BuildOptions options;
    options.partition.kind = PartitionerKind::kRandom;
    options.partition.partitions = 2;
    return BuildGeneration(*store, std::move(input), options, JobControl());
  });
}

// Writes texts that are new, known, and added by an earlier commit, with compactions between.
Status RunTexts(StoreDisk& disk, Recorder& recorder) {
  RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
  for (int i = 0; i < 5; ++i) {
    const auto write = [&]() -> Status {
      WriteBatch batch = Batch(*live.graph, i);
      const ExternalId vertex("a vertex that is new " + std::to_string(i));
      const std::string text = "a text that is new, number " + std::to_string(i / 2);
      batch.PutTexts(vertex, "motto", {text});
      batch.PutEdge(vertex, vertex, {.attributes = {text + " of an edge"}});
      batch.PutEdge(vertex, vertex, {.attributes = {"another text of it"}});
      return AsStatus(live.graph->Write(batch, {.sync = true}));
    };
    RHIZOME_RETURN_IF_ERROR(WriteStep(recorder, *live.graph, [&] { return Guarded(write); }));
    if (i % 2 == 0) continue;
    const std::string before = recorder.seen();
    RHIZOME_RETURN_IF_ERROR(
        WriteStep(recorder, *live.graph, [&] { return Compact(*live.graph, i == 3); }));
    if (!before.empty() && VerticesIn(before) != VerticesIn(recorder.seen()))
      recorder.Complain("compaction changed what readers see");
  }
  return Status::Ok();
}

constexpr const char* kRareType = "vertex1";

/// Returns whether the files of a bound array and of its checksums leave chunks out.
bool LeavesChunksOut(const Manifest& manifest, const std::string& array) {
  return std::ranges::any_of(manifest.arrays, [&](const ArrayEntry& entry) {
    return entry.name.starts_with(array) &&
           ListedChunks(entry, manifest.files).size() < entry.chunk_count();
  });
}

/// Ingests a graph with few vertices of the type kRareType, and arrays of this type: "look" in row
/// layout and "tint" in compressed chunks.
Status IngestBound(StoreDisk& disk) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store, Store::Create(disk, kStorePath, SmallId()));
  RHIZOME_RETURN_IF_ERROR(Guarded([&]() -> Status {
    GraphInput input = SmallInput({.vertices = 24});
    for (std::uint64_t v = 0; v < input.vertex_count; ++v) input.vertex_type[v] = v % 6 == 5;
    for (const char* name : {"look", "tint"}) {
      ArrayInput& array = input.arrays.emplace_back(input.arrays.front());
      array.name = name;
      array.chunk_rows = 4;
      array.attributes.emplace_back(kVertexTypeAttribute, kRareType);
    }
    input.arrays.back().layout = ArrayLayout::kChunk;
    input.arrays.back().codec = {.kind = CodecKind::kZstd, .level = 1};
    BuildOptions options;
    options.partition.kind = PartitionerKind::kRandom;
    options.partition.partitions = 2;
    return BuildGeneration(*store, std::move(input), options, JobControl());
  }));
  for (const char* name : {"look", "tint"})
    if (!LeavesChunksOut(store->manifest(), name))
      return Status::NotFound("every chunk of a bound array is stored");
  return Status::Ok();
}

/// Returns Batch(), and adds a vertex of kRareType, with rows if `number` is even.
WriteBatch BatchOfRareType(const Graph& graph, int number) {
  WriteBatch batch = Batch(graph, number);
  const ExternalId fresh("a rare vertex that is new " + std::to_string(number));
  batch.PutVertex(fresh, kRareType);
  const float row[kScenariosDim] = {static_cast<float>(number), 5, 6};
  for (const char* name : {"look", "tint"})
    if (number % 2 == 0) batch.PutRow(fresh, name, std::span<const float>(row));
  return batch;
}

Status WriteOfRareType(Graph& graph, int number) {
  RHIZOME_ASSIGN_OR_RETURN(const WriteBatch batch, Guarded([&]() -> Result<WriteBatch> {
                             return BatchOfRareType(graph, number);
                           }));
  return AsStatus(graph.Write(batch, {.sync = true}));
}

/// Deletes the first vertex of kRareType.
Status DeleteRareVertex(Graph& graph) {
  return Guarded([&]() -> Status {
    WriteBatch batch;
    for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
      const auto vertex = static_cast<VertexId>(v);
      if (graph.IsDeleted(vertex)) continue;
      RHIZOME_ASSIGN_OR_RETURN(const TypeId type, graph.TypeOf(vertex));
      if (graph.vertex_types()[type] != kRareType) continue;
      RHIZOME_ASSIGN_OR_RETURN(ExternalId id, graph.ExternalIdOf(vertex));
      batch.DeleteVertex(std::move(id));
      break;
    }
    return AsStatus(graph.Write(batch, {.sync = true}));
  });
}

Status CompactBound(StoreDisk& disk, Recorder& recorder, bool repartition) {
  RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
  const std::string before = recorder.seen();
  RHIZOME_RETURN_IF_ERROR(
      WriteStep(recorder, *live.graph, [&] { return Compact(*live.graph, repartition); }));
  if (!before.empty() && VerticesIn(before) != VerticesIn(recorder.seen()))
    recorder.Complain("compaction changed what readers see");
  return Status::Ok();
}

// Adds an array of one vertex type, which has rows of vertices that are new, and appends to it.
// Vertices of the type are put and deleted, and the store is compacted, in between. The appended
// row is of a vertex of the generation: rows of later vertices are put before the array is
// replaced.
Status RunBound(StoreDisk& disk, Recorder& recorder) {
  AddArrayOptions options;
  options.file = {.name = "bound", .path = kStorePath.parent_path() / "rows.npy"};
  options.file.vertex_type = kRareType;
  options.chunk_rows = 4;
  const Path more = kStorePath.parent_path() / "more.npy";
  RHIZOME_RETURN_IF_ERROR(Guarded([&]() -> Status {
    RHIZOME_RETURN_IF_ERROR(WriteRows(disk, options.file.path, 5, 1));
    return WriteRows(disk, more, 1, 100);
  }));
  const auto with_graph = [&](const std::function<Status(Graph&)>& write) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    return WriteStep(recorder, *live.graph, [&] { return write(*live.graph); });
  };
  const auto write = [&](int number) {
    return with_graph([number](Graph& graph) { return WriteOfRareType(graph, number); });
  };
  RHIZOME_RETURN_IF_ERROR(write(0));
  RHIZOME_RETURN_IF_ERROR(recorder.StepWithRows(
      [&] { return AsStatus(AddArray(disk, kStorePath, options, JobControl())); }));
  RHIZOME_RETURN_IF_ERROR(write(1));
  RHIZOME_RETURN_IF_ERROR(CompactBound(disk, recorder, false));
  options.file.path = more;
  RHIZOME_RETURN_IF_ERROR(recorder.Step(
      [&] { return AsStatus(AppendRows(disk, kStorePath, "bound", options, JobControl())); }));
  RHIZOME_RETURN_IF_ERROR(with_graph(DeleteRareVertex));
  RHIZOME_RETURN_IF_ERROR(write(2));
  return CompactBound(disk, recorder, true);
}

}  // namespace

Status IngestSmall(FileSystem& fs) { return Ingest(fs, {}); }

Status WriteOneMore(Store& store) {
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(store));
  WriteBatch batch;
  batch.PutVertex(ExternalId("one more"));
  RHIZOME_RETURN_IF_ERROR(graph->Write(batch));
  return AsStatus(graph->Find(ExternalId("one more")));
}

Result<SmallStore> MakeSmallStore(const SmallSize& size) {
  StoreDisk disk;
  SmallStore made;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(disk, kStorePath.parent_path()));
  RHIZOME_RETURN_IF_ERROR(IngestAndUpdate(disk, size));
  const auto publish = [&](int number, ArrayLayout layout) {
    return ChangeArrays(
        disk, number, layout,
        [](ArrayChange& change, const ArraySource& source) {
          return AsStatus(change.AddVersion(source, "emb"));
        },
        size.dim);
  };
  RHIZOME_RETURN_IF_ERROR(publish(1, ArrayLayout::kRow));
  made.earlier = disk.Image();
  RHIZOME_RETURN_IF_ERROR(publish(2, ArrayLayout::kChunk));
  {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    RHIZOME_RETURN_IF_ERROR(WriteBatchOf(*live.graph, 7));
  }
  made.now = disk.Image();
  {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    for (int i = 8; i < 10; ++i) RHIZOME_RETURN_IF_ERROR(WriteBatchOf(*live.graph, i));
    made.open = disk.ImageAfterCrash(FakeFileSystem::CrashMode::kKeepUnsynced, 0);
    RHIZOME_ASSIGN_OR_RETURN(made.open_description, Describe(*live.graph));
  }
  StoreDisk closed(made.now);
  RHIZOME_ASSIGN_OR_RETURN(made.description, Describe(closed, kStorePath));
  return made;
}

Result<FakeImage> MakeBoundStore() {
  StoreDisk disk;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(disk, kStorePath.parent_path()));
  RHIZOME_RETURN_IF_ERROR(IngestBound(disk));
  {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    RHIZOME_RETURN_IF_ERROR(WriteOfRareType(*live.graph, 0));
  }
  return disk.Image();
}

namespace {

Status ShareAStore(std::string& wrong) {
  StoreDisk disk;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(disk, kStorePath.parent_path()));
  RHIZOME_RETURN_IF_ERROR(IngestSmallAndUpdate(disk));
  RHIZOME_RETURN_IF_ERROR(ChangeArrays(
      disk, 1, ArrayLayout::kRow, [](ArrayChange& change, const ArraySource& source) -> Status {
        RHIZOME_RETURN_IF_ERROR(change.AddVersion(source, "emb"));
        return AsStatus(change.AddVersion(source, "emb"));
      }));
  const auto reader = [&] { return Store::Open(disk, kStorePath, Store::Mode::kRead); };
  RHIZOME_ASSIGN_OR_RETURN(const auto first, reader());
  RHIZOME_ASSIGN_OR_RETURN(const std::string before, Describe(*first));
  RHIZOME_RETURN_IF_ERROR(
      ChangeArrays(disk, 2, ArrayLayout::kRow,
                   [](ArrayChange& change, const ArraySource&) { return change.Drop("emb@1"); }));
  RHIZOME_ASSIGN_OR_RETURN(const auto second, reader());
  RHIZOME_ASSIGN_OR_RETURN(const std::string between, Describe(*second));
  {
    RHIZOME_ASSIGN_OR_RETURN(const Live live, OpenLive(disk));
    const auto other = Store::Open(disk, kStorePath, Store::Mode::kWrite);
    if (other || other.error().code() != StatusCode::kBusy) wrong = "a second writer is let in";
    if (Describe(*first).value_or("") != before)
      wrong = "a reader lost the version that it saw when an array was dropped";
    RHIZOME_RETURN_IF_ERROR(Compact(*live.graph, true));
    RHIZOME_RETURN_IF_ERROR(WriteBatchOf(*live.graph, 30));
  }
  RHIZOME_RETURN_IF_ERROR(OpenLive(disk));
  if (Describe(*second).value_or("") != between)
    wrong = "a reader lost the generation that it saw when the store was compacted";
  return Status::Ok();
}

}  // namespace

std::optional<std::string> CheckSharing() {
  std::string wrong;
  const Status status = ShareAStore(wrong);
  if (!status.ok()) return "fails: " + status.ToString();
  return wrong.empty() ? std::nullopt : std::optional(wrong);
}

const std::vector<Scenario>& Scenarios() {
  static const std::vector<Scenario> scenarios = {
      {"ingestion", Nothing, RunIngestion},
      {"updates", IngestSmall, RunUpdates},
      {"arrays", IngestSmall, RunArrays},
      {"compaction", IngestSmallAndUpdate, RunCompaction},
      {"compaction_beside", IngestSmallAndUpdate, RunCompactionBeside},
      {"attributes", IngestSmall, RunAttributes},
      {"publishing", IngestSmallAndUpdate, RunPublishing},
      {"texts", IngestTexts, RunTexts},
      {"bound", IngestBound, RunBound},
  };
  return scenarios;
}

}  // namespace rhizome::testing
