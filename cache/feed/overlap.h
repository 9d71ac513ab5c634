#pragma once

#include <cstdint>
#include <string_view>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The parts of a training that overlap.
enum class Overlap : std::uint8_t {
  /// Superbatch k + 1 is sampled and scheduled while superbatch k is trained on; caches of lists
  /// and of features share the memory.
  kAll,

  /// Superbatch k + 1 is sampled while superbatch k is scheduled, then k is trained on: each cache
  /// has the memory to itself in its turn (Ginex, section 3.1). Less is read where memory is short,
  /// at the price of nothing being sampled while the network computes.
  kChangeset,

  /// Superbatches are sampled and scheduled as with kAll, but no row is read before the step that
  /// computes on it is asked for: what DistDGL does where nothing is prefetched. To compare with.
  kNone,
};
inline std::string_view OverlapName(Overlap overlap) {
  if (overlap == Overlap::kNone) return "none";
  return overlap == Overlap::kAll ? "all" : "changeset";
}

}  // namespace rhizome
