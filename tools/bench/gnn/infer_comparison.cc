#include "tools/bench/gnn/infer_comparison.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

#include "index/input/npy.h"
#include "rhizome/chunk_array.h"
#include "tools/bench/gnn/bench_kernels.h"
#include "tools/bench/harness/child_process.h"
#include "tools/bench/harness/memory_group.h"
#include "tools/cli/json.h"
#include "tools/cli/sibling_binary.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kRowsAtOnce = 65536;

/// Writes the in-edges by target in vertex order, as the arrays that PyG and DGL call indptr and
/// indices.
Status WriteInEdges(const GraphSnapshot& graph, const Path& folder, const JobControl& control) {
  const std::uint64_t vertices = graph.vertex_count();
  std::vector<std::int64_t> offsets = {0};
  for (std::uint64_t v = 0; v < vertices; ++v) {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree,
                             graph.Degree(static_cast<VertexId>(v), Direction::kIn));
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(degree));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      NpyWriter pointers,
      NpyWriter::Create(folder / "indptr.npy", DataType::kInt64, offsets.size(), 1));
  RHIZOME_RETURN_IF_ERROR(pointers.Append(std::as_bytes(std::span(offsets))));
  RHIZOME_RETURN_IF_ERROR(pointers.Commit());
  RHIZOME_ASSIGN_OR_RETURN(NpyWriter indices,
                           NpyWriter::Create(folder / "indices.npy", DataType::kInt64,
                                             static_cast<std::uint64_t>(offsets.back()), 1));
  std::vector<std::int64_t> sources;
  for (std::uint64_t v = 0; v < vertices; ++v) {
    if (v % kRowsAtOnce == 0) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "edges for PyG", .done = v, .total = vertices}));
    }
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<Neighbor> neighbors,
                             graph.Neighbors(static_cast<VertexId>(v), Direction::kIn));
    sources.clear();
    for (const Neighbor& neighbor : neighbors) sources.push_back(neighbor.vertex);
    RHIZOME_RETURN_IF_ERROR(indices.Append(std::as_bytes(std::span(sources))));
  }
  return indices.Commit();
}

/// Writes the features in vertex-id order. They are all held in memory, as in the peer.
Status WriteFeatures(const GraphSnapshot& graph, const ChunkArray& array, const Path& path,
                     const JobControl& control) {
  const ArrayEntry& entry = array.entry();
  const std::uint64_t row_bytes = entry.row_bytes();
  std::vector<std::byte> all(entry.rows * row_bytes);
  std::vector<std::byte> rows;
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "features for PyG", .done = chunk, .total = entry.chunk_count()}));
    rows.resize(array.RowsInChunk(chunk) * row_bytes);
    RHIZOME_RETURN_IF_ERROR(array.ReadChunk(chunk, rows));
    for (std::uint64_t r = 0; r < array.RowsInChunk(chunk); ++r) {
      const auto vertex = static_cast<std::uint64_t>(
          *graph.VertexAt(static_cast<Row>(chunk * entry.chunk_rows + r)));
      if (vertex >= entry.rows) {
        return Status::InvalidArgument(
            "the other library cannot read a store with deleted vertices");
      }
      std::memcpy(all.data() + vertex * row_bytes, rows.data() + r * row_bytes, row_bytes);
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(NpyWriter writer,
                           NpyWriter::Create(path, entry.dtype, entry.rows, entry.dim));
  RHIZOME_RETURN_IF_ERROR(writer.Append(all));
  return writer.Commit();
}

}  // namespace

InferComparison::InferComparison(const BenchInferOptions& options, BenchGraph graph,
                                 ScratchFolder scratch)
    : options_(options),
      graph_(std::move(graph)),
      scratch_(std::make_unique<ScratchFolder>(std::move(scratch))) {}

Result<std::unique_ptr<InferComparison>> InferComparison::Create(const BenchInferOptions& options,
                                                                 const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(BenchGraph graph, OpenBenchGraph(options.graph, control));
  RHIZOME_ASSIGN_OR_RETURN(ScratchFolder scratch, ScratchFolder::Create(options.graph.dir));
  std::unique_ptr<InferComparison> contest(
      new InferComparison(options, std::move(graph), std::move(scratch)));
  RHIZOME_RETURN_IF_ERROR(contest->MakeModels());
  return contest;
}

InferComparison::~InferComparison() {
  if (!options_.graph.store) return;
  const Result<std::string> self = SiblingPath("rhizome");
  if (!self) return;
  static_cast<void>(
      RunChild({*self, "array", "drop", graph_.store->path().string(), kArray, "--all-versions"}));
}

Path InferComparison::ModelFile(const std::string& model) const {
  return scratch() / fmt::format("{}.safetensors", model);
}

Status InferComparison::MakeModels() {
  const ArrayEntry* const features = store().manifest().FindArray(options_.features);
  if (features == nullptr) {
    return Status::InvalidArgument(
        fmt::format("the store has no array {}: name one with --features", options_.features));
  }
  for (const std::string& model : options_.models) {
    RHIZOME_RETURN_IF_ERROR(
        SaveUntrainedModel({.kind = model,
                            .layers = options_.layers,
                            .hidden = static_cast<std::int64_t>(options_.hidden)},
                           {.columns = static_cast<std::int64_t>(features->dim),
                            .vertex_types = graph().vertex_types(),
                            .edge_types = graph().edge_types()},
                           options_.graph.seed, ModelFile(model)));
  }
  return Status::Ok();
}

Result<Json> InferComparison::Infer(const std::vector<std::string>& flags,
                                    std::optional<std::uint64_t> limit_bytes, double kill_after,
                                    const std::string& model) {
  RHIZOME_ASSIGN_OR_RETURN(const std::string self, SiblingPath("rhizome"));
  std::vector<std::string> command = {
      self,
      "infer",
      store().path().string(),
      "--json",
      "--progress",
      "json",
      "--model-file",
      ModelFile(model.empty() ? options_.models.front() : model).string(),
      "--features",
      options_.features,
      "--out",
      kArray,
      "--new-version",
      "--keep",
      "1",
      "--seed",
      std::to_string(options_.graph.seed),
      "--threads",
      std::to_string(options_.graph.threads)};
  command.insert(command.end(), flags.begin(), flags.end());
  std::optional<MemoryGroup> group;
  if (limit_bytes) {
    command.insert(command.end(), {"--memory", std::to_string(*limit_bytes)});
    // The memory at the start is unknown before the first report.
    constexpr std::uint64_t kBareBytes = std::uint64_t{320} << 20;
    RHIZOME_ASSIGN_OR_RETURN(
        MemoryGroup made,
        MemoryGroup::Create(*limit_bytes + (base_bytes_ == 0 ? kBareBytes : base_bytes_)));
    group.emplace(std::move(made));
    command = group->Command(command);
  }
  if (kill_after > 0) {
    // The time begins at its first output, when the libraries are loaded and the job begins.
    const std::vector<std::string> shell = {
        "sh",
        "-c",
        "log=$1 && after=$2 && shift 2 && { \"$@\" & } && job=$!; "
        "until [ -s \"$log\" ] || ! kill -0 $job; do sleep 0.005; done; "
        "sleep $after; kill -KILL $job && exit 137; wait $job",
        "sh",
        (scratch() / "errors").string(),
        fmt::format("{:.3f}", kill_after)};
    command.insert(command.begin(), shell.begin(), shell.end());
  }
  dropped_caches_ = DropPageCache() && dropped_caches_;
  RHIZOME_ASSIGN_OR_RETURN(Json report, RunForJson(command, "infer", scratch(), kill_after > 0));
  if (report.contains("base_memory_bytes")) base_bytes_ = report["base_memory_bytes"];
  return report;
}

Status InferComparison::WritePeerFiles(const JobControl& control) {
  if (wrote_peer_files_) return Status::Ok();
  const Path folder = scratch() / "peer";
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(FileSystem::Posix(), folder));
  RHIZOME_RETURN_IF_ERROR(WriteInEdges(graph(), folder, control));
  RHIZOME_ASSIGN_OR_RETURN(const auto features, store().OpenArray(options_.features));
  RHIZOME_RETURN_IF_ERROR(WriteFeatures(graph(), *features, folder / "features.npy", control));
  wrote_peer_files_ = true;
  return Status::Ok();
}

Result<Json> InferComparison::Peer(const std::vector<std::string>& flags,
                                   const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(WritePeerFiles(control));
  std::vector<std::string> command = {options_.peer_python,
                                      options_.peer_script,
                                      (scratch() / "peer").string(),
                                      "--layers",
                                      std::to_string(options_.layers),
                                      "--hidden",
                                      std::to_string(options_.hidden),
                                      "--threads",
                                      std::to_string(options_.graph.threads),
                                      "--batches",
                                      std::to_string(options_.peer_batches)};
  command.insert(command.end(), flags.begin(), flags.end());
  return RunForJson(command, "PyG", scratch());
}

}  // namespace rhizome
