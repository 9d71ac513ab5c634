#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// A piece of memory for one unit (a row, or a decoded chunk). Slots lie one after another.
using SlotId = std::uint32_t;

/// Room for units that steps hold beside the frames until they release them.
struct HoldRoom {
  std::uint64_t slots = 0;  ///< beyond them a step waits until others are released

  /// The most that there are addresses for, at least `slots`: used up only where a wait would not
  /// end. Memory is taken as slots are used.
  std::uint64_t most = 0;
};

}  // namespace rhizome
