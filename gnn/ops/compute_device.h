#pragma once

#include <functional>
#include <memory>

#include "rhizome/cuda/device.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A device on which a network is computed: `kernels` runs ours, and libtorch's tensors lie on
/// `place`. Tests have one of the processor, so that libtorch computes as it does without.
struct ComputeDevice {
  std::unique_ptr<Device> kernels;
  torch::Device place = torch::kCPU;
  DeviceFacts facts = {};
};

using ComputeDeviceMaker = std::function<Result<ComputeDevice>()>;

/// Opens the first CUDA device: loads librhizome_cuda.so from beside this library, and the part of
/// libtorch for CUDA from beside the part that is loaded. To be called before libtorch has worked
/// in this process. Errors: kUnsupported, one of them is not there, is of another build, or finds
/// no device that it can use; the message says which, and what to do.
Result<ComputeDevice> OpenCudaComputeDevice();

}  // namespace rhizome::inline internal
