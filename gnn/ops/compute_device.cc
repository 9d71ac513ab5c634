#include "gnn/ops/compute_device.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include <filesystem>
#include <string>

#include "cuda/module_entry.h"
#include "storage/store/build_id.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr const char* kWithoutDevice = "or give `device=cpu`";

/// Returns the folder of the library that contains `address`.
std::filesystem::path FolderOf(const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  return std::filesystem::absolute(found.dli_fname).parent_path();
}

/// Loads a library from `folder`. Errors: kUnsupported, with the message `missing` if the file does
/// not exist, else with the loader's reason.
Result<void*> LoadFrom(const std::filesystem::path& folder, const char* name, int flags,
                       const std::string& missing) {
  const std::filesystem::path path = folder / name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Fail(Status::Unsupported(missing));
  void* const handle = dlopen(path.c_str(), RTLD_NOW | flags);
  if (handle != nullptr) return handle;
  return Fail(Status::Unsupported(fmt::format(
      "`device=cuda`: {} cannot be loaded: {}; install the missing libraries, {}", path.string(),
      dlerror(),  // NOLINT(concurrency-mt-unsafe): the message is this thread's
      kWithoutDevice)));
}

Result<std::unique_ptr<Device>> OpenKernels() {
  static const char here = 0;
  const std::filesystem::path folder = FolderOf(&here);
  RHIZOME_ASSIGN_OR_RETURN(
      void* const module,
      LoadFrom(folder, kCudaModuleName, RTLD_LOCAL,
               fmt::format("`device=cuda`: {} is missing in {}. It is built and installed where "
                           "CMake finds nvcc (CUDA 13): build Rhizome there, {}",
                           kCudaModuleName, folder.string(), kWithoutDevice)));
  auto* const door = reinterpret_cast<CudaModuleEntry*>(dlsym(module, kCudaEntrySymbol));
  Result<std::unique_ptr<Device>> device = Fail(Status::Unsupported(""));
  if (door == nullptr || !door(BuildId(), &device)) {
    return Fail(
        Status::Unsupported(fmt::format("`device=cuda`: {} in {} belongs to another build of "
                                        "Rhizome; install both from one build, {}",
                                        kCudaModuleName, folder.string(), kWithoutDevice)));
  }
  if (device) return device;
  return Fail(
      Status::Unsupported(fmt::format("`device=cuda`: {}. It needs an NVIDIA GPU and a driver for "
                                      "CUDA 13 (nvidia-smi shows both), {}",
                                      device.error().message(), kWithoutDevice)));
}

/// Enables CUDA in libtorch: libtorch_cuda.so registers itself when it is loaded.
Status LoadTorchCuda() {
  const std::filesystem::path folder = FolderOf(reinterpret_cast<const void*>(&at::globalContext));
  RHIZOME_RETURN_IF_ERROR(LoadFrom(
      folder, "libtorch_cuda.so", RTLD_GLOBAL,
      fmt::format(
          "`device=cuda`: the libtorch in {} has no CUDA support. Build Rhizome with "
          "-DRHIZOME_TORCH= the folder of a torch wheel for CUDA 13 (pip install torch), {}",
          folder.string(), kWithoutDevice)));
  if (torch::cuda::is_available()) return Status::Ok();
  return Status::Unsupported(
      fmt::format("`device=cuda`: libtorch in {} finds no usable device, or was used in this "
                  "process before CUDA was requested; start a new process with `device=cuda`, {}",
                  folder.string(), kWithoutDevice));
}

}  // namespace

Result<ComputeDevice> OpenCudaComputeDevice() {
  ComputeDevice device;
  RHIZOME_ASSIGN_OR_RETURN(device.kernels, OpenKernels());
  RHIZOME_RETURN_IF_ERROR(LoadTorchCuda());
  device.place = torch::Device(torch::kCUDA, 0);
  RHIZOME_ASSIGN_OR_RETURN(device.facts, device.kernels->Facts());
  return device;
}

}  // namespace internal
}  // namespace rhizome
