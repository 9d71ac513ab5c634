#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/index/delta_view.h"
#include "rhizome/index/graph_builder.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/index/staleness.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// An attribute of an array (ArrayEntry::attributes): the number of its stale rows, in decimal.
inline constexpr std::string_view kStaleRowsAttribute = "stale_rows";

/// The one that says which lists the rows of an array of `infer` are computed from: "out" or
/// "both"; absent: in-lists.
inline constexpr std::string_view kDirectionAttribute = "direction";

/// The one that has HistoryState::commits of the state that it was computed from, as 32 hex digits;
/// absent in arrays of older versions.
inline constexpr std::string_view kCommitsAttribute = "commits_hash";

/// The origin of an array that `infer` computed, from the array's attributes: the input array, and
/// the number of layers. The number is one higher if a row also depends on its neighbours' degrees
/// (GCN), because a changed list then acts like a changed row.
struct ArrayOrigin {
  std::string features;
  std::uint32_t layers = 0;
  Direction direction = Direction::kIn;  ///< the lists that were walked
  std::uint64_t sequence = 0;            ///< the last commit that it includes
  Hash128 commits{};                     ///< HistoryState::commits after it; zeros: not known
};
std::optional<ArrayOrigin> OriginOf(const ArrayEntry& array);

/// Returns whether an array of `infer` was computed from a state that `store` had, and not from one
/// of a copy that has diverged from it. True if it is not known. Errors: those of Store::StateAt.
Result<bool> IsOfHistory(const ArrayEntry& array, const Store& store);

/// Returns an array of such marks, without its rows.
ArrayInput StaleArray(std::string name);

/// Returns the base of a generation's delta (see GraphParts::DeltaBase) from its manifest alone.
Delta::Base DeltaBaseOf(const Store& store);

/// Returns all changes of the commits after `seen`, up to `last`, as one run; null if there are
/// none. `base` is the generation whose delta they belong to; `store` must still have their
/// records. Errors: those of Delta::Load.
Result<std::shared_ptr<const DeltaRun>> ChangesAfter(const Store& store, const Delta::Base& base,
                                                     std::uint64_t seen, std::uint64_t last);

/// A graph, and the changes that an embedding has not seen.
struct StaleQuery {
  const GraphParts& parts;
  const DeltaView* view = nullptr;    ///< null: the generation includes the changes
  const DeltaRun* changes = nullptr;  ///< changes that the embedding has not seen; null: none
  std::uint64_t first_new = 0;        ///< vertices from here on have no row in the embedding
  std::uint64_t features_id = 0;      ///< the array that layer 0 reads
  std::uint32_t layers = 0;
  Direction direction = Direction::kIn;  ///< the lists that its rows are computed from
};

/// Returns one byte a vertex: 1 if its embedding may have changed. Stale are new vertices; vertices
/// whose list of `direction` changed; and vertices that such lists lead from in at most `layers`
/// steps to a vertex whose features changed, or in fewer to one whose list did. Without a view, all
/// vertices are stale if one was deleted. Errors: those of reading lists that are on disk.
Result<std::vector<std::uint8_t>> StaleVertices(const StaleQuery& query);

/// Returns the staleness of an array of `store` at commit `sequence`; `parts` is its generation. An
/// array that `infer` did not compute is never stale. Errors: those of Delta::Load.
Result<Staleness> StalenessFrom(const Store& store, const GraphParts& parts, std::uint64_t sequence,
                                const ArrayEntry& array);

}  // namespace internal
}  // namespace rhizome
