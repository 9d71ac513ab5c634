#pragma once

#include <cstdint>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Selects whether a model is computed on the CPU or on a CUDA device.
enum class ComputeOn : std::uint8_t { kCpu, kCuda };

}  // namespace rhizome
