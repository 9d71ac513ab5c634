#pragma once

#include <cstdint>
#include <string_view>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The worth that schedules of superbatches, one after another, give to rows that the superbatch at
/// hand does not ask for again.
enum class Prior : std::uint8_t {
  kNone,  ///< nothing
  kUses,  ///< the more, the more often they were asked for so far
};

/// "none" or "uses", the values of `--prior`.
std::string_view PriorName(Prior prior);

}  // namespace rhizome
