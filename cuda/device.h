#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda/attention_args.h"
#include "cuda/gatv2_args.h"
#include "cuda/kernel_args.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Number of a stream or an event of one Device.
using DeviceStream = std::uint32_t;
using DeviceEvent = std::uint32_t;

/// Default stream of a device, which is never created or freed. libtorch uses it unless configured
/// otherwise, so work queued here is ordered with libtorch's own work.
inline constexpr DeviceStream kDefaultStream = 0xFFFFFFFFU;

/// Properties of a device, for reports.
struct DeviceProperties {
  std::string name;
  int compute_capability = 0;  ///< 90 for sm_90
  std::string driver = {};     ///< newest CUDA version that it supports, "13.0"
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
};

/// A device with its own memory: the interface between the engine and the CUDA runtime. Work on one
/// stream is executed in order. Work on two streams is unordered, unless a wait for an event orders
/// it. Calls return before their work is done: memory that queued work uses, including host memory,
/// must remain valid until the host has waited for a later event (Synchronize).
///
/// Created by OpenCudaDevice. Tests use FakeDevice, which executes work lazily in any allowed order
/// and reports violations by name.
/// Threads: one at a time. Ownership: the caller frees the allocations, streams and events that it
/// has created.
class Device {
 public:
  virtual ~Device() = default;
  virtual Result<DeviceProperties> Facts() = 0;

  /// Allocates device memory, aligned to 256 bytes. Errors: kOutOfMemory; the message says how much
  /// is free.
  virtual Result<void*> Allocate(std::size_t bytes) = 0;
  virtual void Free(void* memory) = 0;

  /// Allocates pinned host memory, which the device can read and copy at full rate. Errors:
  /// kOutOfMemory.
  virtual Result<void*> AllocatePinned(std::size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;

  /// Pins existing host memory at its address, so that it can be used like memory of
  /// AllocatePinned. Its pages are locked until Unregister, and must not be returned to the system
  /// before that.
  /// Errors: kUnsupported, the device, the system or its limit of locked memory refuses (the caller
  /// can copy through AllocatePinned instead); kAlreadyExists, the memory is registered already.
  virtual Status Register(void* memory, std::size_t bytes) = 0;
  virtual void Unregister(void* memory) = 0;

  virtual Result<DeviceStream> MakeStream() = 0;
  /// No work may be queued on it: the caller has waited for all of it.
  virtual void FreeStream(DeviceStream stream) = 0;

  /// Queue a copy. The host memory must be pinned. Errors of these and of the following functions:
  /// kIoError, the device failed in this call or in work queued earlier; the device and its
  /// contents are lost.
  virtual Status CopyToDevice(DeviceStream stream, void* to, const void* from,
                              std::size_t bytes) = 0;
  virtual Status CopyToHost(DeviceStream stream, void* to, const void* from, std::size_t bytes) = 0;

  /// Queues the kernel of cuda/gather.cuh. `args` points to device memory; `table` may be pinned
  /// host memory.
  virtual Status Gather(DeviceStream stream, const cuda::GatherArgs& args) = 0;

  /// Queue the kernels of cuda/aggregate.cuh; `args` points to device memory.
  virtual Status Sum(DeviceStream stream, const cuda::SumArgs& args) = 0;
  virtual Status Max(DeviceStream stream, const cuda::MaxArgs& args) = 0;
  virtual Status MaxGradient(DeviceStream stream, const cuda::MaxGradientArgs& args) = 0;
  virtual Status EdgeDots(DeviceStream stream, const cuda::EdgeDotArgs& args) = 0;

  /// Queue the kernels of cuda/attention.cuh, cuda/gatv2.cuh and cuda/activate.cuh; `args`
  /// points to device memory.
  virtual Status Attend(DeviceStream stream, const cuda::AttendArgs& args) = 0;
  virtual Status AttendGradient(DeviceStream stream, const cuda::AttendGradientArgs& args) = 0;
  virtual Status AttendGatv2(DeviceStream stream, const cuda::AttendV2Args& args) = 0;
  virtual Status AttendV2Gradient(DeviceStream stream, const cuda::AttendV2GradientArgs& args) = 0;
  virtual Status Activate(DeviceStream stream, const cuda::ActivateArgs& args) = 0;
  virtual Status ActivateGradient(DeviceStream stream, const cuda::ActivateGradientArgs& args) = 0;

  /// Records an event, which occurs once all work queued on the stream so far is done.
  virtual Result<DeviceEvent> Record(DeviceStream stream) = 0;
  /// Makes later work of `stream` wait for an event.
  virtual Status Wait(DeviceStream stream, DeviceEvent event) = 0;
  /// Blocks the caller until an event occurs. The event remains valid until it is freed.
  virtual Status Synchronize(DeviceEvent event) = 0;
  virtual void FreeEvent(DeviceEvent event) = 0;
  /// Blocks the caller until all work queued on a stream is done.
  virtual Status Drain(DeviceStream stream) = 0;
};

/// Opens the first CUDA device. Errors: kUnsupported, built without nvcc, no device, or a driver
/// older than the runtime; the message says which.
Result<std::unique_ptr<Device>> OpenCudaDevice();

}  // namespace internal
}  // namespace rhizome
