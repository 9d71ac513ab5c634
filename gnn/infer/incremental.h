#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/cache/labels.h"
#include "rhizome/cache/layer_output.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/delta_rows.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The facts (ArrayEntry::attributes) that an array's rows depend on, besides the graph's changes.
inline constexpr const char* kIncrementalFacts[] = {
    "made_by", "content", "model_xxh3", "features", "features_id", "hops", "fanout", "seed"};

/// The fact that says how neighbours were drawn, and whether weights of edges were used; arrays
/// without it were made of plain draws and no weights. It counts as well, and so does
/// kDirectionAttribute (index/delta/stale_vertices.h).
inline constexpr std::string_view kSamplingFact = "sampling";

/// number of vertices that it was computed for
inline constexpr const char* kVerticesFact = "vertices";

/// Returns the value of an array's fact, or an empty text if it has none of that name.
std::string_view FactOf(const ArrayEntry& array, std::string_view name);

/// Returns the newest version of an array, or the array itself if it has no versions; null: there
/// is no such array.
const ArrayEntry* NewestOf(const Manifest& manifest, const std::string& name);

/// The array that an incremental inference starts from.
struct IncrementalBase {
  std::string name;                   ///< as stored
  std::unique_ptr<ChunkArray> array;  ///< rows in the order of the generation
  std::shared_ptr<const DeltaRows> delta;
  std::vector<std::uint32_t> stale;  ///< rows that may have changed, and new ones, ascending
};

/// The base of an incremental inference: the newest version of an array, if it was computed in the
/// way of the new entry `made`, and for this generation. (Compaction reorders rows, and sums are
/// taken in their order, so bytes of an earlier generation are not those of a full run.) A row is
/// stale if a change after its snapshot is within as many hops as there are layers, or if it was
/// put by hand.
struct IncrementalPlan {
  std::optional<IncrementalBase> base;
  std::string full_because;  ///< why there is no base
};

/// Finds the base. Errors: those of reading the delta, lists and array.
Result<IncrementalPlan> PlanIncremental(const GraphSnapshot& graph, const ArrayEntry& made);

/// Writes the whole array below `root`: the rows of `base`, with the stale ones replaced by those
/// of `computed` (in the same order; may be empty if none is stale). Chunks that `log` lists for
/// layer `layer` are adopted. Counts correct answers if there are labels; `scores` means that rows
/// are class scores. Errors: those of both arrays; kOutOfSpace; kInterrupted.
struct MergeOptions {
  const GraphSnapshot& graph;
  const Model& model;
  const ClassLabels* labels = nullptr;
  bool scores = false;
  std::uint32_t layer = 0;
  ArrayEntry output;
};
struct MergedArray {
  WrittenArray written;
  AccuracyCounts accuracy;
  std::uint64_t resumed_chunks = 0;
  std::uint64_t non_finite_rows = 0;
};
Result<MergedArray> MergeIncremental(const MergeOptions& options, const IncrementalBase& base,
                                     const WrittenArray& computed, const Path& root,
                                     InferenceLog* log, const JobControl& control);

}  // namespace rhizome::inline internal
