#include "cache/tables/table_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cache/policy/belady_schedule.h"
#include "cache/policy/offline_schedule.h"
#include "cache/policy/sweep.h"
#include "cache/pool/buffer_pool.h"
#include "cache/pool/slot_table.h"
#include "cache/tables/slot_map.h"
#include "cache/tables/table_io.h"
#include "index/base/parallel.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

// Memory of the pool, its schedule, SlotState and SlotMap for a cached row.
constexpr std::uint64_t kBytesPerFrame = 80;

constexpr std::size_t kReadAtOnceBytes = std::size_t{4} << 20;

/// How the memory of a cache is divided.
struct Division {
  std::uint64_t batch_rows = 0;  // rows that leave and are written back at once
  std::uint64_t frames = 0;

  /// Two steps hold rows; one batch is collected while another is written. A batch has up to as
  /// many other rows of the same blocks.
  static std::uint64_t FixedBytes(std::uint64_t row_bytes, std::uint64_t max_step_rows,
                                  std::uint64_t batch_rows) {
    return 2 * (max_step_rows + 2 * batch_rows) * (row_bytes + kBytesPerFrame);
  }

  static Division Of(const TableCacheOptions& options, std::uint64_t row_bytes,
                     std::uint64_t rows) {
    Division division;
    // Large batches have more rows of each block, and longer writes.
    division.batch_rows = std::max(options.max_step_rows / 2 + 1,
                                   options.memory_bytes / 64 / (row_bytes + kBytesPerFrame));
    const std::uint64_t fixed = FixedBytes(row_bytes, options.max_step_rows, division.batch_rows);
    const std::uint64_t left = options.memory_bytes - std::min(options.memory_bytes, fixed);
    division.frames =
        std::min<std::uint64_t>({left / (row_bytes + kBytesPerFrame), rows, kMaxFrames});
    return division;
  }
};

}  // namespace

/// Implementation. A step passes through three stages. Prepare plans it and holds its rows in the
/// pool: rows that lose their frame and are not held are written back, and the reads of its misses
/// begin. Acquire reads the misses that had to wait for the step before, waits for all reads, and
/// prepares the next step. Release writes back the changed rows that have no frame.
///
/// Invariants, between calls:
///   (1) A row has at most one slot that is framed or held, except that a row of the held step that
///       has no frame may have a second slot, of the prepared step, which is not read yet
///       (Step::deferred).
///   (2) The content of a row is in its slot; if it has none, in the queue of writes (`batch_`,
///       then `io_`); otherwise in the table.
///   (3) A slot is dirty if its row was updated since it was read or written. A dirty slot is
///   framed
///       or held.
///   (4) A row in `batch_` has no other slot; before it is read, the batch is queued.
///   (5) `slot_of_row_` has the slots that are framed or held; of two slots of a row, the later
///   one.
class TableCache::Impl {
 public:
  Impl(std::unique_ptr<RowTable> table, const TableCacheOptions& options, const Division& division,
       BufferPool pool)
      : table_(std::move(table)),
        options_(options),
        batch_rows_(division.batch_rows),
        row_floats_(table_->row_bytes() / sizeof(float)),
        pool_(std::move(pool)),
        frames_(pool_.frame_count(), kNoRow),
        slot_of_frame_(pool_.frame_count(), kNowhere),
        states_(pool_.slot_count()),
        slot_of_row_(pool_.slot_count()),
        io_(*table_, 2 * division.batch_rows * table_->row_bytes()) {}

  Status Open();
  Status Start(Trace trace);
  Status Acquire();
  Status Update(const RowOptimizer& optimizer, std::uint64_t step,
                std::span<const float> gradients);
  Status Release();
  Status Flush();
  Status Checkpoint(std::span<const std::byte> progress);

  /// Runs a function, unless the cache has failed.
  template <typename Work>
  Status Try(const Work& work) {
    if (!failed_.ok()) return failed_;
    Status status = Guarded(work);
    if (!status.ok())
      failed_ = Status(status.code(), "the cache of a table failed earlier: " + status.message());
    return status;
  }

  RowTable& table() { return *table_; }
  TableIo& io() { return io_; }
  std::uint32_t frame_count() const { return pool_.frame_count(); }
  std::size_t row_floats() const { return row_floats_; }
  std::span<const SlotId> held() const { return current_.slots; }
  std::span<const CacheKey> held_keys() const { return trace_.step(next_ - 1); }
  std::uint64_t steps_left() const { return trace_.steps() - next_; }
  const float* memory() const { return reinterpret_cast<const float*>(pool_.table().data()); }
  TableCacheStats stats() const {
    const PoolCounters& pool = pool_.counters();
    return {.rows_requested = pool.requests,
            .rows_read = pool.reads() - pool.kept,
            .rows_written = rows_written_,
            .wait_seconds = io_.wait_seconds()};
  }

 private:
  struct SlotState {
    Row row = kNoRow;
    std::uint8_t holders = 0;  // of the held and the prepared step
    bool framed = false;
    bool dirty = false;
    bool loaded = false;  // its read is done
  };

  struct Step {
    std::vector<SlotId> slots;        // by row of the step
    std::vector<RowTarget> deferred;  // misses that the held step may still change
    std::uint64_t ticket = 0;         // of its reads
  };

  Status CheckNoneHeld(std::string_view what) const;
  Status Prepare(std::size_t number, Step& step);
  void Place(std::span<const CacheKey> keys, const Step& step);
  void ReadMisses(std::span<const CacheKey> keys, Step& step);
  std::uint64_t Read(std::vector<RowTarget> targets);
  void Assign(SlotId slot, Row row);
  void WriteBack(SlotId slot);
  void CompleteBlocks();
  void CompleteBlock(std::span<const Row> rows);
  void QueueBatch();
  SlotId SlotAt(std::span<const std::byte> memory) const {
    return static_cast<SlotId>(static_cast<std::size_t>(memory.data() - pool_.table().data()) /
                               pool_.frame_bytes());
  }
  void DropFrames(std::span<const PrefillEntry> kept);
  std::uint64_t FillFrames(std::span<const PrefillEntry> entries);

  const std::unique_ptr<RowTable> table_;
  const TableCacheOptions options_;
  const std::uint64_t batch_rows_;
  const std::size_t row_floats_;
  BufferPool pool_;
  FrameKeys frames_;                   // the rows that the schedule leaves in the frames
  std::vector<SlotId> slot_of_frame_;  // kNowhere: empty
  std::vector<SlotState> states_;      // by slot
  SlotMap slot_of_row_;
  TableIo io_;

  Trace trace_;
  std::size_t next_ = 0;  // the step that Acquire returns next
  bool is_held_ = false;
  bool is_prepared_ = false;
  Step current_;   // if is_held_
  Step prepared_;  // if is_prepared_
  std::uint64_t prefill_ticket_ = 0;
  StepPlan plan_;
  std::vector<SlotId> former_;  // by insert of plan_
  RowCopies batch_;             // rows to write back
  std::unordered_set<Row> in_batch_;
  std::uint64_t rows_written_ = 0;
  Status failed_;

  struct RowOfSlot {
    const std::vector<SlotState>& states;
    Row operator()(SlotId slot) const { return states[slot].row; }
  };
  const RowOfSlot row_of_{states_};
};

Status TableCache::Impl::Open() {
  // The caller of Hold is also the holder, so that waiting for a release would never end.
  pool_.SetStarved(true);
  return io_.Start();
}

Status TableCache::Impl::CheckNoneHeld(std::string_view what) const {
  if (!is_held_) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{} of a cache of a table while a step is held; release it first", what));
}

/// Starts a superbatch in these steps:
///   1. Makes the schedule, which begins with the rows that the previous one left in the frames.
///   2. Writes back the changed rows that the schedule does not keep.
///   3. Reads the rows of its prefill that are not in a frame.
Status TableCache::Impl::Start(Trace trace) {
  RHIZOME_RETURN_IF_ERROR(CheckNoneHeld("start"));
  if (steps_left() > 0) {
    return Status::InvalidArgument(fmt::format(
        "start of a cache of a table: {} steps of the previous superbatch are left", steps_left()));
  }
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    if (trace.step(s).size() <= options_.max_step_rows) continue;
    return Status::InvalidArgument(fmt::format("step {} has {} rows, more than max_step_rows = {}",
                                               s, trace.step(s).size(), options_.max_step_rows));
  }
  RHIZOME_ASSIGN_OR_RETURN(
      std::unique_ptr<Policy> policy,
      MakeClassSchedule(trace, frame_count(), table_->rows(), AccessCosts(), nullptr, &frames_));
  const std::vector<PrefillEntry> entries(policy->Prefill().begin(), policy->Prefill().end());
  DropFrames(entries);
  RHIZOME_RETURN_IF_ERROR(pool_.SetPolicy(std::move(policy)));
  prefill_ticket_ = FillFrames(entries);
  trace_ = std::move(trace);
  next_ = 0;
  return Status::Ok();
}

/// Empties all frames, and writes back the changed rows that are not in `kept`, sorted by row.
void TableCache::Impl::DropFrames(std::span<const PrefillEntry> kept) {
  const auto less = [](const PrefillEntry& entry, Row row) { return entry.first < row; };
  for (SlotId& slot : slot_of_frame_) {
    if (slot == kNowhere) continue;
    SlotState& state = states_[slot];
    const auto found = std::lower_bound(kept.begin(), kept.end(), state.row, less);
    if (found == kept.end() || found->first != state.row) {
      state.framed = false;
      slot_of_row_.Erase(slot, row_of_);
      if (state.dirty) WriteBack(slot);
    }
    slot = kNowhere;
  }
}

/// Puts the rows of a prefill into their frames and begins to read those that are not in memory.
std::uint64_t TableCache::Impl::FillFrames(std::span<const PrefillEntry> entries) {
  QueueBatch();  // may contain rows of the prefill
  std::uint64_t ticket = 0;
  std::vector<RowTarget> targets;
  const std::size_t at_once = std::max<std::size_t>(1, kReadAtOnceBytes / table_->row_bytes());
  for (const auto& [row, frame] : pool_.Prefill()) {
    const std::span<std::byte> memory = pool_.Fill(row, frame);
    Assign(SlotAt(memory), row);
    targets.push_back({row, memory.data()});
    if (targets.size() == at_once) ticket = Read(std::exchange(targets, {}));
  }
  if (!targets.empty()) ticket = Read(std::move(targets));
  for (const auto& [row, frame] : entries) {
    const SlotId slot = SlotAt(pool_.frame(frame));
    RHIZOME_DCHECK(states_[slot].row == row);
    states_[slot].framed = true;
    slot_of_frame_[frame] = slot;
  }
  return ticket;
}

std::uint64_t TableCache::Impl::Read(std::vector<RowTarget> targets) {
  const bool waiting = std::any_of(targets.begin(), targets.end(), [&](const RowTarget& target) {
    return in_batch_.contains(target.row);
  });
  if (waiting) QueueBatch();
  return io_.Read(std::move(targets));
}

/// Gives a slot to a row that will be read into it.
void TableCache::Impl::Assign(SlotId slot, Row row) {
  states_[slot] = {.row = row};
  slot_of_row_.Set(slot, row_of_);
}

void TableCache::Impl::WriteBack(SlotId slot) {
  SlotState& state = states_[slot];
  batch_.Add(state.row, pool_.slot(slot));
  RHIZOME_CHECK(in_batch_.insert(state.row).second);  // invariant (4)
  state.dirty = false;
  ++rows_written_;
  if (batch_.rows.size() >= batch_rows_) QueueBatch();
}

/// Adds the rows in memory that are in the same blocks as the rows of the batch: changed ones,
/// which are then not written again, and all of them where the block becomes complete, so that
/// nothing of it has to be read.
void TableCache::Impl::CompleteBlocks() {
  std::vector<Row> rows(batch_.rows);
  std::sort(rows.begin(), rows.end());
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && table_->BlockOf(rows[end]) == table_->BlockOf(rows[begin])) ++end;
    if (batch_.rows.size() >= 2 * batch_rows_) return;
    CompleteBlock(std::span(rows).subspan(begin, end - begin));
  }
}

/// `rows`: the rows of one block that are in the batch, ascending.
void TableCache::Impl::CompleteBlock(std::span<const Row> rows) {
  std::vector<SlotId> others;
  const auto [first, end] = table_->RowsOfBlock(table_->BlockOf(rows[0]));
  for (Row row = first; row < end; ++row) {
    if (std::binary_search(rows.begin(), rows.end(), row)) continue;
    const SlotId slot = slot_of_row_.Find(row, row_of_);
    if (slot != kNowhere && states_[slot].loaded) others.push_back(slot);
  }
  const bool complete = rows.size() + others.size() == static_cast<std::size_t>(end - first);
  for (const SlotId slot : others) {
    if (!complete && !states_[slot].dirty) continue;
    batch_.Add(states_[slot].row, pool_.slot(slot));
    states_[slot].dirty = false;
    ++rows_written_;
  }
}

void TableCache::Impl::QueueBatch() {
  CompleteBlocks();
  io_.Write(std::exchange(batch_, {}));
  in_batch_.clear();
}

/// Plans a step and holds its rows. Slots that lose their frame are not reused within Hold, so they
/// are written back after it.
Status TableCache::Impl::Prepare(std::size_t number, Step& step) {
  const std::span<const CacheKey> keys = trace_.step(number);
  RHIZOME_RETURN_IF_ERROR(pool_.Plan(keys, plan_));
  former_.clear();
  for (const StepPlan::Place& insert : plan_.inserts)
    former_.push_back(slot_of_frame_[insert.frame]);
  RHIZOME_RETURN_IF_ERROR(pool_.Hold(keys, plan_, step.slots));
  Place(keys, step);
  ReadMisses(keys, step);
  return Status::Ok();
}

void TableCache::Impl::Place(std::span<const CacheKey> keys, const Step& step) {
  for (const std::uint32_t miss : plan_.misses) Assign(step.slots[miss], keys[miss]);
  for (const SlotId slot : step.slots) ++states_[slot].holders;
  for (std::size_t i = 0; i < plan_.inserts.size(); ++i) {
    const auto& [request, frame] = plan_.inserts[i];
    slot_of_frame_[frame] = step.slots[request];
    states_[step.slots[request]].framed = true;
    if (former_[i] == kNowhere) continue;
    SlotState& left = states_[former_[i]];
    left.framed = false;
    if (left.holders > 0) continue;
    slot_of_row_.Erase(former_[i], row_of_);
    if (left.dirty) WriteBack(former_[i]);
  }
}

/// Begins to read the misses of a step. The held step may still change its rows; a row of it that
/// has no frame is read again after it was written.
void TableCache::Impl::ReadMisses(std::span<const CacheKey> keys, Step& step) {
  std::unordered_set<Row> changing;
  if (is_held_) {
    for (const SlotId slot : current_.slots)
      if (!states_[slot].framed) changing.insert(states_[slot].row);
  }
  std::vector<RowTarget> targets;
  step.deferred.clear();
  for (const std::uint32_t miss : plan_.misses) {
    const RowTarget target{keys[miss], pool_.slot(step.slots[miss]).data()};
    (changing.contains(keys[miss]) ? step.deferred : targets).push_back(target);
  }
  step.ticket = targets.empty() ? 0 : Read(std::move(targets));
}

Status TableCache::Impl::Acquire() {
  RHIZOME_RETURN_IF_ERROR(CheckNoneHeld("next step"));
  if (steps_left() == 0)
    return Status::InvalidArgument("a cache of a table has no next step; start a superbatch");
  if (!is_prepared_) RHIZOME_RETURN_IF_ERROR(Prepare(next_, prepared_));
  is_prepared_ = false;
  std::uint64_t ticket = std::max(prepared_.ticket, prefill_ticket_);
  if (!prepared_.deferred.empty()) ticket = Read(std::exchange(prepared_.deferred, {}));
  RHIZOME_RETURN_IF_ERROR(io_.WaitFor(ticket));
  std::swap(current_, prepared_);
  for (const SlotId slot : current_.slots) states_[slot].loaded = true;
  if (next_ == 0) {
    for (const SlotId slot : slot_of_frame_)
      if (slot != kNowhere && states_[slot].holders == 0) states_[slot].loaded = true;
  }
  is_held_ = true;
  if (++next_ == trace_.steps()) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(Prepare(next_, prepared_));
  is_prepared_ = true;
  return Status::Ok();
}

Status TableCache::Impl::Update(const RowOptimizer& optimizer, std::uint64_t step,
                                std::span<const float> gradients) {
  if (!is_held_) return Status::InvalidArgument("no step of a table is held");
  const std::size_t rows = current_.slots.size();
  const std::size_t dim = optimizer.dim();
  if (gradients.size() != rows * dim || optimizer.row_floats() != row_floats_) {
    return Status::InvalidArgument(
        fmt::format("{} gradients of rows of {} numbers do not fit a step of {} rows of {} numbers",
                    gradients.size(), optimizer.row_floats(), rows, row_floats_));
  }
  constexpr std::size_t kRowsAtOnce = 64;
  auto* const memory =
      reinterpret_cast<float*>(pool_.slot(0).data());  // rows of floats, see TableCache::Open
  ParallelFor((rows + kRowsAtOnce - 1) / kRowsAtOnce, [&](std::size_t piece) {
    const std::size_t end = std::min(rows, (piece + 1) * kRowsAtOnce);
    for (std::size_t i = piece * kRowsAtOnce; i < end; ++i) {
      optimizer.Update({memory + current_.slots[i] * row_floats_, row_floats_},
                       gradients.subspan(i * dim, dim), step);
    }
  });
  for (const SlotId slot : current_.slots) states_[slot].dirty = true;
  return Status::Ok();
}

Status TableCache::Impl::Release() {
  if (!is_held_) return Status::InvalidArgument("no step of a table is held");
  for (const SlotId slot : current_.slots) {
    SlotState& state = states_[slot];
    if (--state.holders > 0 || state.framed) continue;
    slot_of_row_.Erase(slot, row_of_);
    if (state.dirty) WriteBack(slot);
  }
  pool_.Release(current_.slots);
  current_.slots.clear();
  is_held_ = false;
  return Status::Ok();
}

Status TableCache::Impl::Flush() {
  RHIZOME_RETURN_IF_ERROR(CheckNoneHeld("flush"));
  std::vector<SlotId> dirty;
  for (SlotId slot = 0; slot < states_.size(); ++slot)
    if (states_[slot].dirty) dirty.push_back(slot);
  std::sort(dirty.begin(), dirty.end(),
            [&](SlotId a, SlotId b) { return states_[a].row < states_[b].row; });
  QueueBatch();
  for (const SlotId slot : dirty)
    if (states_[slot].dirty) WriteBack(slot);
  QueueBatch();
  return io_.WaitForAll();
}

Status TableCache::Impl::Checkpoint(std::span<const std::byte> progress) {
  RHIZOME_RETURN_IF_ERROR(Flush());
  return table_->Checkpoint(progress);
}

void TableRows::CopyValues(std::size_t dim, std::span<float> out) const {
  RHIZOME_CHECK(dim <= row_floats_ && out.size() == size() * dim);
  for (std::size_t i = 0; i < size(); ++i)
    std::copy_n(table_ + slots_[i] * row_floats_, dim, out.data() + i * dim);
}

TableCache::TableCache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TableCache::~TableCache() = default;

std::uint64_t TableCache::BytesFor(std::uint64_t cached_rows, std::size_t row_bytes,
                                   std::uint64_t max_step_rows) {
  // The inverse of Division::Of, for batches of half a step, or of 1/64 of the memory.
  const std::uint64_t frame = row_bytes + kBytesPerFrame;
  const std::uint64_t batch_rows = max_step_rows / 2 + 1;
  const std::uint64_t bytes =
      Division::FixedBytes(row_bytes, max_step_rows, batch_rows) + cached_rows * frame;
  if (bytes / 64 / frame <= batch_rows) return bytes;
  return (2 * max_step_rows + cached_rows) * frame / 15 * 16 + 16 * frame;
}

std::uint32_t TableCache::FramesFor(const TableCacheOptions& options, std::size_t row_bytes,
                                    std::uint64_t rows) {
  return static_cast<std::uint32_t>(Division::Of(options, row_bytes, rows).frames);
}

Result<std::unique_ptr<TableCache>> TableCache::Open(std::unique_ptr<RowTable> table,
                                                     const TableCacheOptions& options) try {
  if (table->row_bytes() % sizeof(float) != 0) {
    return Fail(Status::InvalidArgument(
        fmt::format("rows of {} bytes are not rows of floats", table->row_bytes())));
  }
  const Division division = Division::Of(options, table->row_bytes(), table->rows());
  if (division.frames == 0) {
    return Fail(Status::OutOfMemory(fmt::format(
        "{} bytes of memory are too few for a cache of rows of {} bytes with {} rows in "
        "a step; {} are enough",
        options.memory_bytes, table->row_bytes(), options.max_step_rows,
        BytesFor(1, table->row_bytes(), options.max_step_rows))));
  }
  const std::uint64_t held = 2 * options.max_step_rows;
  RHIZOME_ASSIGN_OR_RETURN(
      BufferPool pool,
      BufferPool::Create(table->row_bytes(), static_cast<std::uint32_t>(division.frames),
                         {.slots = held, .most = held}));
  auto impl = std::make_unique<Impl>(std::move(table), options, division, std::move(pool));
  RHIZOME_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<TableCache>(new TableCache(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Status TableCache::Start(Trace trace) {
  return impl_->Try([&] { return impl_->Start(std::move(trace)); });
}
std::uint64_t TableCache::steps_left() const { return impl_->steps_left(); }
Status TableCache::Acquire(TableRows& rows) {
  RHIZOME_RETURN_IF_ERROR(impl_->Try([&] { return impl_->Acquire(); }));
  rows.table_ = impl_->memory();
  rows.row_floats_ = impl_->row_floats();
  rows.slots_ = impl_->held();
  rows.keys_ = impl_->held_keys();
  return Status::Ok();
}
Status TableCache::Update(const RowOptimizer& optimizer, std::uint64_t step,
                          std::span<const float> gradients) {
  return impl_->Try([&] { return impl_->Update(optimizer, step, gradients); });
}
Status TableCache::Release() {
  return impl_->Try([&] { return impl_->Release(); });
}
Status TableCache::Checkpoint(std::span<const std::byte> progress) {
  return impl_->Try([&] { return impl_->Checkpoint(progress); });
}
Result<RowTable*> TableCache::Flush() {
  RHIZOME_RETURN_IF_ERROR(impl_->Try([&] { return impl_->Flush(); }));
  return &impl_->table();
}
std::uint32_t TableCache::frame_count() const { return impl_->frame_count(); }
std::uint64_t TableCache::rows() const { return impl_->table().rows(); }
TableCacheStats TableCache::stats() const { return impl_->stats(); }
RowTableStats TableCache::table_stats() {
  static_cast<void>(impl_->io().WaitForAll());
  return impl_->table().stats();
}

}  // namespace internal
}  // namespace rhizome
