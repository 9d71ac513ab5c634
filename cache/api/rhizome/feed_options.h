#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/policy.h"

namespace RHIZOME_API rhizome {

/// How schedules of consecutive superbatches value rows that the current superbatch does not
/// request again.
enum class Prior : std::uint8_t {
  kNone,  ///< worth nothing
  kUses,  ///< by the number of requests so far
};

/// Returns "none" or "uses".
std::string_view PriorName(Prior prior);

/// The stages of training that overlap.
enum class Overlap : std::uint8_t {
  /// Superbatch k + 1 is sampled and scheduled while superbatch k is trained on. The caches of
  /// lists and of features share the memory.
  kAll,

  /// Superbatch k + 1 is sampled while superbatch k is scheduled, then k is trained on. The two
  /// caches use all of the memory in turn (Ginex, section 3.1). This reduces reads if memory is
  /// short, but no sampling takes place while the model computes.
  kChangeset,

  /// Superbatches are sampled and scheduled as with kAll, but no row is read before the step that
  /// needs it is requested, as in DistDGL without prefetching. For comparison.
  kNone,
};
inline std::string_view OverlapName(Overlap overlap) {
  if (overlap == Overlap::kNone) return "none";
  return overlap == Overlap::kAll ? "all" : "changeset";
}

/// How minibatches are prepared: sampled a superbatch ahead, scheduled, and served from a cache.
/// Shared by Loader, by training on minibatches, and by plans of training over ranks.
struct FeedOptions {
  /// Policy of the row cache. kBelady reads the fewest rows. kStatic keeps the rows that a
  /// superbatch requests most often.
  PolicyKind cache = PolicyKind::kBelady;

  /// Size of the row cache; default: what the memory limit leaves, or up to 1 GiB without a limit.
  std::optional<std::uint64_t> cache_bytes = {};

  /// For lists on disk: size of the neighbour cache; default: chosen, up to 256 MiB; 0: none.
  std::optional<std::uint64_t> neighbor_cache_bytes = {};

  /// Number of minibatches that are sampled ahead and scheduled together. 0: chosen by a trial of
  /// up to one second.
  std::uint32_t superbatch = 0;
  std::optional<Overlap> overlap = {};  ///< default: chosen
  Prior prior = Prior::kUses;           ///< for policies with TakesPrior
};

}  // namespace rhizome
