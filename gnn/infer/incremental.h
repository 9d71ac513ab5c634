#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/blocks/layer_output.h"
#include "cache/feed/labels.h"
#include "gnn/models/model.h"
#include "index/graph/delta_rows.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Attributes (ArrayEntry::attributes) on which an array's rows depend, besides the graph's
/// changes.
inline constexpr const char* kIncrementalFacts[] = {
    "made_by", "content", "model_xxh3", "features", "features_id", "hops", "fanout", "seed"};

/// Attribute that describes how neighbours were sampled and whether edge weights were used. Arrays
/// without it used plain sampling and no weights. It must match, too, and so must
/// kDirectionAttribute (index/delta/stale_vertices.h).
inline constexpr std::string_view kSamplingFact = "sampling";

/// Attribute with the array of each vertex type, as DescribeInputs; absent: one array for all. It
/// must match, too.
inline constexpr std::string_view kInputsFact = "inputs";

/// Attribute with the number of vertices for which an array was computed.
inline constexpr const char* kVerticesFact = "vertices";

/// Returns the value of an array's attribute, or an empty string if there is none of that name.
std::string_view FactOf(const ArrayEntry& array, std::string_view name);

/// Returns the newest version of an array, or the array itself if it has no versions; null if there
/// is no such array.
const ArrayEntry* NewestOf(const Manifest& manifest, const std::string& name);

/// The array from which an incremental inference starts.
struct IncrementalBase {
  std::string name;                   ///< as stored
  std::unique_ptr<ChunkArray> array;  ///< rows in the order of the generation
  std::shared_ptr<const DeltaRows> delta;
  std::vector<std::uint32_t> stale;  ///< rows that may have changed, and new ones, ascending
  bool compacted = false;            ///< a compaction carried the array over
};

/// The base of an incremental inference: the newest version of an array, if it was computed in the
/// same way as the new entry `made`. A row is stale if a change after the array's snapshot is
/// within the number of hops on which a row depends, or if the row itself was overwritten by an
/// update. A compaction marks the rows that were stale at that time in the array StaleName.
///
/// The result has the same bytes as a full run, except after a compaction: it may change the order
/// of rows, and sums are taken in row order, so kept rows then differ from a full run by rounding.
struct IncrementalPlan {
  std::optional<IncrementalBase> base;
  std::string full_because;  ///< why there is no base
};

/// Finds the base. Errors: any error of reading the delta, the lists or the array.
Result<IncrementalPlan> PlanIncremental(const GraphSnapshot& graph, const ArrayEntry& made);

/// Arguments of MergeIncremental. `labels`: count correct answers, unless null. `scores`: rows are
/// class scores. `layer`: number under which `log` lists the chunks of the merged array.
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

/// Writes the whole array below `root`: the rows of `base`, with stale rows replaced by the rows of
/// `computed` (in the same order; may be empty if no row is stale). Adopts the chunks that `log`
/// lists. Errors: any error of the two arrays; kOutOfSpace; kInterrupted.
Result<MergedArray> MergeIncremental(const MergeOptions& options, const IncrementalBase& base,
                                     const WrittenArray& computed, const Path& root,
                                     InferenceLog* log, const JobControl& control);

}  // namespace internal
}  // namespace rhizome
