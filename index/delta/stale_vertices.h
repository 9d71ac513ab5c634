#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/index/delta_view.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// "emb.v3.stale": an array of one uint8 a vertex, 1 where a compaction carried over a row of
/// `array` whose inputs had changed. Absent while none has.
std::string StaleName(std::string_view array);

/// An attribute (ArrayEntry::attributes): how many of its rows are stale, a decimal.
inline constexpr std::string_view kStaleRowsAttribute = "stale_rows";

/// How an array was computed, as `infer` notes it in the array's attributes: from which array, in
/// how many layers; one more where a row also depends on its neighbours' degrees (GCN), as then a
/// list that changes is as good as a changed row.
struct ArrayOrigin {
  std::string features;
  std::uint32_t layers = 0;
  std::uint64_t sequence = 0;  ///< the last commit that it saw
};
std::optional<ArrayOrigin> OriginOf(const ArrayEntry& array);

/// An array of such marks, without its rows.
ArrayInput StaleArray(std::string name);

/// What the delta of a generation begins with (see GraphParts::DeltaBase), from its manifest alone.
Delta::Base DeltaBaseOf(const Store& store);

/// All that the commits after `seen`, up to `last`, changed, as one run; null if there are none.
/// `base`: the generation whose delta they were; `store` still has their records. Errors: those of
/// Delta::Load.
Result<std::shared_ptr<const DeltaRun>> ChangesAfter(const Store& store, const Delta::Base& base,
                                                     std::uint64_t seen, std::uint64_t last);

/// What was changed, and the graph with the changes.
struct StaleQuery {
  const GraphParts& parts;
  const DeltaView* view = nullptr;    ///< null: the generation has the changes
  const DeltaRun* changes = nullptr;  ///< that the embedding has not seen; null: none
  std::uint64_t first_new = 0;        ///< vertices from here on have no row in it
  std::uint64_t features_id = 0;      ///< the array that layer 0 reads
  std::uint32_t layers = 0;
};

/// The vertices whose embedding may be another now: new ones, those whose in-lists were changed,
/// and those that can be reached over at most `layers` out-edges from one whose features changed,
/// or over fewer from one whose in-list did. One byte a vertex, 1: stale. Without a view, where a
/// vertex was deleted, all are. Errors: those of reading lists that are on disk.
Result<std::vector<std::uint8_t>> StaleVertices(const StaleQuery& query);

/// What is known of rows that infer computed, without reading lists.
struct Staleness {
  std::uint64_t marked_rows = 0;  ///< of NAME.stale, as the array's facts count them

  /// Edges, vertices or features were written after what the array was computed from, and no
  /// compaction has marked the rows that this reaches.
  bool written_since = false;

  bool any() const { return marked_rows != 0 || written_since; }
};

/// Of an array of `store` at commit `sequence`, whose generation is `parts`. Nothing is stale of
/// one that infer did not compute. Errors: those of Delta::Load.
Result<Staleness> StalenessOf(const Store& store, const GraphParts& parts, std::uint64_t sequence,
                              const ArrayEntry& array);

}  // namespace rhizome
