#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "rhizome/cache/aggregate_kernels.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Sets of kernels, narrowest first. All give the same bits.
enum class SimdPath : std::uint8_t { kPortable, kAvx2, kAvx512 };

/// "portable", "avx2", "avx512".
std::string_view SimdPathName(SimdPath path);

/// Those that this machine's processor runs; kPortable is always one.
std::vector<SimdPath> AvailableSimdPaths();

/// The one in use: the widest, unless RHIZOME_SIMD=portable|avx2|avx512 names another.
SimdPath CurrentSimdPath();

/// Errors: kInvalidArgument, RHIZOME_SIMD is none of those that this machine runs (the widest is
/// used then).
Status CheckSimdSetting();

/// Takes another one from now on. For tests and benches; `path` must be available. Threads: not
/// while kernels run.
void SetSimdPath(SimdPath path);

const AggregateKernels& Kernels();
const AggregateKernels& KernelsOf(SimdPath path);

}  // namespace internal
}  // namespace rhizome
