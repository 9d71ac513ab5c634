#include "rhizome/cuda/device_pool.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

namespace rhizome::inline internal {
namespace {

enum StreamOf : std::size_t { kCopies, kGathers };

/// Index arrays of a step, and one element for the flag.
std::uint64_t IndexCount(const DevicePoolOptions& options) {
  return 5 * std::uint64_t{options.most_requests} + 1;
}

std::uint64_t RowsBytes(const DevicePoolOptions& options) {
  return options.most_requests * options.row_bytes;
}

/// Numbers that fit no row.
constexpr std::int64_t kNoFlag = -1;

}  // namespace

std::uint64_t DevicePool::DeviceBytes(const DevicePoolOptions& options) {
  const std::uint64_t buffers = options.rows_pinned ? 1 : 2;
  return options.frame_count * options.row_bytes +
         options.steps_in_flight *
             (buffers * RowsBytes(options) + IndexCount(options) * sizeof(std::int64_t));
}

std::uint64_t DevicePool::PinnedBytes(const DevicePoolOptions& options) {
  return options.steps_in_flight *
         ((options.rows_pinned ? 0 : RowsBytes(options)) +
          IndexCount(options) * sizeof(std::int64_t) + sizeof(std::uint32_t));
}

std::uint64_t DevicePool::pinned_bytes() const {
  std::uint64_t bytes = 0;
  for (const Slot& slot : slots_) {
    DevicePoolOptions of_slot = options_;
    of_slot.steps_in_flight = 1;
    of_slot.most_requests = slot.most_requests;
    bytes += PinnedBytes(of_slot);
  }
  return bytes;
}

Result<std::unique_ptr<DevicePool>> DevicePool::Create(Device& device,
                                                       const DevicePoolOptions& options) {
  if (options.row_bytes == 0 || options.most_requests == 0 || options.steps_in_flight == 0) {
    return Fail(Status::InvalidArgument(
        "device pool: bytes of a row, keys of a step and steps in flight are at least 1"));
  }
  std::unique_ptr<DevicePool> pool(new DevicePool(device, options));
  RHIZOME_RETURN_IF_ERROR(pool->AllocateAll());
  return pool;
}

DevicePool::~DevicePool() {
  // A device that is lost has nothing left to wait for.
  for (const DeviceStream stream : streams_) static_cast<void>(device_.Drain(stream));
  for (Slot& slot : slots_) {
    // The rows' reader has a stream of its own.
    if (slot.busy) static_cast<void>(device_.Synchronize(slot.released));
    for (const DeviceEvent event : slot.events) device_.FreeEvent(event);
  }
  for (const DeviceStream stream : streams_) device_.FreeStream(stream);
  for (Slot& slot : slots_) FreeSlot(slot);
  if (frames_ != nullptr) device_.Free(frames_);
}

Status DevicePool::AllocateAll() {
  for (int i = 0; i < 2; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const DeviceStream stream, device_.MakeStream());
    streams_.push_back(stream);
  }
  if (options_.frame_count > 0) {
    RHIZOME_ASSIGN_OR_RETURN(void* const frames,
                             device_.Allocate(options_.frame_count * options_.row_bytes));
    frames_ = static_cast<std::byte*>(frames);
  }
  for (Slot& slot : slots_) RHIZOME_RETURN_IF_ERROR(AllocateSlot(slot, options_.most_requests));
  return Status::Ok();
}

Status DevicePool::AllocateSlot(Slot& slot, std::uint32_t most_requests) {
  DevicePoolOptions of_slot = options_;
  of_slot.most_requests = most_requests;
  const std::uint64_t rows_bytes = RowsBytes(of_slot);
  const std::uint64_t index_bytes = IndexCount(of_slot) * sizeof(std::int64_t);
  const auto on_device = [&](auto*& memory, std::uint64_t bytes) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(void* const made, device_.Allocate(bytes));
    memory = static_cast<std::remove_reference_t<decltype(memory)>>(made);
    return Status::Ok();
  };
  const auto pinned = [&](auto*& memory, std::uint64_t bytes) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(void* const made, device_.AllocatePinned(bytes));
    memory = static_cast<std::remove_reference_t<decltype(memory)>>(made);
    return Status::Ok();
  };
  RHIZOME_RETURN_IF_ERROR(on_device(slot.out, rows_bytes));
  if (!options_.rows_pinned) {
    RHIZOME_RETURN_IF_ERROR(on_device(slot.landing, rows_bytes));
    RHIZOME_RETURN_IF_ERROR(pinned(slot.staging, rows_bytes));
  }
  RHIZOME_RETURN_IF_ERROR(on_device(slot.on_device, index_bytes));
  RHIZOME_RETURN_IF_ERROR(pinned(slot.indexes, index_bytes));
  RHIZOME_RETURN_IF_ERROR(pinned(slot.flag, sizeof(std::uint32_t)));
  slot.most_requests = most_requests;
  return Status::Ok();
}

/// Gives back the memory of a slot that no work uses.
void DevicePool::FreeSlot(Slot& slot) {
  for (void* const memory : {static_cast<void*>(slot.out), static_cast<void*>(slot.landing),
                             static_cast<void*>(slot.on_device)}) {
    if (memory != nullptr) device_.Free(memory);
  }
  for (void* const memory : {static_cast<void*>(slot.staging), static_cast<void*>(slot.indexes),
                             static_cast<void*>(slot.flag)}) {
    if (memory != nullptr) device_.FreePinned(memory);
  }
  slot = {};
}

Status DevicePool::CheckPlan(const StepPlan& plan, std::uint32_t requests,
                             std::size_t miss_rows) const {
  if ((requests > options_.most_requests && !options_.grows) ||
      plan.hits.size() + plan.misses.size() != requests || plan.inserts.size() > requests ||
      plan.misses.size() != miss_rows) {
    return Status::InvalidArgument(
        "device pool: a step of " + std::to_string(requests) + " keys, " +
        std::to_string(plan.hits.size()) + " hits, " + std::to_string(plan.misses.size()) +
        " misses and " + std::to_string(miss_rows) + " rows, where at most " +
        std::to_string(options_.most_requests) + " keys are expected, each a hit or a miss");
  }
  return Status::Ok();
}

/// Waits until a slot's rows are read, and for the flag of its gathers.
Status DevicePool::Reclaim(Slot& slot) {
  if (slot.held) {
    return Status::InvalidArgument(
        "device pool: the rows of an earlier step must be released before another is begun");
  }
  if (!slot.busy) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(device_.Synchronize(slot.released));
  slot.busy = false;
  for (const DeviceEvent event : slot.events) device_.FreeEvent(event);
  slot.events.clear();
  if (*slot.flag == cuda::kNoPosition) return Status::Ok();
  return Status::InvalidArgument("device pool: number " + std::to_string(*slot.flag) +
                                 " of a plan names a frame or a key that there is not");
}

Status DevicePool::Prefill(std::span<const PrefillEntry> entries,
                           std::span<const std::byte* const> rows) {
  for (std::size_t begin = 0; begin < entries.size(); begin += options_.most_requests) {
    const std::size_t count = std::min<std::size_t>(options_.most_requests, entries.size() - begin);
    StepPlan plan;
    for (std::uint32_t i = 0; i < count; ++i) {
      plan.misses.push_back(i);
      plan.inserts.push_back({i, entries[begin + i].second});
    }
    RHIZOME_ASSIGN_OR_RETURN(const Rows copied, Step(plan, static_cast<std::uint32_t>(count),
                                                     rows.subspan(begin, count)));
    RHIZOME_RETURN_IF_ERROR(Release(copied, streams_[kGathers]));
    --counts_.steps;
  }
  return Status::Ok();
}

Result<DevicePool::Rows> DevicePool::Step(const StepPlan& plan, std::uint32_t requests,
                                          std::span<const std::byte* const> miss_rows) {
  RHIZOME_RETURN_IF_ERROR(CheckPlan(plan, requests, miss_rows.size()));
  const auto number = static_cast<std::uint32_t>(next_ % slots_.size());
  Slot& slot = slots_[number];
  RHIZOME_RETURN_IF_ERROR(Reclaim(slot));
  if (requests > slot.most_requests) {
    FreeSlot(slot);
    RHIZOME_RETURN_IF_ERROR(AllocateSlot(slot, GrownTo(requests)));
  }
  RHIZOME_RETURN_IF_ERROR(Upload(slot, plan, miss_rows));
  RHIZOME_RETURN_IF_ERROR(QueueGathers(slot, plan, requests));
  RHIZOME_ASSIGN_OR_RETURN(const DeviceEvent ready, device_.Record(streams_[kGathers]));
  slot.events.push_back(ready);
  slot.held = true;
  ++next_;
  ++counts_.steps;
  counts_.hits += plan.hits.size();
  counts_.uploaded_rows += plan.misses.size();
  return Rows{.data = slot.out, .ready = ready, .slot = number};
}

Status DevicePool::Release(const Rows& rows, DeviceStream stream) {
  Slot& slot = slots_[rows.slot];
  // The gathers too are over before the slot is used again: a reader need not have waited for them.
  RHIZOME_RETURN_IF_ERROR(device_.Wait(stream, rows.ready));
  RHIZOME_ASSIGN_OR_RETURN(slot.released, device_.Record(stream));
  slot.events.push_back(slot.released);
  slot.held = false;
  slot.busy = true;
  return Status::Ok();
}

/// Queues the copies of indexes and rows, and lets the gathers wait for them.
Status DevicePool::Upload(Slot& slot, const StepPlan& plan,
                          std::span<const std::byte* const> miss_rows) {
  std::int64_t* at = slot.indexes;
  for (const StepPlan::Place& hit : plan.hits) *at++ = hit.frame;
  for (const StepPlan::Place& hit : plan.hits) *at++ = hit.request;
  for (const StepPlan::Place& insert : plan.inserts) *at++ = insert.request;
  for (const StepPlan::Place& insert : plan.inserts) *at++ = insert.frame;
  for (const std::uint32_t miss : plan.misses) *at++ = miss;
  *at++ = kNoFlag;
  static_assert(static_cast<std::uint32_t>(kNoFlag) == cuda::kNoPosition);
  const std::size_t index_bytes = static_cast<std::size_t>(at - slot.indexes) * sizeof(*at);
  RHIZOME_RETURN_IF_ERROR(
      device_.CopyToDevice(streams_[kCopies], slot.on_device, slot.indexes, index_bytes));
  counts_.index_bytes += index_bytes;
  if (options_.rows_pinned) {
    RHIZOME_RETURN_IF_ERROR(UploadRuns(slot, plan, miss_rows));
  } else if (!miss_rows.empty()) {
    for (std::size_t i = 0; i < miss_rows.size(); ++i)
      std::memcpy(slot.staging + i * options_.row_bytes, miss_rows[i], options_.row_bytes);
    RHIZOME_RETURN_IF_ERROR(device_.CopyToDevice(streams_[kCopies], slot.landing, slot.staging,
                                                 miss_rows.size() * options_.row_bytes));
    ++counts_.copies;
  }
  counts_.row_bytes += miss_rows.size() * options_.row_bytes;
  RHIZOME_ASSIGN_OR_RETURN(const DeviceEvent copied, device_.Record(streams_[kCopies]));
  slot.events.push_back(copied);
  return device_.Wait(streams_[kGathers], copied);
}

/// Copies rows to their places; those that are neighbours on both sides, together.
Status DevicePool::UploadRuns(Slot& slot, const StepPlan& plan,
                              std::span<const std::byte* const> miss_rows) {
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < miss_rows.size(); begin = end) {
    end = begin + 1;
    while (end < miss_rows.size() && miss_rows[end] == miss_rows[end - 1] + options_.row_bytes &&
           plan.misses[end] == plan.misses[end - 1] + 1) {
      ++end;
    }
    RHIZOME_RETURN_IF_ERROR(
        device_.CopyToDevice(streams_[kCopies], slot.out + plan.misses[begin] * options_.row_bytes,
                             miss_rows[begin], (end - begin) * options_.row_bytes));
    ++counts_.copies;
  }
  return Status::Ok();
}

/// Queues the gathers of a step, whose indexes lie as Upload leaves them.
Status DevicePool::QueueGathers(Slot& slot, const StepPlan& plan, std::uint32_t requests) {
  const std::int64_t* at = slot.on_device;
  const auto next = [&at](std::size_t count) {
    const std::int64_t* const begin = at;
    at += count;
    return begin;
  };
  const std::int64_t* const hit_frames = next(plan.hits.size());
  const std::int64_t* const hit_places = next(plan.hits.size());
  const std::int64_t* const insert_places = next(plan.inserts.size());
  const std::int64_t* const insert_frames = next(plan.inserts.size());
  const std::int64_t* const miss_places = next(plan.misses.size());
  auto* const flag = reinterpret_cast<std::uint32_t*>(slot.on_device + (at - slot.on_device));

  const DeviceStream stream = streams_[kGathers];
  const auto gather = [&](const std::byte* table, std::uint64_t table_rows,
                          const std::int64_t* rows, const std::int64_t* place, std::size_t count,
                          std::byte* out, std::uint64_t out_rows) {
    if (count == 0) return Status::Ok();
    cuda::GatherArgs args;
    args.table = reinterpret_cast<const unsigned char*>(table);
    args.table_rows = table_rows;
    args.rows = rows;
    args.place = place;
    args.count = static_cast<std::uint32_t>(count);
    args.out = reinterpret_cast<unsigned char*>(out);
    args.out_rows = out_rows;
    args.table_stride_bytes = args.out_stride_bytes = args.row_bytes = options_.row_bytes;
    args.first_bad = flag;
    return device_.Gather(stream, args);
  };
  if (!options_.rows_pinned) {
    RHIZOME_RETURN_IF_ERROR(gather(slot.landing, plan.misses.size(), nullptr, miss_places,
                                   plan.misses.size(), slot.out, requests));
  }
  RHIZOME_RETURN_IF_ERROR(gather(frames_, options_.frame_count, hit_frames, hit_places,
                                 plan.hits.size(), slot.out, requests));
  RHIZOME_RETURN_IF_ERROR(gather(slot.out, requests, insert_places, insert_frames,
                                 plan.inserts.size(), frames_, options_.frame_count));
  return device_.CopyToHost(stream, slot.flag, flag, sizeof(std::uint32_t));
}

}  // namespace rhizome::inline internal
