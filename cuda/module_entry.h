#pragma once

#include <memory>
#include <string_view>

#include "cuda/device.h"
#include "rhizome/export.h"
#include "rhizome/status.h"

// Entry point of librhizome_cuda.so, the module that holds the kernels and the CUDA runtime.
// Callers that need a device load it with dlopen; the engine itself links neither.

namespace rhizome {
inline namespace internal {

/// File name of the module, and the function to look up in it with dlsym.
inline constexpr const char* kCudaModuleName = "librhizome_cuda.so";
inline constexpr const char* kCudaEntrySymbol = "rhizome_cuda_open_v1";
using CudaModuleEntry = bool(std::string_view build, Result<std::unique_ptr<Device>>* device);

}  // namespace internal
}  // namespace rhizome

/// Opens the first device, as OpenCudaDevice. Returns false and has no effect if the caller and the
/// module are different builds (BuildId()), because they share classes.
extern "C" RHIZOME_API bool rhizome_cuda_open_v1(
    std::string_view build, rhizome::Result<std::unique_ptr<rhizome::Device>>* device);
