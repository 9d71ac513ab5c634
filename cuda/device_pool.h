#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cuda/device.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

struct DevicePoolOptions {
  std::uint32_t frame_count = 0;
  std::size_t row_bytes = 0;
  std::uint32_t max_requests = 0;  ///< max keys of a step
  bool grows = false;              ///< a step of more keys gets larger buffers
  std::uint32_t steps_in_flight = 2;
};

/// Counters of a pool: steps, hits, and rows and bytes sent to the device.
struct DevicePoolCounts {
  std::uint64_t steps = 0;
  std::uint64_t hits = 0;
  std::uint64_t uploaded_rows = 0;  ///< misses and prefill
  std::uint64_t packed_rows = 0;    ///< uploaded rows that were copied to a pinned buffer first
  std::uint64_t row_bytes = 0;
  std::uint64_t index_bytes = 0;
};

/// A cache of rows in device memory, driven by the plans of any Policy. Hits are gathered from the
/// frames, misses come from the host, and inserts are copied into frames afterwards. The Belady
/// schedule of a superbatch can thus drive the device cache too. FastGL's Match (ASPLOS 2024,
/// section 4.1) and GNNLab's static set are the policies `match` and `static`.
///
/// Rows are uploaded on one stream while another stream serves the previous step from the frames.
/// If the device can read the host memory (Reach), a kernel reads the rows in place, which on an
/// H100 reaches .9 of the rate of copies of whole buffers (cuda/DEVICE.md). Otherwise rows are
/// packed and uploaded in one copy. Each step in flight has its own buffers, which are reused once
/// its rows have been released.
/// Threads: one at a time. Ownership: `device` must outlive the pool.
class DevicePool {
 public:
  /// Rows of a step in the order of its keys, [requests, row_bytes]. They can be read after
  /// `ready`, until they are released.
  struct Rows {
    const void* data = nullptr;
    DeviceEvent ready = 0;
    DeviceEvent read = 0;  ///< the host rows are no longer read after it
    std::uint32_t slot = 0;
  };

  /// Errors: kInvalidArgument, a size is 0; kOutOfMemory, the message names the kind of memory.
  static Result<std::unique_ptr<DevicePool>> Create(Device& device,
                                                    const DevicePoolOptions& options);
  /// Waits for all queued work.
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  /// Return the maximum device memory and pinned memory of a pool. `packs`: some host rows are in
  /// memory that the device cannot read.
  static std::uint64_t DeviceBytes(const DevicePoolOptions& options, bool packs);
  static std::uint64_t PinnedBytes(const DevicePoolOptions& options, bool packs);

  /// Checks with a small buffer whether a device can read existing host memory. Errors: as
  /// Device::Register.
  static Status CanReach(Device& device);

  /// Lets the device read rows in place: those in `table`, at a multiple of row_bytes. The memory
  /// must remain valid, on the same pages, until Leave. Errors: as Device::Register, except that
  /// memory registered already is accepted. After an error all rows are packed.
  Status Reach(std::span<const std::byte> table);

  /// Ends Reach: waits until the device no longer reads the table.
  void Leave();

  /// Copies rows[i] of the host into the frame of entries[i]. Must be called before the first step.
  Status Prefill(std::span<const PrefillEntry> entries, std::span<const std::byte* const> rows);

  /// Queues a step of `requests` keys. miss_rows[i] is the host row of plan.misses[i]. A row that
  /// the device reads in place must not change before the event `read`; other rows have been copied
  /// when this returns. Blocks until the buffers of a step are free. Errors: kInvalidArgument, the
  /// plan does not fit the pool, or the rows of all steps in flight are still held; kIoError, the
  /// device failed. The pool cannot be used after an error.
  Result<Rows> Step(const StepPlan& plan, std::uint32_t requests,
                    std::span<const std::byte* const> miss_rows);

  /// Releases the rows: they may be overwritten after the work queued on `stream` so far.
  Status Release(const Rows& rows, DeviceStream stream);

  const DevicePoolCounts& counts() const { return counts_; }

  /// Returns the pinned memory of the current buffers.
  std::uint64_t pinned_bytes() const;

  /// Returns the number of keys for which a growing pool allocates buffers at a step of `requests`
  /// keys. It includes a reserve, because pinning is slow.
  static std::uint32_t GrownTo(std::uint32_t requests) { return requests + requests / 4; }

 private:
  /// Buffers of a step. The index arrays hold, in this order: frames and places of hits, places and
  /// frames of inserts, table rows and places of rows read in place, places of packed rows, and the
  /// flag of the gathers.
  struct Slot {
    std::byte* out = nullptr;         // device, [max_requests, row_bytes]
    std::byte* landing = nullptr;     // device, same shape; null until rows are packed
    std::byte* staging = nullptr;     // pinned, same shape; null until rows are packed
    std::int64_t* indexes = nullptr;  // pinned
    std::int64_t* on_device = nullptr;
    std::uint32_t* first_bad = nullptr;  // the step's flag, in on_device
    std::uint32_t* flag = nullptr;       // pinned copy of *first_bad
    std::vector<DeviceEvent> events;     // events of the step, freed with it
    bool held = false;                   // the caller has not released the rows yet
    bool busy = false;                   // `released` has not been waited for yet
    DeviceEvent released = 0;
    std::uint32_t max_requests = 0;
  };

  DevicePool(Device& device, const DevicePoolOptions& options)
      : device_(device), options_(options), slots_(options.steps_in_flight) {}
  Status AllocateAll();
  Status AllocateSlot(Slot& slot, std::uint32_t max_requests);
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
  std::span<const std::byte> reach_;  // host memory read in place; empty: none
  bool registered_ = false;           // by this pool
  std::vector<Slot> slots_;

  // Misses of the current step: those read in place, by table row, then the packed ones.
  std::vector<std::int64_t> reached_rows_, reached_places_, packed_places_;
  std::vector<std::size_t> packed_;  // indexes into miss_rows
  std::uint64_t next_ = 0;           // number of the next step
  DevicePoolCounts counts_;
  std::vector<DeviceStream> streams_;  // copies, gathers
};

}  // namespace internal
}  // namespace rhizome
