#pragma once

#include <cstdint>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// The processor or device on which a network is computed.
enum class ComputeOn : std::uint8_t { kCpu, kCuda };

}  // namespace rhizome
