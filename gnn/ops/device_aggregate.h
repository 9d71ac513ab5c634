#pragma once

#include <cstddef>

#include "cache/kernels/aggregate_kernels.h"
#include "cuda/device.h"
#include "gnn/ops/aggregate_ops.h"

namespace rhizome {
inline namespace internal {

// The aggregation kernels with the CPU kernels' arguments, queued on a device behind libtorch's
// work, for `rows` rows of the output. All pointers are device pointers, and `ends` must be
// `begins` + 1 (a CSR). Errors are thrown (DeviceFailure).

cuda::Element ElementOf(RowType type);

/// `partials`: [partial_count of the long lists, dim], scratch.
void QueueSum(Device& device, const SumArgs& args, std::size_t rows,
              const PlacedLongLists& long_lists, float* partials);
void QueueMax(Device& device, const MaxArgs& args, std::size_t rows);
void QueueMaxGradient(Device& device, const MaxGradientArgs& args, std::size_t rows);
void QueueEdgeDots(Device& device, const EdgeDotArgs& args, std::size_t rows);

}  // namespace internal
}  // namespace rhizome
