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
};

/// Rows and bytes that went over the bus.
struct DevicePoolCounts {
  std::uint64_t steps = 0;
  std::uint64_t hits = 0;
  std::uint64_t uploaded_rows = 0;  ///< misses and prefill
  std::uint64_t packed_rows = 0;    ///< of those: copied to a pinned buffer first
  std::uint64_t row_bytes = 0;
  std::uint64_t index_bytes = 0;
};

/// Frames of rows in the memory of a device, driven by the plans of any Policy: hits are gathered
/// from the frames, misses come from the host, inserts are copied into frames afterwards. So the
/// schedule of Belady over a superbatch is the cache of the device too; FastGL's Match (ASPLOS
/// 2024, section 4.1) and GNNLab's static set are the policies `match` and `static`.
///
/// Rows go up on one stream while the frames serve the step before on another: by a kernel that
/// reads them where they are, if the device reaches that memory (Reach), which on an H100 moves
/// them at .9 of the rate of copies of whole buffers (cuda/DEVICE.md); else as one copy, packed.
/// Each step in flight has buffers of its own, which are used again once its rows have been
/// released.
/// Threads: one at a time. Ownership: `device` must outlive the pool.
class DevicePool {
 public:
  /// Rows of a step in the order of its keys, [requests, row_bytes]. They may be read behind
  /// `ready` and until they are released.
  struct Rows {
    const void* data = nullptr;
    DeviceEvent ready = 0;
    DeviceEvent read = 0;  ///< the rows of the host are not read any more
    std::uint32_t slot = 0;
  };

  /// Errors: kInvalidArgument, a size is 0; kOutOfMemory, saying of what.
  static Result<std::unique_ptr<DevicePool>> Create(Device& device,
                                                    const DevicePoolOptions& options);
  /// Waits for what is queued.
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  /// Returns the bytes of the device, and of pinned memory, that a pool takes at most; `packs`: of
  /// whose rows some lie where the device does not reach.
  static std::uint64_t DeviceBytes(const DevicePoolOptions& options, bool packs);
  static std::uint64_t PinnedBytes(const DevicePoolOptions& options, bool packs);

  /// Asks whether a device reaches memory that the host has already, by a piece of it. Errors:
  /// those of Device::Register.
  static Status CanReach(Device& device);

  /// Lets the device read rows where they are: those that lie in `table` at a multiple of
  /// row_bytes. The memory must stay, and its pages be the same, until Leave. Errors: those of
  /// Device::Register; rows are packed then.
  Status Reach(std::span<const std::byte> table);

  /// Ends Reach: waits until nothing is read there any more.
  void Leave();

  /// Puts rows[i] of the host into the frame of entries[i]. Before the first step.
  Status Prefill(std::span<const PrefillEntry> entries, std::span<const std::byte* const> rows);

  /// Queues a step of `requests` keys. miss_rows[i] is the row of plan.misses[i] on the host, which
  /// must stay the same until the event `read`, if it lies in a table that the device reaches; else
  /// it is not read any more when this returns. Waits until a step's buffers are free. Errors:
  /// kInvalidArgument, the plan does not fit the pool, or all steps in flight are still held;
  /// kIoError, the device failed. A pool is of no use after that.
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
  /// numbers in the table and places of rows that are reached, places of those that are packed,
  /// then the flag of the gathers.
  struct Slot {
    std::byte* out = nullptr;         // device, [most_requests, row_bytes]
    std::byte* landing = nullptr;     // device, the same; null until rows are packed
    std::byte* staging = nullptr;     // pinned, the same; null until rows are packed
    std::int64_t* indexes = nullptr;  // pinned
    std::int64_t* on_device = nullptr;
    std::uint32_t* first_bad = nullptr;  // in on_device, of the step
    std::uint32_t* flag = nullptr;       // pinned, copied back
    std::vector<DeviceEvent> events;     // of the step, freed with it
    bool held = false;                   // by whom the rows were given to
    bool busy = false;                   // `released` is not waited for yet
    DeviceEvent released = 0;
    std::uint32_t most_requests = 0;
  };

  DevicePool(Device& device, const DevicePoolOptions& options)
      : device_(device), options_(options), slots_(options.steps_in_flight) {}
  Status AllocateAll();
  Status AllocateSlot(Slot& slot, std::uint32_t most_requests);
  Status AllocateStaging(Slot& slot);
  void FreeSlot(Slot& slot);
  Status CheckPlan(const StepPlan& plan, std::uint32_t requests, std::size_t miss_rows) const;
  Status Reclaim(Slot& slot);
  void FindMisses(const StepPlan& plan, std::span<const std::byte* const> miss_rows);
  Result<DeviceEvent> Upload(Slot& slot, const StepPlan& plan, std::uint32_t requests,
                             std::span<const std::byte* const> miss_rows);
  Status Pack(Slot& slot, std::span<const std::byte* const> miss_rows);
  Status QueueGathers(Slot& slot, const StepPlan& plan, std::uint32_t requests);
  Status Gather(DeviceStream stream, const Slot& slot, const cuda::GatherArgs& what);

  Device& device_;
  const DevicePoolOptions options_;
  std::byte* frames_ = nullptr;
  std::span<const std::byte> reach_;  // of the host; empty: nothing is reached
  bool registered_ = false;           // by this pool
  std::vector<Slot> slots_;

  // The misses of a step: those that are reached, by their numbers in the table, then the others.
  std::vector<std::int64_t> reached_rows_, reached_places_, packed_places_;
  std::vector<std::size_t> packed_;  // of miss_rows
  std::uint64_t next_ = 0;           // step
  DevicePoolCounts counts_;
  std::vector<DeviceStream> streams_;  // copies, gathers
};

}  // namespace rhizome::inline internal
