#pragma once

#include "rhizome/gnn/attention_passes.h"
#include "rhizome/gnn/torch.h"

namespace rhizome::inline internal {

// The two passes of attention on the device where the lists are placed, queued behind libtorch's
// work there, with the processor's bits but for gradients of additive-v2, which are near. All
// tensors lie there. Errors are thrown (DeviceFailure).

Attended AttendOnDevice(const AttentionInputs& in, const AggregateLists& lists,
                        const AttentionShape& shape);

/// Returns the gradients of the inputs. `gradient` is that of Attended::out, contiguous; `values`
/// are float32.
AttentionInputs AttendGradientOnDevice(const AttentionInputs& in, const Attended& made,
                                       const torch::Tensor& gradient, const AggregateLists& lists,
                                       const AttentionShape& shape);

}  // namespace rhizome::inline internal
