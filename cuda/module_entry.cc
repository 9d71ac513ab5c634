#include "cuda/module_entry.h"

#include "storage/store/this_build.h"

extern "C" bool rhizome_cuda_open_v1(std::string_view build,
                                     rhizome::Result<std::unique_ptr<rhizome::Device>>* device) {
  if (build != rhizome::kThisBuild) return false;
  *device = rhizome::OpenCudaDevice();
  return true;
}
