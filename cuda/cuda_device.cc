#include "cuda/device.h"

#if defined(RHIZOME_HAS_CUDA)

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "cuda/kernels.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Converts a CUDA error into a Status with `what` as context. Clears the runtime's last error, so
/// that later calls do not see it.
Status StatusOfCuda(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) return Status::Ok();
  cudaGetLastError();
  const std::string text = what + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) return Status::OutOfMemory(text);
  return Status::IoError(text);
}

/// Device on top of the CUDA runtime. A DeviceStream or DeviceEvent is an index into streams_ or
/// events_; freed events are reused. Each call converts the runtime's error code into a Status.
/// Each kernel is queued through cuda/kernels.h, and the launch is checked with LaunchError.
/// Without nvcc this class is not built, and OpenCudaDevice returns kUnsupported.
class CudaDevice final : public Device {
 public:
  ~CudaDevice() override {
    for (cudaEvent_t const event : events_) cudaEventDestroy(event);
  }

  Result<DeviceProperties> Facts() override {
    cudaDeviceProp properties;
    RHIZOME_RETURN_IF_ERROR(
        StatusOfCuda(cudaGetDeviceProperties(&properties, 0), "properties of the device"));
    DeviceProperties facts{.name = properties.name,
                           .compute_capability = 10 * properties.major + properties.minor};
    std::size_t free = 0;
    std::size_t total = 0;
    RHIZOME_RETURN_IF_ERROR(StatusOfCuda(cudaMemGetInfo(&free, &total), "memory of the device"));
    facts.memory_bytes = total;
    facts.free_bytes = free;
    int version = 0;
    RHIZOME_RETURN_IF_ERROR(StatusOfCuda(cudaDriverGetVersion(&version), "the driver's version"));
    facts.driver = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    return facts;
  }

  Result<void*> Allocate(std::size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaSuccess) return memory;
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    return Fail(StatusOfCuda(error, std::to_string(bytes) + " bytes of the device, which has " +
                                        std::to_string(free) + " free"));
  }
  void Free(void* memory) override { cudaFree(memory); }

  Result<void*> AllocatePinned(std::size_t bytes) override {
    void* memory = nullptr;
    RHIZOME_RETURN_IF_ERROR(StatusOfCuda(cudaMallocHost(&memory, bytes),
                                         std::to_string(bytes) + " bytes of pinned memory"));
    return memory;
  }
  void FreePinned(void* memory) override { cudaFreeHost(memory); }

  Status Register(void* memory, std::size_t bytes) override {
    int same_address = 0;
    RHIZOME_RETURN_IF_ERROR(StatusOfCuda(
        cudaDeviceGetAttribute(&same_address, cudaDevAttrCanUseHostPointerForRegisteredMem, 0),
        "properties of the device"));
    if (same_address == 0)
      return Status::Unsupported("the device maps registered memory at another address");
    const cudaError_t error = cudaHostRegister(memory, bytes, cudaHostRegisterDefault);
    if (error == cudaSuccess) return Status::Ok();
    cudaGetLastError();
    const std::string text =
        std::to_string(bytes) +
        " bytes cannot be registered with the device: " + cudaGetErrorString(error);
    return error == cudaErrorHostMemoryAlreadyRegistered ? Status::AlreadyExists(text)
                                                         : Status::Unsupported(text);
  }
  void Unregister(void* memory) override { cudaHostUnregister(memory); }

  Result<DeviceStream> MakeStream() override {
    cudaStream_t stream = nullptr;
    RHIZOME_RETURN_IF_ERROR(
        StatusOfCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream"));
    streams_.push_back(stream);
    return static_cast<DeviceStream>(streams_.size() - 1);
  }
  void FreeStream(DeviceStream stream) override {
    cudaStreamDestroy(std::exchange(streams_[stream], nullptr));
  }

  Status CopyToDevice(DeviceStream stream, void* to, const void* from, std::size_t bytes) override {
    return StatusOfCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, At(stream)),
                        "copying to the device");
  }
  Status CopyToHost(DeviceStream stream, void* to, const void* from, std::size_t bytes) override {
    return StatusOfCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, At(stream)),
                        "copying from the device");
  }

  Status Gather(DeviceStream stream, const cuda::GatherArgs& args) override {
    cuda::CopyRowsOnDevice(At(stream), args);
    return Launched("a gather");
  }
  Status Sum(DeviceStream stream, const cuda::SumArgs& args) override {
    cuda::SumOnDevice(At(stream), args);
    return Launched("a sum");
  }
  Status Max(DeviceStream stream, const cuda::MaxArgs& args) override {
    cuda::MaxOnDevice(At(stream), args);
    return Launched("a maximum");
  }
  Status MaxGradient(DeviceStream stream, const cuda::MaxGradientArgs& args) override {
    cuda::MaxGradientOnDevice(At(stream), args);
    return Launched("the gradient of a maximum");
  }
  Status EdgeDots(DeviceStream stream, const cuda::EdgeDotArgs& args) override {
    cuda::EdgeDotsOnDevice(At(stream), args);
    return Launched("dot products of edges");
  }
  Status Attend(DeviceStream stream, const cuda::AttendArgs& args) override {
    cuda::AttendOnDevice(At(stream), args);
    return Launched("attention");
  }
  Status AttendGradient(DeviceStream stream, const cuda::AttendGradientArgs& args) override {
    cuda::AttendGradientOnDevice(At(stream), args);
    return Launched("the gradient of attention");
  }
  Status AttendGatv2(DeviceStream stream, const cuda::AttendV2Args& args) override {
    cuda::AttendGatv2OnDevice(At(stream), args);
    return Launched("attention v2");
  }
  Status AttendV2Gradient(DeviceStream stream, const cuda::AttendV2GradientArgs& args) override {
    cuda::AttendV2GradientOnDevice(At(stream), args);
    return Launched("the gradient of attention v2");
  }
  Status Activate(DeviceStream stream, const cuda::ActivateArgs& args) override {
    cuda::ActivateOnDevice(At(stream), args);
    return Launched("an activation");
  }
  Status ActivateGradient(DeviceStream stream, const cuda::ActivateGradientArgs& args) override {
    cuda::ActivateGradientOnDevice(At(stream), args);
    return Launched("the gradient of an activation");
  }

  Result<DeviceEvent> Record(DeviceStream stream) override {
    if (spare_.empty()) {
      cudaEvent_t event = nullptr;
      RHIZOME_RETURN_IF_ERROR(
          StatusOfCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "an event"));
      spare_.push_back(static_cast<DeviceEvent>(events_.size()));
      events_.push_back(event);
    }
    const DeviceEvent event = spare_.back();
    RHIZOME_RETURN_IF_ERROR(StatusOfCuda(cudaEventRecord(events_[event], At(stream)), "an event"));
    spare_.pop_back();
    return event;
  }
  Status Wait(DeviceStream stream, DeviceEvent event) override {
    return StatusOfCuda(cudaStreamWaitEvent(At(stream), events_[event], 0), "waiting for an event");
  }
  Status Synchronize(DeviceEvent event) override {
    return StatusOfCuda(cudaEventSynchronize(events_[event]), "work on the device");
  }
  void FreeEvent(DeviceEvent event) override { spare_.push_back(event); }
  Status Drain(DeviceStream stream) override {
    return StatusOfCuda(cudaStreamSynchronize(At(stream)), "work on the device");
  }

 private:
  /// The runtime's default stream, which libtorch uses too, is the null handle.
  cudaStream_t At(DeviceStream stream) const {
    return stream == kDefaultStream ? nullptr : streams_[stream];
  }
  static Status Launched(const char* what) {
    const char* const error = cuda::LaunchError();
    if (error == nullptr) return Status::Ok();
    return Status::IoError(std::string("launching ") + what + ": " + error);
  }

  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<DeviceEvent> spare_;  // freed events, reused by Record
};

}  // namespace

Result<std::unique_ptr<Device>> OpenCudaDevice() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    cudaGetLastError();
    return Fail(Status::Unsupported(error == cudaSuccess ? "no CUDA device"
                                                         : std::string("no CUDA device: ") +
                                                               cudaGetErrorString(error)));
  }
  return std::make_unique<CudaDevice>();
}

}  // namespace internal
}  // namespace rhizome

#else

namespace rhizome {
inline namespace internal {

Result<std::unique_ptr<Device>> OpenCudaDevice() {
  return Fail(Status::Unsupported("no CUDA device: built without nvcc"));
}

}  // namespace internal
}  // namespace rhizome

#endif
