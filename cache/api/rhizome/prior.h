#pragma once

#include <cstdint>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// How schedules of consecutive superbatches value rows that the current superbatch does not
/// request again.
enum class Prior : std::uint8_t {
  kNone,  ///< worth nothing
  kUses,  ///< by the number of requests so far
};

/// Returns "none" or "uses", the values of `--prior`.
std::string_view PriorName(Prior prior);

}  // namespace rhizome
