#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/cuda/device.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

struct DevicePoolOptions {
  std::uint32_t frame_count = 0;
  std::size_t row_bytes = 0;
  std::uint32_t most_requests = 0;  ///< keys of a step
  bool grows = false;               ///< a step of more keys gets larger buffers
  std::uint32_t steps_in_flight = 2;
  /// Rows lie in pinned or registered memory, and stay there until their step is taken: they are
  /// copied from where they are, neighbours together. Otherwise they are packed in a pinned buffer.
  bool rows_pinned = false;
};

/// Rows and bytes that went over the bus.
struct DevicePoolCounts {
  std::uint64_t steps = 0;
  std::uint64_t hits = 0;
  std::uint64_t uploaded_rows = 0;  ///< misses and prefill
  std::uint64_t copies = 0;         ///< of rows
  std::uint64_t row_bytes = 0;
  std::uint64_t index_bytes = 0;
};

/// Frames of rows in the memory of a device, driven by the plans of any Policy: hits are gathered
/// from the frames, misses come from the host, inserts are copied into frames afterwards. So the
/// schedule of Belady over a superbatch is the cache of the device too; FastGL's Match (ASPLOS
/// 2024, section 4.1) and GNNLab's static set are the policies `match` and `static`.
///
/// Rows go up on one stream while the frames serve the step before on another. Each step in flight
/// has buffers of its own, which are used again once its rows have been released.
/// Threads: one at a time. Ownership: `device` must outlive the pool.
class DevicePool {
 public:
  /// Rows of a step in the order of its keys, [requests, row_bytes]. They may be read behind
  /// `ready` and until they are released.
  struct Rows {
    const void* data = nullptr;
    DeviceEvent ready = 0;
    std::uint32_t slot = 0;
  };

  /// Errors: kInvalidArgument, a size is 0; kOutOfMemory, saying of what.
  static Result<std::unique_ptr<DevicePool>> Create(Device& device,
                                                    const DevicePoolOptions& options);
  /// Waits for what is queued.
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  /// Returns the bytes of the device, and of pinned memory, that a pool takes.
  static std::uint64_t DeviceBytes(const DevicePoolOptions& options);
  static std::uint64_t PinnedBytes(const DevicePoolOptions& options);

  /// Puts rows[i] of the host into the frame of entries[i]. Before the first step.
  Status Prefill(std::span<const PrefillEntry> entries, std::span<const std::byte* const> rows);

  /// Queues a step of `requests` keys. miss_rows[i] is the row of plan.misses[i] on the host. Waits
  /// until a step's buffers are free. Errors: kInvalidArgument, the plan does not fit the pool, or
  /// all steps in flight are still held; kIoError, the device failed. A pool is of no use after
  /// that.
  Result<Rows> Step(const StepPlan& plan, std::uint32_t requests,
                    std::span<const std::byte* const> miss_rows);

  /// Gives the rows back: they are overwritten behind what is queued on `stream` by now.
  Status Release(const Rows& rows, DeviceStream stream);

  const DevicePoolCounts& counts() const { return counts_; }

  /// Returns the pinned memory that its buffers take now.
  std::uint64_t pinned_bytes() const;

  /// Returns the keys for which a pool that grows makes room at a step of so many: with some to
  /// spare, because pinning is slow.
  static std::uint32_t GrownTo(std::uint32_t requests) { return requests + requests / 4; }

 private:
  /// The buffers of a step. Index arrays: frames and places of hits, places and frames of inserts,
  /// places of misses, then the flag of the gathers.
  struct Slot {
    std::byte* out = nullptr;         // device, [most_requests, row_bytes]
    std::byte* landing = nullptr;     // device, the same; null with rows_pinned
    std::byte* staging = nullptr;     // pinned, the same; null with rows_pinned
    std::int64_t* indexes = nullptr;  // pinned
    std::int64_t* on_device = nullptr;
    std::uint32_t* flag = nullptr;    // pinned, copied back
    std::vector<DeviceEvent> events;  // of the step, freed with it
    bool held = false;                // by whom the rows were given to
    bool busy = false;                // `released` is not waited for yet
    DeviceEvent released = 0;
    std::uint32_t most_requests = 0;
  };

  DevicePool(Device& device, const DevicePoolOptions& options)
      : device_(device), options_(options), slots_(options.steps_in_flight) {}
  Status AllocateAll();
  Status AllocateSlot(Slot& slot, std::uint32_t most_requests);
  void FreeSlot(Slot& slot);
  Status CheckPlan(const StepPlan& plan, std::uint32_t requests, std::size_t miss_rows) const;
  Status Reclaim(Slot& slot);
  Status Upload(Slot& slot, const StepPlan& plan, std::span<const std::byte* const> miss_rows);
  Status UploadRuns(Slot& slot, const StepPlan& plan, std::span<const std::byte* const> miss_rows);
  Status QueueGathers(Slot& slot, const StepPlan& plan, std::uint32_t requests);

  Device& device_;
  const DevicePoolOptions options_;
  std::byte* frames_ = nullptr;
  std::vector<Slot> slots_;
  std::uint64_t next_ = 0;  // step
  DevicePoolCounts counts_;
  std::vector<DeviceStream> streams_;  // copies, gathers
};

}  // namespace rhizome::inline internal
