#include "gnn/passes/chunk_mover.h"

#include <algorithm>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/exceptions.h"

// A pass of ChunkMover:
//   1. Begin starts a thread that walks over the plan, one that writes and kLoading that load, and
//      waits until the chunks that leave memory before the pass are written.
//   2. Walk asks the policy about each access. It passes a chunk that is read to the read's feed,
//      from memory or queued for loading (Read); it decides in advance about a chunk that will be
//      written (Promise); and it queues chunks that leave memory for writing (Leave).
//   3. The pass takes chunks from the feeds, and hands the chunks that it computes to Made.
//   4. Finish joins the threads, and drops the arrays that no later pass reads.

namespace rhizome {
inline namespace internal {
namespace {

/// Number of threads that load. They mostly wait for the disk.
constexpr std::size_t kLoading = 2;

Status MoverStopped() { return Status::Interrupted("stopped"); }

}  // namespace

/// Delivers the chunks of one read, in the order of the plan.
class ChunkMover::Feed final : public ChunkFeed {
 public:
  Feed(std::shared_ptr<Delivery> delivery, const ScratchShape& shape)
      : delivery_(std::move(delivery)), shape_(shape) {}

  void Append(std::uint64_t chunk) override { expected_.push_back(chunk); }

  Result<DecodedChunk> Next() override {
    RHIZOME_ASSIGN_OR_RETURN(const std::optional<Delivered> popped, delivery_->Pop());
    RHIZOME_CHECK(popped.has_value() && !expected_.empty() &&
                  popped->chunk == expected_.front());  // the plan has the reader's order
    expected_.pop_front();
    const InMemory& memory = *popped->memory;
    memory.ready.wait(false);
    RHIZOME_RETURN_IF_ERROR(memory.status);
    return DecodedChunk{.request = delivered_++,
                        .chunk = popped->chunk,
                        .first_row = static_cast<Row>(popped->chunk * shape_.chunk_rows),
                        .rows = shape_.RowsIn(popped->chunk),
                        .values = memory.values};
  }

 private:
  const std::shared_ptr<Delivery> delivery_;
  const ScratchShape& shape_;
  std::deque<std::uint64_t> expected_;
  std::uint64_t delivered_ = 0;
};

ChunkMover::ChunkMover(const PlannedSpill& plan, std::vector<ScratchArray*> arrays)
    : plan_(plan), arrays_(std::move(arrays)), policy_(plan.NewPolicy()), slots_(arrays_.size()) {
  for (std::size_t a = 0; a < arrays_.size(); ++a) slots_[a].resize(arrays_[a]->shape().chunks());
}

Status ChunkMover::Start(Status (ChunkMover::*work)()) {
  threads_.push_back(std::make_unique<Thread>());
  return threads_.back()->Start([this, work] {
    const Status status = Guarded([this, work] { return (this->*work)(); });
    if (!status.ok()) Fail(status);
    return status;
  });
}

Status ChunkMover::Begin(std::size_t reads, From from) {
  from_ = std::move(from);
  accesses_ = plan_.Accesses(next_pass_);
  deliveries_.clear();
  for (std::size_t r = 0; r < reads; ++r) deliveries_.push_back(std::make_shared<Delivery>(kAhead));
  {
    const MutexLock lock(mutex_);
    ended_ = false;
    begun_ = false;
  }
  RHIZOME_RETURN_IF_ERROR(Start(&ChunkMover::Walk));
  RHIZOME_RETURN_IF_ERROR(Start(&ChunkMover::Store));
  for (std::size_t i = 0; i < kLoading; ++i) RHIZOME_RETURN_IF_ERROR(Start(&ChunkMover::Load));
  const MutexLock lock(mutex_);
  while ((!begun_ || !stores_.empty() || storing_ > 0) && status_.ok()) changed_.Wait(mutex_);
  return status_;
}

void ChunkMover::Skip() {
  policy_->Begin(next_pass_, leaves_);
  for (const ChunkAccess& access : plan_.Accesses(next_pass_)) {
    if (access.write) {
      policy_->Made(access.array, access.chunk, leaves_);
    } else {
      policy_->Read(access.array, access.chunk, leaves_);
    }
  }
  policy_->End(leaves_);
  leaves_.clear();
  ++next_pass_;
}

std::unique_ptr<ChunkFeed> ChunkMover::FeedOf(std::size_t read, const ScratchArray& array) const {
  return std::make_unique<Feed>(deliveries_[read], array.shape());
}

/// Decides about all accesses of the pass, in order.
Status ChunkMover::Walk() {
  policy_->Begin(next_pass_, leaves_);
  RHIZOME_RETURN_IF_ERROR(Leave());
  {
    const MutexLock lock(mutex_);
    begun_ = true;
    changed_.NotifyAll();
  }
  for (const ChunkAccess& access : accesses_)
    RHIZOME_RETURN_IF_ERROR(access.write ? Promise(access) : Read(access));
  policy_->End(leaves_);
  return Leave();
}

/// Returns whether this process carries out an access, because no earlier process did.
bool ChunkMover::Acts(const ChunkAccess& access) const {
  if (from_.chunk == 0) return true;
  const bool gathers = !access.write && from_.blocks[access.read] != From::kInOrder;
  return gathers ? static_cast<std::int64_t>(access.block) >= from_.blocks[access.read]
                 : access.chunk >= from_.chunk;
}

Status ChunkMover::Read(const ChunkAccess& access) {
  const bool acts = Acts(access);
  if (acts && !deliveries_[access.read]->WaitForSpace()) return MoverStopped();
  const SpillPolicy::Verdict verdict = policy_->Read(access.array, access.chunk, leaves_);
  std::shared_ptr<InMemory> memory;
  if (acts) {
    const MutexLock lock(mutex_);
    Slot& slot = SlotOf(access.array, access.chunk);
    if (verdict.hit) memory = slot.kept;
    if (memory == nullptr) {
      memory = std::make_shared<InMemory>();
      loads_.push_back({access.array, access.chunk, memory});
      changed_.NotifyAll();
    }
    if (verdict.keep) slot.kept = memory;
  }
  RHIZOME_RETURN_IF_ERROR(Leave());
  if (!acts) return Status::Ok();
  if (!verdict.keep) {
    const MutexLock lock(mutex_);
    SlotOf(access.array, access.chunk).kept.reset();
  }
  return deliveries_[access.read]->Push({access.chunk, std::move(memory)}) ? Status::Ok()
                                                                           : MoverStopped();
}

/// Decides about a chunk that the pass will compute.
Status ChunkMover::Promise(const ChunkAccess& access) {
  const SpillPolicy::Verdict verdict = policy_->Made(access.array, access.chunk, leaves_);
  if (Acts(access)) {
    const MutexLock lock(mutex_);
    Slot& slot = SlotOf(access.array, access.chunk);
    slot.kept.reset();
    slot.promised = true;
    slot.keep = verdict.keep;
    slot.write = verdict.write;
    changed_.NotifyAll();
  }
  return Leave();
}

/// Releases the chunks that leave memory, and queues those that must be written.
Status ChunkMover::Leave() {
  for (const LeavingChunk& leaving : leaves_) {
    const MutexLock lock(mutex_);
    Slot& slot = SlotOf(leaving.array, leaving.chunk);
    if (slot.promised) {
      slot.keep = false;
      slot.write = leaving.write;
      continue;
    }
    const std::shared_ptr<InMemory> memory = std::move(slot.kept);
    slot.kept.reset();
    if (!leaving.write || memory == nullptr || slot.writing) continue;
    // A chunk that an earlier process computed, or that Persist wrote, has a file already.
    if (arrays_[leaving.array]->HasFile(leaving.chunk)) continue;
    RHIZOME_RETURN_IF_ERROR(QueueWrite({leaving.array, leaving.chunk, memory}));
  }
  leaves_.clear();
  return Status::Ok();
}

Status ChunkMover::QueueWrite(const Task& task) {
  SlotOf(task.array, task.chunk).writing = true;
  while (stores_.size() >= kWaiting && status_.ok()) changed_.Wait(mutex_);
  RHIZOME_RETURN_IF_ERROR(status_);
  stores_.push_back(task);
  changed_.NotifyAll();
  return Status::Ok();
}

Status ChunkMover::Made(ScratchArray& array, std::uint64_t chunk, std::shared_ptr<float[]> values) {
  const MutexLock lock(mutex_);
  Slot& slot = SlotOf(array.id(), chunk);
  while (!slot.promised && status_.ok()) changed_.Wait(mutex_);
  RHIZOME_RETURN_IF_ERROR(status_);
  slot.promised = false;
  if (!slot.keep && !slot.write) return Status::Ok();
  auto memory = std::make_shared<InMemory>();
  memory->made = values;
  memory->values = std::move(values);
  memory->ready = true;
  if (!slot.keep) return QueueWrite({array.id(), static_cast<std::uint32_t>(chunk), memory});
  slot.kept = std::move(memory);
  return Status::Ok();
}

bool ChunkMover::TakeLoad(Task& task) {
  const MutexLock lock(mutex_);
  while (loads_.empty() && !ended_ && status_.ok()) changed_.Wait(mutex_);
  if (loads_.empty()) return false;
  task = std::move(loads_.front());
  loads_.pop_front();
  while (SlotOf(task.array, task.chunk).writing && status_.ok()) changed_.Wait(mutex_);
  return true;
}

Status ChunkMover::Load() {
  Task task;
  while (TakeLoad(task)) {
    InMemory& memory = *task.memory;
    memory.status = Guarded([&]() -> Status {
      RHIZOME_RETURN_IF_ERROR(status());
      RHIZOME_ASSIGN_OR_RETURN(memory.values, arrays_[task.array]->Load(task.chunk));
      return Status::Ok();
    });
    memory.ready = true;
    memory.ready.notify_all();
    if (!memory.status.ok()) Fail(memory.status);
  }
  return Status::Ok();
}

bool ChunkMover::TakeStore(Task& task) {
  const MutexLock lock(mutex_);
  while (stores_.empty() && !ended_ && status_.ok()) changed_.Wait(mutex_);
  if (stores_.empty() || !status_.ok()) return false;
  task = std::move(stores_.front());
  stores_.pop_front();
  ++storing_;
  changed_.NotifyAll();
  return true;
}

Status ChunkMover::Store() {
  Task task;
  while (TakeStore(task)) {
    RHIZOME_RETURN_IF_ERROR(arrays_[task.array]->Store(task.chunk, task.memory->made.get()));
    task.memory.reset();
    const MutexLock lock(mutex_);
    --storing_;
    SlotOf(task.array, task.chunk).writing = false;
    changed_.NotifyAll();
  }
  return Status::Ok();
}

bool ChunkMover::IsLive(const ScratchArray& array) const {
  return next_pass_ == 0 || plan_.NeededAfter(array.id(), next_pass_ - 1);
}

Status ChunkMover::PersistChunk(ScratchArray& array, std::uint64_t chunk) {
  std::shared_ptr<InMemory> memory;
  {
    const MutexLock lock(mutex_);
    Slot& slot = SlotOf(array.id(), chunk);
    if (slot.kept == nullptr || slot.kept->made == nullptr || slot.writing ||
        array.HasFile(chunk)) {
      return Status::Ok();
    }
    memory = slot.kept;
    slot.writing = true;
  }
  RHIZOME_RETURN_IF_ERROR(array.Store(chunk, memory->made.get(), /*counts=*/false));
  const MutexLock lock(mutex_);
  SlotOf(array.id(), chunk).writing = false;
  changed_.NotifyAll();
  return Status::Ok();
}

Status ChunkMover::Persist() {
  for (ScratchArray* const array : arrays_) {
    if (!IsLive(*array)) continue;
    for (std::uint64_t chunk = 0; chunk < array->shape().chunks(); ++chunk)
      RHIZOME_RETURN_IF_ERROR(PersistChunk(*array, chunk));
  }
  const MutexLock lock(mutex_);
  while ((!stores_.empty() || storing_ > 0) && status_.ok()) changed_.Wait(mutex_);
  return status_;
}

void ChunkMover::Fail(const Status& status) {
  const MutexLock lock(mutex_);
  if (status_.ok()) status_ = status;
  for (const std::shared_ptr<Delivery>& delivery : deliveries_) delivery->Cancel();
  changed_.NotifyAll();
}

Status ChunkMover::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

Status ChunkMover::Finish() {
  if (!threads_.empty()) static_cast<void>(threads_.front()->Join());  // the walking thread
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  threads_.clear();
  RHIZOME_RETURN_IF_ERROR(status());
  RemoveDead();
  ++next_pass_;
  return Status::Ok();
}

/// Removes the files of arrays that no later pass reads. First waits until the files of earlier
/// passes are gone, so that the disk never holds more than twice the files that passes need, the
/// space that FullJob::Prepare checks for.
void ChunkMover::RemoveDead() {
  if (!arrays_.empty()) arrays_.front()->space().WaitForRemovals();
  for (ScratchArray* const array : arrays_)
    if (!plan_.NeededAfter(array->id(), next_pass_)) array->RemoveFiles();
}

void ChunkMover::Cancel() {
  if (threads_.empty()) return;
  Fail(MoverStopped());
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.NotifyAll();
  }
  threads_.clear();
}

}  // namespace internal
}  // namespace rhizome
