#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The index of a slot: memory for one unit (a row or a decoded chunk). Slots are contiguous.
using SlotId = std::uint32_t;

/// Room for units that steps hold beside the frames until they release them.
struct HoldRoom {
  std::uint64_t slots = 0;  ///< beyond them a step waits until others are released

  /// Hard limit, at least `slots`: addresses are reserved for so many. Slots beyond the soft limit
  /// are used only where a wait would never end. Memory is taken only as slots are used.
  std::uint64_t most = 0;
};

}  // namespace rhizome
