#include "gnn/entry/probe_device.h"

#include <algorithm>

#include "cuda/device_pool.h"
#include "gnn/ops/compute_device.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kProbeBytes = std::size_t{64} << 20;
constexpr int kProbeCopies = 8;

/// Device memory, pinned host memory and a stream, which the destructor frees.
struct ProbeMemory {
  explicit ProbeMemory(Device& of) : device(of) {}
  ~ProbeMemory() {
    if (has_stream) device.FreeStream(stream);
    if (on_device != nullptr) device.Free(on_device);
    if (pinned != nullptr) device.FreePinned(pinned);
  }
  ProbeMemory(const ProbeMemory&) = delete;
  ProbeMemory& operator=(const ProbeMemory&) = delete;

  Status Allocate() {
    RHIZOME_ASSIGN_OR_RETURN(pinned, device.AllocatePinned(kProbeBytes));
    RHIZOME_ASSIGN_OR_RETURN(on_device, device.Allocate(kProbeBytes));
    RHIZOME_ASSIGN_OR_RETURN(stream, device.MakeStream());
    has_stream = true;
    return Status::Ok();
  }

  Device& device;
  void* pinned = nullptr;
  void* on_device = nullptr;
  DeviceStream stream = 0;
  bool has_stream = false;
};

}  // namespace

Result<DeviceProbe> ProbeOpenDevice(Device& device) {
  RHIZOME_ASSIGN_OR_RETURN(const DeviceProperties facts, device.Facts());
  DeviceProbe probe{.name = facts.name,
                    .sm = facts.compute_capability,
                    .memory_bytes = facts.memory_bytes,
                    .free_bytes = facts.free_bytes,
                    .driver = facts.driver};
  ProbeMemory memory(device);
  RHIZOME_RETURN_IF_ERROR(memory.Allocate());
  double best = 0;
  for (int i = 0; i < kProbeCopies; ++i) {
    const Stopwatch watch;
    RHIZOME_RETURN_IF_ERROR(
        device.CopyToDevice(memory.stream, memory.on_device, memory.pinned, kProbeBytes));
    RHIZOME_RETURN_IF_ERROR(device.Drain(memory.stream));
    best = std::max(best, static_cast<double>(kProbeBytes) / watch.seconds());
  }
  probe.copy_bytes_per_second = best;
  const Status registered = DevicePool::CanReach(device);
  probe.registers = registered.ok();
  probe.why_not_registered = registered.message();
  return probe;
}

Result<DeviceProbe> ProbeCudaDevice() {
  RHIZOME_ASSIGN_OR_RETURN(const ComputeDevice device, OpenCudaComputeDevice());
  return ProbeOpenDevice(*device.kernels);
}

}  // namespace internal
}  // namespace rhizome
