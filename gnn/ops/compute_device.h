#pragma once

#include <functional>
#include <memory>

#include "cuda/device.h"
#include "gnn/ops/torch.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// A device on which a model is computed: `kernels` runs our kernels, and libtorch's tensors are on
/// `place`. Tests use a `place` on the CPU, so that libtorch computes as without a device.
struct ComputeDevice {
  std::unique_ptr<Device> kernels;
  torch::Device place = torch::kCPU;
  DeviceProperties facts = {};
};

using ComputeDeviceFactory = std::function<Result<ComputeDevice>()>;

/// Opens the first CUDA device: loads librhizome_cuda.so from the folder of this library, and
/// libtorch_cuda.so from the folder of the loaded libtorch. Must be called before libtorch has been
/// used in this process. Errors: kUnsupported, one of them is missing, is of another build, or
/// finds no usable device; the message says which, and how to fix it.
Result<ComputeDevice> OpenCudaComputeDevice();

}  // namespace internal
}  // namespace rhizome
