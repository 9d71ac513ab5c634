#include "cuda/device_pool.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

enum StreamOf : std::size_t { kCopies, kGathers };

/// Returns the number of elements in the index arrays of a step: at most four per key, and the
/// flag.
std::uint64_t IndexCount(const DevicePoolOptions& options) {
  return 4 * std::uint64_t{options.max_requests} + 1;
}

std::uint64_t RowsBytes(const DevicePoolOptions& options) {
  return options.max_requests * options.row_bytes;
}

/// Initial value of the flag: its lower 32 bits are kNoPosition.
constexpr std::int64_t kNoFlag = -1;

template <typename T>
Status AllocateOnDevice(Device& device, std::uint64_t bytes, T*& memory) {
  RHIZOME_ASSIGN_OR_RETURN(void* const made, device.Allocate(bytes));
  memory = static_cast<T*>(made);
  return Status::Ok();
}

template <typename T>
Status AllocatePinned(Device& device, std::uint64_t bytes, T*& memory) {
  RHIZOME_ASSIGN_OR_RETURN(void* const made, device.AllocatePinned(bytes));
  memory = static_cast<T*>(made);
  return Status::Ok();
}

/// Writes index_of(one) for each element of `range` from `at` on, and returns the end.
template <typename Range, typename IndexOf>
std::int64_t* Append(const Range& range, const IndexOf& index_of, std::int64_t* at) {
  for (const auto& one : range) *at++ = static_cast<std::int64_t>(index_of(one));
  return at;
}

}  // namespace

std::uint64_t DevicePool::DeviceBytes(const DevicePoolOptions& options, bool packs) {
  const std::uint64_t buffers = packs ? 2 : 1;
  return options.frame_count * options.row_bytes +
         options.steps_in_flight *
             (buffers * RowsBytes(options) + IndexCount(options) * sizeof(std::int64_t));
}

std::uint64_t DevicePool::PinnedBytes(const DevicePoolOptions& options, bool packs) {
  return options.steps_in_flight *
         ((packs ? RowsBytes(options) : 0) + IndexCount(options) * sizeof(std::int64_t) +
          sizeof(std::uint32_t));
}

std::uint64_t DevicePool::pinned_bytes() const {
  std::uint64_t bytes = 0;
  for (const Slot& slot : slots_) {
    DevicePoolOptions of_slot = options_;
    of_slot.steps_in_flight = 1;
    of_slot.max_requests = slot.max_requests;
    bytes += PinnedBytes(of_slot, slot.staging != nullptr);
  }
  return bytes;
}

Result<std::unique_ptr<DevicePool>> DevicePool::Create(Device& device,
                                                       const DevicePoolOptions& options) {
  if (options.row_bytes == 0 || options.max_requests == 0 || options.steps_in_flight == 0) {
    return Fail(Status::InvalidArgument(
        "device pool: bytes of a row, keys of a step and steps in flight are at least 1"));
  }
  std::unique_ptr<DevicePool> pool(new DevicePool(device, options));
  RHIZOME_RETURN_IF_ERROR(pool->AllocateAll());
  return pool;
}

DevicePool::~DevicePool() {
  Leave();
  // Errors are ignored: a lost device has no work left to wait for.
  for (const DeviceStream stream : streams_) static_cast<void>(device_.Drain(stream));
  for (Slot& slot : slots_) {
    // The reader of the rows may use its own stream.
    if (slot.busy) static_cast<void>(device_.Synchronize(slot.released));
    for (const DeviceEvent event : slot.events) device_.FreeEvent(event);
  }
  for (const DeviceStream stream : streams_) device_.FreeStream(stream);
  for (Slot& slot : slots_) FreeSlot(slot);
  if (frames_ != nullptr) device_.Free(frames_);
}

Status DevicePool::CanReach(Device& device) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::vector<std::byte> piece(kPieceBytes);
  RHIZOME_RETURN_IF_ERROR(device.Register(piece.data(), piece.size()));
  device.Unregister(piece.data());
  return Status::Ok();
}

Status DevicePool::Reach(std::span<const std::byte> table) {
  Leave();
  // The device only reads registered memory.
  const Status status = device_.Register(const_cast<std::byte*>(table.data()), table.size());
  registered_ = status.ok();
  if (!registered_ && status.code() != StatusCode::kAlreadyExists) return status;
  reach_ = table;
  return Status::Ok();
}

void DevicePool::Leave() {
  // Errors are ignored: a lost device does not read any more.
  if (!reach_.empty() && !streams_.empty()) static_cast<void>(device_.Drain(streams_[kCopies]));
  if (registered_) device_.Unregister(const_cast<std::byte*>(reach_.data()));
  registered_ = false;
  reach_ = {};
}

Status DevicePool::AllocateAll() {
  for (int i = 0; i < 2; ++i) {
    RHIZOME_ASSIGN_OR_RETURN(const DeviceStream stream, device_.MakeStream());
    streams_.push_back(stream);
  }
  if (options_.frame_count > 0) {
    RHIZOME_RETURN_IF_ERROR(
        AllocateOnDevice(device_, options_.frame_count * options_.row_bytes, frames_));
  }
  for (Slot& slot : slots_) RHIZOME_RETURN_IF_ERROR(AllocateSlot(slot, options_.max_requests));
  return Status::Ok();
}

Status DevicePool::AllocateSlot(Slot& slot, std::uint32_t max_requests) {
  DevicePoolOptions of_slot = options_;
  of_slot.max_requests = max_requests;
  const std::uint64_t index_bytes = IndexCount(of_slot) * sizeof(std::int64_t);
  RHIZOME_RETURN_IF_ERROR(AllocateOnDevice(device_, RowsBytes(of_slot), slot.out));
  RHIZOME_RETURN_IF_ERROR(AllocateOnDevice(device_, index_bytes, slot.on_device));
  RHIZOME_RETURN_IF_ERROR(AllocatePinned(device_, index_bytes, slot.indexes));
  RHIZOME_RETURN_IF_ERROR(AllocatePinned(device_, sizeof(std::uint32_t), slot.flag));
  slot.max_requests = max_requests;
  return Status::Ok();
}

/// Allocates the buffers for packed rows, sized for the largest step of the slot.
Status DevicePool::AllocateStaging(Slot& slot) {
  const std::uint64_t bytes = slot.max_requests * options_.row_bytes;
  RHIZOME_RETURN_IF_ERROR(AllocateOnDevice(device_, bytes, slot.landing));
  return AllocatePinned(device_, bytes, slot.staging);
}

/// Frees the memory of a slot that no queued work uses.
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
  if ((requests > options_.max_requests && !options_.grows) ||
      plan.hits.size() + plan.misses.size() != requests || plan.inserts.size() > requests ||
      plan.misses.size() != miss_rows) {
    return Status::InvalidArgument(
        "device pool: a step of " + std::to_string(requests) + " keys, " +
        std::to_string(plan.hits.size()) + " hits, " + std::to_string(plan.misses.size()) +
        " misses and " + std::to_string(miss_rows) + " rows, where at most " +
        std::to_string(options_.max_requests) + " keys are expected, each a hit or a miss");
  }
  return Status::Ok();
}

/// Waits until the slot's rows have been read, and checks the flag of its gathers.
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
                                 " of a plan is not a frame or a key of the pool");
}

Status DevicePool::Prefill(std::span<const PrefillEntry> entries,
                           std::span<const std::byte* const> rows) {
  for (std::size_t begin = 0; begin < entries.size(); begin += options_.max_requests) {
    const std::size_t count = std::min<std::size_t>(options_.max_requests, entries.size() - begin);
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

/// Steps:
/// 1. Check the plan, and wait until the rows of the slot's previous step are read (Reclaim).
/// 2. On the copy stream: upload the indexes and the rows of misses (Upload).
/// 3. On the gather stream: gather hits and packed misses into the slot's output, and copy inserts
///    into frames (QueueGathers).
/// 4. Record the event after which the rows can be read.
Result<DevicePool::Rows> DevicePool::Step(const StepPlan& plan, std::uint32_t requests,
                                          std::span<const std::byte* const> miss_rows) {
  RHIZOME_RETURN_IF_ERROR(CheckPlan(plan, requests, miss_rows.size()));
  const auto number = static_cast<std::uint32_t>(next_ % slots_.size());
  Slot& slot = slots_[number];
  RHIZOME_RETURN_IF_ERROR(Reclaim(slot));
  if (requests > slot.max_requests) {
    FreeSlot(slot);
    RHIZOME_RETURN_IF_ERROR(AllocateSlot(slot, GrownTo(requests)));
  }
  RHIZOME_ASSIGN_OR_RETURN(const DeviceEvent read, Upload(slot, plan, requests, miss_rows));
  RHIZOME_RETURN_IF_ERROR(QueueGathers(slot, plan, requests));
  RHIZOME_ASSIGN_OR_RETURN(const DeviceEvent ready, device_.Record(streams_[kGathers]));
  slot.events.push_back(ready);
  slot.held = true;
  ++next_;
  ++counts_.steps;
  counts_.hits += plan.hits.size();
  counts_.uploaded_rows += plan.misses.size();
  counts_.packed_rows += packed_.size();
  counts_.row_bytes += plan.misses.size() * options_.row_bytes;
  return Rows{.data = slot.out, .ready = ready, .read = read, .slot = number};
}

Status DevicePool::Release(const Rows& rows, DeviceStream stream) {
  Slot& slot = slots_[rows.slot];
  // Ensures that the gathers are done before the slot is reused, even if the reader did not wait
  // for them.
  RHIZOME_RETURN_IF_ERROR(device_.Wait(stream, rows.ready));
  RHIZOME_ASSIGN_OR_RETURN(slot.released, device_.Record(stream));
  slot.events.push_back(slot.released);
  slot.held = false;
  slot.busy = true;
  return Status::Ok();
}

/// Splits the misses of a step into rows that the device reads in place and rows to be packed.
void DevicePool::FindMisses(const StepPlan& plan, std::span<const std::byte* const> miss_rows) {
  reached_rows_.clear();
  reached_places_.clear();
  packed_places_.clear();
  packed_.clear();
  const std::size_t rows = reach_.size() / options_.row_bytes;
  for (std::size_t i = 0; i < miss_rows.size(); ++i) {
    // For a row before the table the difference wraps around to a number that is too large.
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(miss_rows[i]) -
                               reinterpret_cast<std::uintptr_t>(reach_.data());
    if (offset / options_.row_bytes < rows && offset % options_.row_bytes == 0) {
      reached_rows_.push_back(static_cast<std::int64_t>(offset / options_.row_bytes));
      reached_places_.push_back(plan.misses[i]);
    } else {
      packed_.push_back(i);
      packed_places_.push_back(plan.misses[i]);
    }
  }
}

/// Queues the copies of indexes and rows, and makes the gathers wait for them. Returns the event
/// after which the host rows are no longer read.
Result<DeviceEvent> DevicePool::Upload(Slot& slot, const StepPlan& plan, std::uint32_t requests,
                                       std::span<const std::byte* const> miss_rows) {
  FindMisses(plan, miss_rows);
  const auto same = [](std::int64_t index) { return index; };
  const auto request = [](const StepPlan::Place& of) { return of.request; };
  const auto frame = [](const StepPlan::Place& of) { return of.frame; };
  std::int64_t* at = slot.indexes;
  at = Append(plan.hits, frame, at);
  at = Append(plan.hits, request, at);
  at = Append(plan.inserts, request, at);
  at = Append(plan.inserts, frame, at);
  const std::ptrdiff_t reached = at - slot.indexes;
  at = Append(reached_rows_, same, at);
  at = Append(reached_places_, same, at);
  at = Append(packed_places_, same, at);
  *at++ = kNoFlag;
  static_assert(static_cast<std::uint32_t>(kNoFlag) == cuda::kNoPosition);
  const std::size_t index_bytes = static_cast<std::size_t>(at - slot.indexes) * sizeof(*at);
  const DeviceStream stream = streams_[kCopies];
  RHIZOME_RETURN_IF_ERROR(device_.CopyToDevice(stream, slot.on_device, slot.indexes, index_bytes));
  counts_.index_bytes += index_bytes;
  slot.first_bad = reinterpret_cast<std::uint32_t*>(slot.on_device + (at - 1 - slot.indexes));
  RHIZOME_RETURN_IF_ERROR(Gather(stream, slot,
                                 {.table = reinterpret_cast<const unsigned char*>(reach_.data()),
                                  .table_rows = reach_.size() / options_.row_bytes,
                                  .rows = slot.on_device + reached,
                                  .place = slot.on_device + reached + reached_rows_.size(),
                                  .count = static_cast<std::uint32_t>(reached_rows_.size()),
                                  .out = reinterpret_cast<unsigned char*>(slot.out),
                                  .out_rows = requests,
                                  .from_host = true}));
  RHIZOME_RETURN_IF_ERROR(Pack(slot, miss_rows));
  RHIZOME_ASSIGN_OR_RETURN(const DeviceEvent copied, device_.Record(stream));
  slot.events.push_back(copied);
  RHIZOME_RETURN_IF_ERROR(device_.Wait(streams_[kGathers], copied));
  return copied;
}

/// Packs the rows that the device cannot read in place, and queues one copy of them.
Status DevicePool::Pack(Slot& slot, std::span<const std::byte* const> miss_rows) {
  if (packed_.empty()) return Status::Ok();
  if (slot.staging == nullptr) RHIZOME_RETURN_IF_ERROR(AllocateStaging(slot));
  std::byte* to = slot.staging;
  for (const std::size_t i : packed_) {
    std::memcpy(to, miss_rows[i], options_.row_bytes);
    to += options_.row_bytes;
  }
  return device_.CopyToDevice(streams_[kCopies], slot.landing, slot.staging,
                              packed_.size() * options_.row_bytes);
}

/// Queues a gather with the row width and the flag of the slot.
Status DevicePool::Gather(DeviceStream stream, const Slot& slot, const cuda::GatherArgs& what) {
  if (what.count == 0) return Status::Ok();
  cuda::GatherArgs args = what;
  args.table_stride_bytes = args.out_stride_bytes = args.row_bytes = options_.row_bytes;
  args.first_bad = slot.first_bad;
  return device_.Gather(stream, args);
}

/// Queues the gathers of a step, in the order in which Upload has written their indexes.
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
  next(2 * reached_rows_.size());
  const std::int64_t* const packed_places = next(packed_places_.size());

  const DeviceStream stream = streams_[kGathers];
  const auto gather = [&](const std::byte* table, std::uint64_t table_rows,
                          const std::int64_t* rows, const std::int64_t* place, std::size_t count,
                          std::byte* out, std::uint64_t out_rows) {
    return Gather(stream, slot,
                  {.table = reinterpret_cast<const unsigned char*>(table),
                   .table_rows = table_rows,
                   .rows = rows,
                   .place = place,
                   .count = static_cast<std::uint32_t>(count),
                   .out = reinterpret_cast<unsigned char*>(out),
                   .out_rows = out_rows});
  };
  RHIZOME_RETURN_IF_ERROR(gather(slot.landing, packed_.size(), nullptr, packed_places,
                                 packed_.size(), slot.out, requests));
  RHIZOME_RETURN_IF_ERROR(gather(frames_, options_.frame_count, hit_frames, hit_places,
                                 plan.hits.size(), slot.out, requests));
  RHIZOME_RETURN_IF_ERROR(gather(slot.out, requests, insert_places, insert_frames,
                                 plan.inserts.size(), frames_, options_.frame_count));
  return device_.CopyToHost(stream, slot.flag, slot.first_bad, sizeof(std::uint32_t));
}

}  // namespace internal
}  // namespace rhizome
