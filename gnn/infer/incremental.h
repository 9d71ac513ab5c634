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

/// The facts (ArrayEntry::attributes) that say on what an array's rows depend, but for the graph's
/// changes.
inline constexpr const char* kIncrementalFacts[] = {
    "made_by", "content", "model_xxh3", "features", "features_id", "hops", "fanout", "seed"};
inline constexpr const char* kVerticesFact = "vertices";  ///< that it was computed for

/// The value of an array's fact; empty where it has none of that name.
std::string_view FactOf(const ArrayEntry& array, std::string_view name);

/// The newest version of an array, or the array where it has none; null: there is no such array.
const ArrayEntry* NewestOf(const Manifest& manifest, const std::string& name);

/// What an incremental inference begins with.
struct IncrementalBase {
  std::string name;                   ///< as stored
  std::unique_ptr<ChunkArray> array;  ///< rows in the order of the generation
  std::shared_ptr<const DeltaRows> delta;
  std::vector<std::uint32_t> stale;  ///< rows that may be others by now, ascending; new ones too
};

/// The newest version of an array, if it was computed as `made`, the entry of the new one, will be,
/// for this generation: compaction reorders rows, and sums are taken in their order, so bytes of an
/// earlier generation are not those of a full run. Stale is what changes after that snapshot can
/// reach in as many hops as there are layers, and rows that were put by hand.
struct IncrementalPlan {
  std::optional<IncrementalBase> base;
  std::string full_because;  ///< where there is none
};

/// Errors: those of reading the delta, lists and array.
Result<IncrementalPlan> PlanIncremental(const GraphSnapshot& graph, const ArrayEntry& made);

/// Writes the whole array below `root`: the rows of `base`, and in place of stale ones those of
/// `computed` (in the same order; may be empty where none is stale). Chunks that `log` knows as
/// those of layer `layer` are adopted. Counts right answers where there are labels; `scores`: the
/// rows are class scores. Errors: those of both arrays; kOutOfSpace; kInterrupted.
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
};
Result<MergedArray> MergeIncremental(const MergeOptions& options, const IncrementalBase& base,
                                     const WrittenArray& computed, const Path& root,
                                     InferenceLog* log, const JobControl& control);

}  // namespace rhizome::inline internal
