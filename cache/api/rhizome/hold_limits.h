#pragma once

#include <cstdint>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Index of a slot, the memory for one unit (a row or a decoded chunk). Slots are contiguous.
using SlotId = std::uint32_t;

/// Number of slots for units that steps hold in addition to the frames, until they release them.
struct HoldLimits {
  std::uint64_t slots = 0;  ///< soft limit; a step that needs more waits for a release

  /// Hard limit, at least `slots`; addresses are reserved for this many. Slots above the soft limit
  /// are used only if a wait would never end. Memory is allocated only as slots are used.
  std::uint64_t most = 0;
};

}  // namespace rhizome
