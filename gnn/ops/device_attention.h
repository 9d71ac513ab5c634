#pragma once

#include "gnn/ops/attention_passes.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

// The two passes of attention on the device where the lists are placed, queued behind libtorch's
// work. All tensors are on that device. Results are bit-identical to the CPU, except for gradients
// of additive-v2, which are only close. Errors are thrown (DeviceFailure).

Attended AttendOnDevice(const AttentionInputs& in, const AggregateLists& lists,
                        const AttentionShape& shape);

/// Returns the gradients of the inputs. `gradient` is the gradient with respect to Attended::out,
/// contiguous. `values` are float32.
AttentionInputs AttendGradientOnDevice(const AttentionInputs& in, const Attended& made,
                                       const torch::Tensor& gradient, const AggregateLists& lists,
                                       const AttentionShape& shape);

}  // namespace internal
}  // namespace rhizome
