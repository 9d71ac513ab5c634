#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "rhizome/cuda/attention_args.h"
#include "rhizome/cuda/attention_v2_args.h"
#include "rhizome/cuda/kernel_args.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The number of a stream or an event of one Device.
using DeviceStream = std::uint32_t;
using DeviceEvent = std::uint32_t;

/// The default stream of a device, which nobody makes or frees. libtorch works on it unless it is
/// told otherwise: what is queued here is in one order with libtorch's own work.
inline constexpr DeviceStream kDefaultStream = 0xFFFFFFFFU;

/// Properties of a device, as a report says them.
struct DeviceFacts {
  std::string name;
  int compute_capability = 0;  ///< 90 for sm_90
  std::string driver = {};     ///< the newest CUDA that it takes, "13.0"
  std::uint64_t memory_bytes = 0;
  std::uint64_t free_bytes = 0;
};

/// A device with memory of its own: the seam between the engine and the CUDA runtime. Work on a
/// stream is done in order, work on two streams in any, unless a wait for an event comes between.
/// Nothing is done when a call returns: memory that queued work uses, the host's included, must
/// stay until the host has waited for an event behind it (Synchronize).
///
/// Made by OpenCudaDevice, and by tests as FakeDevice, which does work lazily in any order that is
/// allowed and calls what is not by name.
/// Threads: one at a time. Ownership: allocations, streams and events are given back by who made
/// them.
class Device {
 public:
  virtual ~Device() = default;
  virtual Result<DeviceFacts> Facts() = 0;

  /// Memory of the device, aligned to 256 bytes. Errors: kOutOfMemory, saying how much is free.
  virtual Result<void*> Allocate(std::size_t bytes) = 0;
  virtual void Free(void* memory) = 0;

  /// Memory of the host that the device reaches, and copies at full rate. Errors: kOutOfMemory.
  virtual Result<void*> AllocatePinned(std::size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;

  /// Makes memory that the host has already such memory, at the same address. Its pages are taken
  /// and stay where they are until Unregister: it must not be given back to the system before that.
  /// Errors: kUnsupported, the device, the system or its limit of locked memory refuses (copy
  /// through AllocatePinned then); kAlreadyExists, it is.
  virtual Status Register(void* memory, std::size_t bytes) = 0;
  virtual void Unregister(void* memory) = 0;

  virtual Result<DeviceStream> MakeStream() = 0;
  /// No work is queued on it, or all of it was waited for.
  virtual void FreeStream(DeviceStream stream) = 0;

  /// Queue a copy. The host's memory is pinned. Errors of these and of what follows: kIoError, the
  /// device failed, now or in work queued before: it is lost, and what it held too.
  virtual Status CopyToDevice(DeviceStream stream, void* to, const void* from,
                              std::size_t bytes) = 0;
  virtual Status CopyToHost(DeviceStream stream, void* to, const void* from, std::size_t bytes) = 0;

  /// Queue the kernel of cuda/gather.cuh; `args` points to the device's memory, `table` may be
  /// pinned memory of the host.
  virtual Status Gather(DeviceStream stream, const cuda::GatherArgs& args) = 0;

  /// Queue the kernels of cuda/aggregate.cuh; `args` points to the device's memory.
  virtual Status Sum(DeviceStream stream, const cuda::SumArgs& args) = 0;
  virtual Status Max(DeviceStream stream, const cuda::MaxArgs& args) = 0;
  virtual Status MaxGradient(DeviceStream stream, const cuda::MaxGradientArgs& args) = 0;
  virtual Status EdgeDots(DeviceStream stream, const cuda::EdgeDotArgs& args) = 0;

  /// Queue the kernels of cuda/attention.cuh, cuda/attention_v2.cuh and cuda/activate.cuh; `args`
  /// points to the device's memory.
  virtual Status Attend(DeviceStream stream, const cuda::AttendArgs& args) = 0;
  virtual Status AttendGradient(DeviceStream stream, const cuda::AttendGradientArgs& args) = 0;
  virtual Status AttendV2(DeviceStream stream, const cuda::AttendV2Args& args) = 0;
  virtual Status AttendV2Gradient(DeviceStream stream, const cuda::AttendV2GradientArgs& args) = 0;
  virtual Status Activate(DeviceStream stream, const cuda::ActivateArgs& args) = 0;
  virtual Status ActivateGradient(DeviceStream stream, const cuda::ActivateGradientArgs& args) = 0;

  /// Records an event: it has happened once all work queued on the stream so far is done.
  virtual Result<DeviceEvent> Record(DeviceStream stream) = 0;
  /// Lets later work of `stream` wait for an event.
  virtual Status Wait(DeviceStream stream, DeviceEvent event) = 0;
  /// Lets the caller wait. The event stays until it is freed.
  virtual Status Synchronize(DeviceEvent event) = 0;
  virtual void FreeEvent(DeviceEvent event) = 0;
  /// Lets the caller wait for all that is queued on a stream.
  virtual Status Drain(DeviceStream stream) = 0;
};

/// Opens the first CUDA device. Errors: kUnsupported, built without nvcc, no device, or a driver
/// that is older than the runtime; the message says which.
Result<std::unique_ptr<Device>> OpenCudaDevice();

}  // namespace rhizome::inline internal
