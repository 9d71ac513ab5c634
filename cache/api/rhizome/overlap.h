#pragma once

#include <cstdint>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

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

}  // namespace rhizome
