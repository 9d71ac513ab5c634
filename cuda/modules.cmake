# --- CUDA -----------------------------------------------------------------------------------------
# The kernels are headers that the tests also run on the CPU. Where nvcc is found, they are built into the module
# librhizome_cuda.so, for sm_80 and sm_90, which the GNN layer loads when a device is requested. The code that
# decides which rows are on the device needs no CUDA, and is part of the GNN layer.
rhizome_layer(cuda
  DESCRIPTION "kernels, and rows on the device"
  USES storage index cache)
set_target_properties(rhizome_cuda PROPERTIES EXCLUDE_FROM_ALL ON)
set_source_files_properties(cuda/module_entry.cc PROPERTIES COMPILE_DEFINITIONS RHIZOME_VERSION="${PROJECT_VERSION}")
add_library(rhizome_device_rows OBJECT EXCLUDE_FROM_ALL cuda/device_frames.cc cuda/device_pool.cc
  cuda/long_lists.cc)
target_link_libraries(rhizome_device_rows PRIVATE rhizome_cuda)
target_compile_options(rhizome_device_rows PRIVATE ${warnings})
if(RHIZOME_SANITIZE OR RHIZOME_FUZZ)
  set(RHIZOME_CUDA OFF)
endif()
include(CheckLanguage)
if(RHIZOME_CUDA)
  check_language(CUDA)
endif()
if(RHIZOME_CUDA AND CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
  enable_language(CUDA)
  find_package(CUDAToolkit REQUIRED)
  target_sources(rhizome_cuda PRIVATE cuda/kernels.cu cuda/scan.cu)
  target_compile_definitions(rhizome_cuda PRIVATE RHIZOME_HAS_CUDA)
  target_include_directories(rhizome_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  set_target_properties(rhizome_cuda PROPERTIES CUDA_ARCHITECTURES "80;90"
    CUDA_STANDARD 17)  # 20 fails in CMake 3.25
  set(cuda_runtime CUDA::cudart_static)
  add_library(rhizome_cuda_module MODULE $<TARGET_OBJECTS:rhizome_cuda>)
  target_link_libraries(rhizome_cuda_module PRIVATE rhizome ${cuda_runtime})
  rhizome_exports(rhizome_cuda_module)
  set_target_properties(rhizome_cuda_module PROPERTIES OUTPUT_NAME rhizome_cuda LINKER_LANGUAGE CXX
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
endif()
