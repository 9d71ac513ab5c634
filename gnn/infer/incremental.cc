#include "gnn/infer/incremental.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "cache/job/compute_threads.h"
#include "gnn/infer/layer_pass.h"
#include "gnn/ops/dense.h"
#include "index/base/staleness.h"
#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/delta/stale_vertices.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {
// An incremental inference has three steps. PlanIncremental finds the newest version of the array,
// checks by its attributes whether its rows can be reused, and finds the stale rows. The job
// computes these. MergeIncremental writes the whole array from both.

std::string_view FactOf(const ArrayEntry& array, std::string_view name) {
  for (const auto& [key, value] : array.attributes) {
    if (key == name) return value;
  }
  return {};
}

const ArrayEntry* NewestOf(const Manifest& manifest, const std::string& name) {
  const std::vector<std::uint64_t> versions = VersionsOf(manifest, name);
  return FindStoredArray(manifest.arrays,
                         versions.empty() ? name : VersionName(name, versions.back()));
}

namespace {

/// Returns why the rows of `old` cannot be reused, or an empty string if they can.
std::string ReuseObstacle(const ArrayEntry& old, const ArrayEntry& made) {
  for (const char* const fact : kIncrementalFacts) {
    const std::string_view there = FactOf(old, fact);
    if (there.empty()) return fmt::format("{} does not record its {}", old.name, fact);
    if (there != FactOf(made, fact)) return fmt::format("{} has another {}", old.name, fact);
  }
  for (const std::string_view fact : {kDirectionAttribute, kSamplingFact, kInputsFact}) {
    if (FactOf(old, fact) != FactOf(made, fact))
      return fmt::format("{} has another {}", old.name, fact);
  }
  if (FactOf(old, kVerticesFact).empty())
    return fmt::format("{} does not record its {}", old.name, kVerticesFact);
  if (old.dim != made.dim || old.dtype != made.dtype)
    return fmt::format("{} has another type or number of columns", old.name);
  return {};
}

/// Returns a byte for each row of the generation: 1 if a compaction marked it. Empty if none is
/// marked.
Result<std::vector<std::uint8_t>> MarkedRows(const Store& store, const ArrayEntry& old) {
  std::vector<std::uint8_t> marks;
  if (store.manifest().FindArray(StaleName(old.name)) == nullptr) return marks;
  RHIZOME_ASSIGN_OR_RETURN(const auto array, store.OpenArray(StaleName(old.name)));
  if (array->entry().rows != old.rows || array->entry().row_bytes() != 1)
    return Fail(Status::Corruption(
        fmt::format("array '{}' does not have one byte for each vertex", StaleName(old.name))));
  marks.resize(old.rows);
  RHIZOME_RETURN_IF_ERROR(array->ReadRows(0, old.rows, std::as_writable_bytes(std::span(marks))));
  return marks;
}

Result<std::vector<std::uint32_t>> StaleRows(const GraphSnapshot& graph, const ArrayEntry& old,
                                             const DeltaRows* delta) {
  const std::shared_ptr<const GraphParts> parts = graph.parts();
  const std::optional<ArrayOrigin> origin = OriginOf(old);
  RHIZOME_ASSIGN_OR_RETURN(
      const std::shared_ptr<const DeltaRun> changes,
      ChangesAfter(graph.store(), parts->DeltaBase(), origin->sequence, graph.sequence()));
  RHIZOME_ASSIGN_OR_RETURN(const std::shared_ptr<const DeltaView> view, graph.delta_view());
  const std::string_view vertices = FactOf(old, kVerticesFact);
  std::uint64_t first_new = 0;
  std::from_chars(vertices.data(), vertices.data() + vertices.size(), first_new);
  RHIZOME_ASSIGN_OR_RETURN(
      const std::vector<std::uint8_t> marks,
      StaleVertices({.parts = *parts,
                     .view = view.get(),
                     .changes = changes.get(),
                     .first_new = first_new,
                     .features_ids = FeatureIdsOf(*origin, graph.store().manifest()),
                     .layers = origin->layers,
                     .direction = origin->direction}));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> marked, MarkedRows(graph.store(), old));
  std::vector<std::uint32_t> rows;
  for (std::uint64_t row = 0; row < graph.vertex_count(); ++row) {
    const auto vertex = static_cast<std::size_t>(*graph.VertexAt(static_cast<Row>(row)));
    const bool stale =
        (delta != nullptr && row < old.rows && delta->WasPut(static_cast<Row>(row))) ||
        (row < marked.size() && marked[row] != 0);
    if (stale || vertex >= marks.size() || marks[vertex] != 0)
      rows.push_back(static_cast<std::uint32_t>(row));
  }
  return rows;
}

/// Writes a merged array chunk by chunk: reads the chunk's rows of the base, with its delta,
/// replaces stale rows by computed ones, and counts the correct answers.
class Merging {
 public:
  Merging(const MergeOptions& options, const IncrementalBase& base, const ChunkArray* computed,
          LayerOutput& output)
      : options_(options), base_(base), computed_(computed), output_(output) {}

  Status Run(const JobControl& control) {
    const ArrayEntry& entry = output_.entry();
    for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
      RHIZOME_RETURN_IF_ERROR(control.Report(
          {.phase = "merge", .done = chunk, .total = entry.chunk_count(), .detail = {}}));
      if (output_.done()[chunk]) continue;
      const std::uint64_t first = chunk * entry.chunk_rows;
      const std::uint64_t count = std::min(entry.chunk_rows, entry.rows - first);
      const std::span<float> rows = output_.Rows(static_cast<Row>(first), count);
      RHIZOME_RETURN_IF_ERROR(ReadKept(first, rows));
      RHIZOME_RETURN_IF_ERROR(ReadComputed(first, rows));
      RHIZOME_RETURN_IF_ERROR(output_.FinishChunk(chunk, Count(first, rows)));
    }
    return Status::Ok();
  }

 private:
  Status ReadKept(std::uint64_t first, std::span<float> rows) const {
    const std::uint64_t dim = output_.entry().dim;
    const std::uint64_t in_files = base_.array->entry().rows;
    const std::uint64_t end = first + rows.size() / dim;
    if (first < in_files) {
      const std::uint64_t count = std::min(end, in_files) - first;
      RHIZOME_RETURN_IF_ERROR(
          base_.array->ReadRows(first, count, std::as_writable_bytes(rows.first(count * dim))));
    }
    if (base_.delta == nullptr) return Status::Ok();
    return base_.delta->Overlay(static_cast<Row>(first), std::as_writable_bytes(rows));
  }

  Status ReadComputed(std::uint64_t first, std::span<float> rows) {
    const std::uint64_t dim = output_.entry().dim;
    const auto begin = std::lower_bound(base_.stale.begin(), base_.stale.end(), first);
    const auto end = std::lower_bound(begin, base_.stale.end(), first + rows.size() / dim);
    if (begin == end) return Status::Ok();
    const auto count = static_cast<std::size_t>(end - begin);
    read_.resize(count * dim);
    RHIZOME_RETURN_IF_ERROR(
        computed_->ReadRows(static_cast<std::uint64_t>(begin - base_.stale.begin()), count,
                            std::as_writable_bytes(std::span(read_))));
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(rows.data() + (begin[static_cast<std::ptrdiff_t>(i)] - first) * dim,
                  read_.data() + i * dim, dim * sizeof(float));
    }
    return Status::Ok();
  }

  AccuracyCounts Count(std::uint64_t first, std::span<const float> rows) const {
    AccuracyCounts counts;
    if (options_.labels == nullptr) return counts;
    const std::uint64_t dim = output_.entry().dim;
    const std::uint64_t all = rows.size() / dim;
    const std::uint64_t tile_rows = kDenseRows;
    std::vector<AccuracyCounts> tiles((all + tile_rows - 1) / tile_rows);
    ComputeFor(tiles.size(), [&](std::size_t tile) {
      const c10::InferenceMode guard;
      const std::uint64_t begin = tile * tile_rows;
      const std::uint64_t count = std::min(tile_rows, all - begin);
      torch::Tensor values = at::zeros({kDenseRows, static_cast<std::int64_t>(dim)});
      std::memcpy(values.data_ptr<float>(), rows.data() + begin * dim, count * dim * sizeof(float));
      std::vector<Row> numbers;
      for (std::uint64_t i = 0; i < count; ++i)
        numbers.push_back(static_cast<Row>(first + begin + i));
      tiles[tile] = CountCorrect(*options_.labels, numbers,
                                 options_.scores ? values : options_.model.HeadOfTile(values));
    });
    for (const AccuracyCounts& tile : tiles) counts.Add(tile);
    return counts;
  }

  const MergeOptions& options_;
  const IncrementalBase& base_;
  const ChunkArray* const computed_;
  LayerOutput& output_;
  std::vector<float> read_;
};

}  // namespace

Result<IncrementalPlan> PlanIncremental(const GraphSnapshot& graph, const ArrayEntry& made) {
  const Store& store = graph.store();
  IncrementalPlan plan;
  const ArrayEntry* const old = NewestOf(store.manifest(), made.name);
  if (old == nullptr) {
    plan.full_because = fmt::format("there is no array {} yet", made.name);
    return plan;
  }
  plan.full_because = ReuseObstacle(*old, made);
  RHIZOME_ASSIGN_OR_RETURN(const bool same, IsOfHistory(*old, store));
  if (plan.full_because.empty() && !same)
    plan.full_because =
        fmt::format("{} belongs to a copy of the store that has diverged", old->name);
  if (!plan.full_because.empty()) return plan;
  IncrementalBase base;
  base.name = old->name;
  RHIZOME_ASSIGN_OR_RETURN(base.array, store.OpenArray(old->name));
  base.delta = DeltaRows::Of(graph.Snapshot(), *old);
  RHIZOME_ASSIGN_OR_RETURN(base.stale, StaleRows(graph, *old, base.delta.get()));
  const std::string generation = fmt::format("generation {} ", store.manifest().generation);
  base.compacted = !FactOf(*old, "snapshot").starts_with(generation);
  plan.base = std::move(base);
  return plan;
}

Result<MergedArray> MergeIncremental(const MergeOptions& options, const IncrementalBase& base,
                                     const WrittenArray& computed, const Path& root,
                                     InferenceLog* log, const JobControl& control) {
  FileSystem& fs = options.graph.store().fs();
  std::unique_ptr<ChunkArray> rows;
  if (!base.stale.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(
        rows, ChunkArray::Open(fs, computed.root, computed.arrays.front(), computed.files));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const std::unique_ptr<LayerOutput> output,
      LayerOutput::Create(fs, root, options.output, ChunkProgress::Of(log, options.layer),
                          /*writers=*/1));
  Merging merging(options, base, rows.get(), *output);
  RHIZOME_RETURN_IF_ERROR(merging.Run(control));
  MergedArray merged;
  merged.accuracy = output->accuracy();
  merged.resumed_chunks = output->adopted_chunks();
  RHIZOME_ASSIGN_OR_RETURN(merged.written, output->Finish());
  merged.non_finite_rows = output->non_finite_rows();
  return merged;
}

}  // namespace internal
}  // namespace rhizome
