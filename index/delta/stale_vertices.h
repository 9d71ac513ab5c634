#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "index/base/staleness.h"
#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/generation/graph_builder.h"
#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Attribute of an array (ArrayEntry::attributes): the number of its stale rows, in decimal.
inline constexpr std::string_view kStaleRowsAttribute = "stale_rows";

/// Attribute that records the lists from which `infer` computed the rows: "out" or "both"; absent:
/// in-lists.
inline constexpr std::string_view kDirectionAttribute = "direction";

/// Attribute with HistoryState::commits of the state from which the array was computed, as 32 hex
/// digits; absent in arrays of older versions.
inline constexpr std::string_view kCommitsAttribute = "commits_hash";

/// The origin of an array that `infer` computed, from the array's attributes: the input arrays, and
/// the number of layers. The number is one higher if a row also depends on its neighbours' degrees
/// (GCN), because a changed list then acts like a changed row.
struct ArrayOrigin {
  std::vector<std::string> features;  ///< several, if vertex types have different arrays
  std::uint32_t layers = 0;
  Direction direction = Direction::kIn;  ///< the lists that were traversed
  std::uint64_t sequence = 0;            ///< the last commit that it includes
  Hash128 commits{};                     ///< HistoryState::commits after it; zeros: unknown
};
std::optional<ArrayOrigin> OriginOf(const ArrayEntry& array);

/// Returns the ids of the input arrays; without arrays that do not exist any more.
std::vector<std::uint64_t> FeatureIdsOf(const ArrayOrigin& origin, const Manifest& manifest);

/// Returns whether an array of `infer` was computed from a past state of `store`, rather than from
/// a copy that has diverged from it. Returns true if that is unknown.
/// Errors: any error of Store::StateAt.
Result<bool> IsOfHistory(const ArrayEntry& array, const Store& store);

/// Returns an array of stale marks, without its rows.
ArrayInput StaleArray(std::string name);

/// Returns the base of a generation's delta (see GraphParts::DeltaBase), using only its manifest.
Delta::Base DeltaBaseOf(const Store& store);

/// Returns all changes of the commits after `seen`, up to `last`, as one run; null if there are
/// none. `base` is the generation whose delta contains them; `store` must still have their records.
/// Errors: as Delta::Load.
Result<std::shared_ptr<const DeltaRun>> ChangesAfter(const Store& store, const Delta::Base& base,
                                                     std::uint64_t seen, std::uint64_t last);

/// A graph, and the changes that an embedding has not seen.
struct StaleQuery {
  const GraphParts& parts;
  const DeltaView* view = nullptr;    ///< null: the generation includes the changes
  const DeltaRun* changes = nullptr;  ///< changes that the embedding has not seen; null: none
  std::uint64_t first_new = 0;        ///< vertices from here on have no row in the embedding
  std::vector<std::uint64_t> features_ids = {};  ///< the arrays that layer 0 reads
  std::uint32_t layers = 0;
  Direction direction = Direction::kIn;  ///< the lists from which the embedding's rows are computed
};

/// Returns one byte a vertex: 1 if its embedding may have changed. A vertex is stale if it is new;
/// if its list of `direction` changed; or if a path along such lists leads from it in at most
/// `layers` steps to a vertex whose features changed, or in fewer steps to a vertex whose list
/// changed. Without a view, all vertices are stale if one was deleted.
/// Errors: any error of reading lists that are on disk.
Result<std::vector<std::uint8_t>> StaleVertices(const StaleQuery& query);

/// Returns the staleness of an array of `store` at commit `sequence`; `parts` is its generation. An
/// array that `infer` did not compute is never stale.
/// Errors: as Delta::Load.
Result<Staleness> StalenessFrom(const Store& store, const GraphParts& parts, std::uint64_t sequence,
                                const ArrayEntry& array);

}  // namespace internal
}  // namespace rhizome
