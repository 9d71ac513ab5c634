#include <fmt/format.h>
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "storage/base/check.h"
#include "storage/base/process.h"
#include "storage/io/io_completion.h"

namespace rhizome {
inline namespace internal {
namespace {

// The kernel accepts at most 1 GiB per registered buffer.
constexpr std::size_t kRegisteredPieceBytes = std::size_t{1} << 30;

// After this many fruitless submissions (the ring answers EAGAIN for some large reads), pread takes
// over. It is below PendingRead::kMaxFruitless, so that pread still has attempts left.
constexpr std::uint32_t kMaxRingAttempts = 8;

// The queue counts as broken after the ring itself has answered "busy" this many times in one call.
constexpr int kMaxBusyAnswers = 1000;

// How often a ring that returns only errors is polled for completions of reads in flight, a
// millisecond apart: one minute in total. Disks answer within that time; it lasts longer only if
// the program closed the ring's descriptor.
constexpr int kMaxLooks = 60'000;

/// Reads through one io_uring.
///
/// Invariants:
///   (1) each slot is free or has an entry in the ring; in_kernel_ counts the entries that were
///       prepared and have not completed;
///   (2) in_flight_ <= depth == number of slots, so neither ring overflows;
///   (3) the kernel has no buffer left when the destructor returns, or when a call reports an error
///       of the ring: from then on the buffers belong to the caller;
///   (4) a fork shares the ring with its parent and does not use it.
///
/// IORING_SETUP_SINGLE_ISSUER is not used: it ties the ring to the thread that created it, while a
/// queue may move to another thread when nothing is in flight.
class UringQueue : public IoQueue {
 public:
  explicit UringQueue(const IoQueueOptions& options)
      : slots_(options.depth), fault_hook_(options.fault_hook) {
    for (std::uint32_t i = 0; i < options.depth; ++i) free_.push_back(options.depth - 1 - i);
    finished_.reserve(options.depth);  // nothing is allocated while reads are in flight
    reaped_.reserve(options.depth);
  }

  ~UringQueue() override {
    if (!ring_open_) return;
    if (process_.here()) AwaitKernel();
    io_uring_queue_exit(&ring_);
  }

  Status Init();
  void RegisterMemory(std::span<std::byte> memory) override;
  Result<std::size_t> Submit(std::span<ReadRequest> requests) override;
  Result<std::span<ReadRequest* const>> Reap(std::size_t min_count) override;
  std::size_t in_flight() const override { return in_flight_; }
  IoMaker maker() const override { return IoMaker::kUring; }
  IoStats stats() const override { return meter_.stats(); }

 private:
  int InitRing();
  int TryNop();
  void Start(ReadRequest& request);
  void Prepare(std::uint32_t slot);
  void Finish(std::uint32_t slot);
  Status Flush();
  Status WaitForCompletions(std::size_t count);
  void TakeCompletions();
  Status Break(Status status);
  void AwaitKernel();
  void DropCompletions();
  int RegisteredPiece(std::span<const std::byte> range) const;

  const OwnerProcess process_;
  io_uring ring_ = {};
  bool ring_open_ = false;
  std::vector<PendingRead> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t in_kernel_ = 0;
  std::size_t in_flight_ = 0;
  std::vector<ReadRequest*> finished_;  // done, not reaped yet
  std::vector<ReadRequest*> reaped_;
  std::span<std::byte> registered_;
  Status broken_;
  IoMeter meter_;
  const std::function<std::int64_t(const ReadRequest&, std::int64_t)> fault_hook_;
};

int UringQueue::InitRing() {
  const auto entries = static_cast<unsigned>(slots_.size());
  // With this flag the kernel does not interrupt the thread for completions, which are processed at
  // its next system call anyway. Kernels before 5.19 refuse the flag.
  int error = io_uring_queue_init(entries, &ring_, IORING_SETUP_COOP_TASKRUN);
  if (error == -EINVAL) error = io_uring_queue_init(entries, &ring_, 0);
  ring_open_ = error == 0;
  return error;
}

/// Makes one round trip through the ring, because some sandboxes allow creating a ring but not
/// using it.
int UringQueue::TryNop() {
  io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
  const bool can_read = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
  io_uring_free_probe(probe);
  if (!can_read) return -ENOSYS;
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
  if (sqe == nullptr) return -ENOSYS;
  io_uring_prep_nop(sqe);
  const int submitted = io_uring_submit_and_wait(&ring_, 1);
  if (submitted < 0) return submitted;
  io_uring_cqe* cqe = nullptr;
  const int error = io_uring_wait_cqe(&ring_, &cqe);
  if (error == 0) io_uring_cqe_seen(&ring_, cqe);
  return error;
}

Status UringQueue::Init() {
  int error = InitRing();
  if (error == 0) error = TryNop();
  if (error == 0) return {};
  return Status::Unsupported(
      fmt::format("io_uring is not available ({}): the kernel, a sandbox or a limit forbids it; "
                  "use pread (`io=pread`)",
                  Status::FromErrno(-error, "io_uring_setup").message()));
}

void UringQueue::RegisterMemory(std::span<std::byte> memory) {
  RHIZOME_CHECK(registered_.empty());
  std::vector<iovec> pieces;
  for (std::size_t at = 0; at < memory.size(); at += kRegisteredPieceBytes) {
    const std::size_t bytes = std::min(kRegisteredPieceBytes, memory.size() - at);
    pieces.push_back({memory.data() + at, bytes});
  }
  if (pieces.empty()) return;
  const int error =
      io_uring_register_buffers(&ring_, pieces.data(), static_cast<unsigned>(pieces.size()));
  if (error == 0) registered_ = memory;  // otherwise RLIMIT_MEMLOCK: ordinary reads work as well
}

/// Returns the index of the registered piece that contains all of `range`, or -1.
int UringQueue::RegisteredPiece(std::span<const std::byte> range) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
  const auto base = reinterpret_cast<std::uintptr_t>(registered_.data());
  if (begin < base || begin + range.size() > base + registered_.size()) return -1;
  const std::size_t first = (begin - base) / kRegisteredPieceBytes;
  const std::size_t last = (begin - base + range.size() - 1) / kRegisteredPieceBytes;
  return first == last ? static_cast<int>(first) : -1;
}

void UringQueue::Prepare(std::uint32_t slot) {
  const PendingRead& pending = slots_[slot];
  io_uring_sqe* const sqe = io_uring_get_sqe(&ring_);
  RHIZOME_CHECK(sqe != nullptr);  // invariant (2)
  // A longer read completes short and is continued.
  const std::span<std::byte> rest =
      pending.rest().first(std::min(pending.rest().size(), kRegisteredPieceBytes));
  const int fd = pending.request->file->descriptor();
  const int piece = RegisteredPiece(rest);
  const auto length = static_cast<unsigned>(rest.size());
  if (piece >= 0) {
    io_uring_prep_read_fixed(sqe, fd, rest.data(), length, pending.next_offset(), piece);
  } else {
    io_uring_prep_read(sqe, fd, rest.data(), length, pending.next_offset());
  }
  io_uring_sqe_set_data64(sqe, slot);
  ++in_kernel_;
}

void UringQueue::Finish(std::uint32_t slot) {
  ReadRequest* const request = slots_[slot].request;
  meter_.Completed(*request, in_flight_ - finished_.size());
  finished_.push_back(request);
  free_.push_back(slot);
}

void UringQueue::Start(ReadRequest& request) {
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  ++in_flight_;
  if (BeginRead(request, slots_[slot]) == ReadStep::kDone) return Finish(slot);
  if (request.file->descriptor() >= 0) return Prepare(slot);
  meter_.Retried(ReadInline(slots_[slot], fault_hook_));  // a fake, which the ring cannot read
  Finish(slot);
}

Result<std::size_t> UringQueue::Submit(std::span<ReadRequest> requests) {
  RHIZOME_RETURN_IF_ERROR(process_.Check("this reading queue"));
  if (!broken_.ok()) return Fail(broken_);
  const std::size_t count = std::min(requests.size(), slots_.size() - in_flight_);
  for (ReadRequest& request : requests.first(count)) Start(request);
  RHIZOME_RETURN_IF_ERROR(Flush());
  return count;
}

/// Submits the prepared entries to the kernel.
Status UringQueue::Flush() {
  int busy = 0;
  while (io_uring_sq_ready(&ring_) > 0) {
    const int submitted = io_uring_submit(&ring_);
    if (submitted > 0 || submitted == -EINTR) continue;
    const bool transient = submitted == 0 || submitted == -EAGAIN || submitted == -EBUSY;
    if (!transient || ++busy > kMaxBusyAnswers) {
      in_kernel_ -= io_uring_sq_ready(&ring_);
      return Break(Status::IoError(Status::FromErrno(-submitted, "io_uring_submit").message()));
    }
  }
  return {};
}

/// Waits for `count` completions, at most in_kernel_.
Status UringQueue::WaitForCompletions(std::size_t count) {
  for (int busy = 0; busy <= kMaxBusyAnswers;) {
    io_uring_cqe* cqe = nullptr;
    const int error = io_uring_wait_cqe_nr(&ring_, &cqe, static_cast<unsigned>(count));
    if (error == 0) return {};
    if (error == -EINTR) continue;
    if (error != -EAGAIN && error != -EBUSY)
      return Break(Status::IoError(Status::FromErrno(-error, "io_uring_enter").message()));
    ++busy;
  }
  return Break(Status::IoError("io_uring_enter: the kernel remains busy"));
}

/// Marks the queue as broken and waits until the kernel no longer uses the buffers. Returns
/// `status`.
Status UringQueue::Break(Status status) {
  broken_ = std::move(status);
  AwaitKernel();
  finished_.clear();
  in_flight_ = 0;
  return broken_;
}

/// Waits until no read is in flight. Completions appear in shared memory even if the ring refuses
/// system calls.
void UringQueue::AwaitKernel() {
  for (int look = 0; in_kernel_ > 0 && look < kMaxLooks; ++look) {
    DropCompletions();
    if (in_kernel_ == 0) return;
    io_uring_cqe* cqe = nullptr;
    if (io_uring_wait_cqe(&ring_, &cqe) != 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void UringQueue::TakeCompletions() {
  io_uring_cqe* cqe = nullptr;
  while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
    const auto slot = static_cast<std::uint32_t>(io_uring_cqe_get_data64(cqe));
    std::int64_t outcome = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    --in_kernel_;
    PendingRead& pending = slots_[slot];
    if (fault_hook_) outcome = fault_hook_(*pending.request, outcome);
    if (outcome > 0) pending.request->file->CountRead(static_cast<std::size_t>(outcome));
    if (CompleteRead(pending, outcome) == ReadStep::kDone) {
      Finish(slot);
      continue;
    }
    meter_.Retried(1);
    // A ring that cancelled a read because the submitting thread has ended may do so again.
    if (pending.fruitless < kMaxRingAttempts && outcome != -ECANCELED) {
      Prepare(slot);
    } else {
      meter_.Retried(ReadInline(pending, fault_hook_));
      Finish(slot);
    }
  }
}

void UringQueue::DropCompletions() {
  io_uring_cqe* cqe = nullptr;
  while (io_uring_peek_cqe(&ring_, &cqe) == 0) {
    io_uring_cqe_seen(&ring_, cqe);
    --in_kernel_;
  }
}

/// Reaps in these steps:
///   1. Takes the available completions: each read is done, or prepared again (TakeCompletions).
///   2. Submits the prepared ones to the kernel (Flush).
///   3. While too few are finished, waits for the missing number of completions, and repeats 1 and
///      2.
///   4. Returns all that are finished.
Result<std::span<ReadRequest* const>> UringQueue::Reap(std::size_t min_count) {
  RHIZOME_RETURN_IF_ERROR(process_.Check("this reading queue"));
  if (!broken_.ok()) return Fail(broken_);
  min_count = std::min(min_count, in_flight_);
  reaped_.clear();
  TakeCompletions();
  RHIZOME_RETURN_IF_ERROR(Flush());  // continued reads
  while (finished_.size() < min_count) {
    // All requests that are not finished are in the kernel.
    RHIZOME_RETURN_IF_ERROR(WaitForCompletions(min_count - finished_.size()));
    TakeCompletions();
    RHIZOME_RETURN_IF_ERROR(Flush());
  }
  reaped_.swap(finished_);
  in_flight_ -= reaped_.size();
  return std::span<ReadRequest* const>(reaped_);
}

}  // namespace

Result<std::unique_ptr<IoQueue>> OpenUringQueue(const IoQueueOptions& options) {
  auto queue = std::make_unique<UringQueue>(options);
  RHIZOME_RETURN_IF_ERROR(queue->Init());
  return queue;
}

}  // namespace internal
}  // namespace rhizome
