#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"
#include "storage/io/io_completion.h"

namespace rhizome {
inline namespace internal {
namespace {

bool without_threads = false;  // see ReadWithoutThreads

/// Threads that take reads from a queue and complete each with ReadInline. All memory is allocated
/// at the beginning, none while reads are in flight.
///
/// Invariant, under `mutex_`: reads in flight == waiting + being read by a worker +
/// finished_.size().
/// Threads: one caller at a time; the workers touch only members guarded by `mutex_` and the
/// request that they took.
class ReadingThreads {
 public:
  using FaultHook = std::function<std::int64_t(const ReadRequest&, std::int64_t)>;

  ReadingThreads(std::size_t depth, FaultHook fault_hook)
      : fault_hook_(std::move(fault_hook)), waiting_(depth) {
    finished_.reserve(depth);
  }

  ~ReadingThreads() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    work_.NotifyAll();
    for (std::thread& worker : workers_) worker.join();  // reads in flight still use their buffers
  }

  /// Starts up to `count` threads. Errors: kOutOfMemory, not even one could be started.
  Status Start(std::uint32_t count) {
    Status started = Guarded([&]() -> Status {
      workers_.reserve(count);
      for (std::uint32_t i = 0; i < count; ++i) workers_.emplace_back([this] { Work(); });
      return Status::Ok();
    });
    return workers_.empty() ? started : Status::Ok();
  }

  /// Queues the requests. The caller ensures that the queue has space for all of them.
  void Begin(std::span<ReadRequest> requests) {
    {
      const MutexLock lock(mutex_);
      for (ReadRequest& request : requests) {
        PendingRead pending;
        if (BeginRead(request, pending) == ReadStep::kDone) {
          Finished(request);
        } else if (workers_.empty()) {
          meter_.Retried(ReadInline(pending, fault_hook_));
          Finished(request);
        } else {
          waiting_[(first_waiting_ + waiting_count_++) % waiting_.size()] = pending;
        }
      }
    }
    work_.NotifyAll();
  }

  /// Waits until at least `least` requests are finished and swaps them into `reaped`, which must be
  /// empty.
  void Take(std::size_t least, std::vector<ReadRequest*>& reaped) {
    const MutexLock lock(mutex_);
    while (finished_.size() < least) done_.Wait(mutex_);
    reaped.swap(finished_);
  }

  IoStats stats() const {
    const MutexLock lock(mutex_);
    return meter_.stats();
  }

 private:
  void Work() {
    PendingRead pending;
    while (TakeOne(pending)) {
      const std::uint64_t retries = ReadInline(pending, fault_hook_);
      {
        const MutexLock lock(mutex_);
        --reading_;
        meter_.Retried(retries);
        Finished(*pending.request);
      }
      done_.NotifyOne();
    }
  }

  bool TakeOne(PendingRead& pending) {
    const MutexLock lock(mutex_);
    while (waiting_count_ == 0 && !stopping_) work_.Wait(mutex_);
    if (stopping_) return false;
    pending = waiting_[first_waiting_];
    first_waiting_ = (first_waiting_ + 1) % waiting_.size();
    --waiting_count_;
    ++reading_;
    return true;
  }

  void Finished(ReadRequest& request) RHIZOME_REQUIRES(mutex_) {
    meter_.Completed(request, waiting_count_ + reading_ + 1);
    finished_.push_back(&request);
  }

  // Constant after Start.
  const FaultHook fault_hook_;
  std::vector<std::thread> workers_;

  mutable Mutex mutex_;
  CondVar work_;
  CondVar done_;
  std::vector<PendingRead> waiting_ RHIZOME_GUARDED_BY(mutex_);  // a ring buffer
  std::size_t first_waiting_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::size_t waiting_count_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::vector<ReadRequest*> finished_ RHIZOME_GUARDED_BY(mutex_);
  std::size_t reading_ RHIZOME_GUARDED_BY(mutex_) = 0;
  IoMeter meter_ RHIZOME_GUARDED_BY(mutex_);
  bool stopping_ RHIZOME_GUARDED_BY(mutex_) = false;
};

/// Replaces io_uring in sandboxes that forbid it. After ReadWithoutThreads it has no threads, and
/// Submit performs the reads. Threads: as for IoQueue.
class PreadQueue : public IoQueue {
 public:
  explicit PreadQueue(const IoQueueOptions& options)
      : depth_(options.depth),
        threads_(std::make_unique<ReadingThreads>(options.depth, options.fault_hook)) {
    reaped_.reserve(options.depth);
  }

  // A forked child does not have the threads and leaves their state untouched.
  ~PreadQueue() override {
    if (!process_.here()) static_cast<void>(threads_.release());
  }

  Status Start(std::uint32_t count) { return threads_->Start(count); }

  void RegisterMemory(std::span<std::byte>) override {}  // of no use to pread

  Result<std::size_t> Submit(std::span<ReadRequest> requests) override {
    RHIZOME_RETURN_IF_ERROR(process_.Check("this reading queue"));
    const std::size_t count = std::min<std::size_t>(requests.size(), depth_ - in_flight_);
    in_flight_ += count;
    threads_->Begin(requests.first(count));
    return count;
  }

  Result<std::span<ReadRequest* const>> Reap(std::size_t min_count) override {
    RHIZOME_RETURN_IF_ERROR(process_.Check("this reading queue"));
    reaped_.clear();
    threads_->Take(std::min(min_count, in_flight_), reaped_);
    in_flight_ -= reaped_.size();
    return std::span<ReadRequest* const>(reaped_);
  }

  std::size_t in_flight() const override { return in_flight_; }
  IoMaker maker() const override { return IoMaker::kPread; }
  IoStats stats() const override { return process_.here() ? threads_->stats() : IoStats(); }

 private:
  const std::size_t depth_;
  const OwnerProcess process_;
  std::unique_ptr<ReadingThreads> threads_;
  std::size_t in_flight_ = 0;
  std::vector<ReadRequest*> reaped_;
};

}  // namespace

void ReadWithoutThreads() { without_threads = true; }

Result<std::unique_ptr<IoQueue>> OpenPreadQueue(const IoQueueOptions& options) {
  auto queue = std::make_unique<PreadQueue>(options);
  if (without_threads) return queue;
  RHIZOME_RETURN_IF_ERROR(queue->Start(std::min(options.pread_threads, options.depth)));
  return queue;
}

}  // namespace internal
}  // namespace rhizome
