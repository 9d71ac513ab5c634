#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cache/kernels/aggregate_kernels.h"
#include "cache/kernels/gather_kernels.h"
#include "cache/kernels/product_kernels.h"
#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Sets of kernels, ordered by vector width. All give the same bits.
enum class SimdPath : std::uint8_t { kPortable, kAvx2, kAvx512 };

/// Returns "portable", "avx2" or "avx512".
std::string_view SimdPathName(SimdPath path);

/// Returns the sets that this machine's processor can run; kPortable is always among them.
std::vector<SimdPath> AvailableSimdPaths();

/// Returns the current set: the widest, unless RHIZOME_SIMD=portable|avx2|avx512 selects another
/// one.
SimdPath CurrentSimdPath();

/// Checks RHIZOME_SIMD. Errors: kInvalidArgument, it does not name a set that this machine can run
/// (the widest set is used in that case).
Status CheckSimdSetting();

/// Switches to another set, for tests and benchmarks; `path` must be available.
/// Threads: must not overlap running kernels.
void SetSimdPath(SimdPath path);

const AggregateKernels& Kernels();
const AggregateKernels& KernelsOf(SimdPath path);

const GatherKernels& Gathers();
const GatherKernels& GathersOf(SimdPath path);

const ProductKernels& Products();
const ProductKernels& ProductsOf(SimdPath path);

}  // namespace internal
}  // namespace rhizome
