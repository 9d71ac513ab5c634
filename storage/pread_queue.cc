#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <system_error>
#include <thread>
#include <vector>

#include "rhizome/storage/io_completion.h"
#include "rhizome/storage/mutex.h"

namespace rhizome {
namespace {

bool without_threads = false;  // see ReadWithoutThreads

/// Threads that take reads from a queue and carry each to its end. The twin of io_uring, for
/// sandboxes that forbid it. Without threads (ReadWithoutThreads) reads are done in Submit.
///
/// Invariant, under `mutex_`: in_flight_ == waiting + in a worker's hands + finished_.size().
/// Threads: as IoQueue; the workers touch only what `mutex_` guards and their own request.
class PreadQueue : public IoQueue {
 public:
  explicit PreadQueue(const IoQueueOptions& options)
      : depth_(options.depth), fault_hook_(options.fault_hook) {}

  ~PreadQueue() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      waiting_.clear();
    }
    work_.NotifyAll();
    for (std::thread& worker : workers_) worker.join();  // reads under way still own their buffers
  }

  /// Starts up to `count` threads. Errors: kIoError, not even one could be started.
  Status Start(std::uint32_t count) {
    try {
      for (std::uint32_t i = 0; i < count; ++i) workers_.emplace_back([this] { Work(); });
    } catch (const std::system_error& error) {
      if (workers_.empty())
        return Status::IoError(fmt::format("cannot start a reading thread: {}", error.what()));
    }
    return {};
  }

  void RegisterMemory(std::span<std::byte>) override {}  // pread has no use for it

  Result<std::size_t> Submit(std::span<ReadRequest> requests) override {
    const std::size_t count = std::min<std::size_t>(requests.size(), depth_ - in_flight_);
    {
      MutexLock lock(mutex_);
      for (ReadRequest& request : requests.first(count)) {
        PendingRead pending;
        if (BeginRead(request, pending) == ReadStep::kDone) {
          Finished(request);
        } else if (workers_.empty()) {
          meter_.Retried(ReadInline(pending, fault_hook_));
          Finished(request);
        } else {
          waiting_.push_back(pending);
        }
      }
    }
    in_flight_ += count;
    work_.NotifyAll();
    return count;
  }

  Result<std::span<ReadRequest* const>> Reap(std::size_t min_count) override {
    min_count = std::min(min_count, in_flight_);
    reaped_.clear();
    MutexLock lock(mutex_);
    while (finished_.size() < min_count) done_.Wait(mutex_);
    reaped_.swap(finished_);
    in_flight_ -= reaped_.size();
    return std::span<ReadRequest* const>(reaped_);
  }

  std::size_t in_flight() const override { return in_flight_; }
  IoMaker maker() const override { return IoMaker::kPread; }
  IoStats stats() const override {
    MutexLock lock(mutex_);
    return meter_.stats();
  }

 private:
  void Work() {
    PendingRead pending;
    while (Take(pending)) {
      const std::uint64_t retries = ReadInline(pending, fault_hook_);
      {
        MutexLock lock(mutex_);
        --reading_;
        meter_.Retried(retries);
        Finished(*pending.request);
      }
      done_.NotifyOne();
    }
  }

  bool Take(PendingRead& pending) {
    MutexLock lock(mutex_);
    while (waiting_.empty() && !stopping_) work_.Wait(mutex_);
    if (stopping_) return false;
    pending = waiting_.front();
    waiting_.pop_front();
    ++reading_;
    return true;
  }

  void Finished(ReadRequest& request) RHIZOME_REQUIRES(mutex_) {
    meter_.Completed(request, waiting_.size() + reading_ + 1);
    finished_.push_back(&request);
  }

  // Constant after Start.
  const std::size_t depth_;
  const std::function<std::int64_t(const ReadRequest&, std::int64_t)> fault_hook_;
  std::vector<std::thread> workers_;

  // The owner's thread only.
  std::size_t in_flight_ = 0;
  std::vector<ReadRequest*> reaped_;

  mutable Mutex mutex_;
  CondVar work_;
  CondVar done_;
  std::deque<PendingRead> waiting_ RHIZOME_GUARDED_BY(mutex_);
  std::vector<ReadRequest*> finished_ RHIZOME_GUARDED_BY(mutex_);
  std::size_t reading_ RHIZOME_GUARDED_BY(mutex_) = 0;
  IoMeter meter_ RHIZOME_GUARDED_BY(mutex_);
  bool stopping_ RHIZOME_GUARDED_BY(mutex_) = false;
};

}  // namespace

void ReadWithoutThreads() { without_threads = true; }

Result<std::unique_ptr<IoQueue>> OpenPreadQueue(const IoQueueOptions& options) {
  auto queue = std::make_unique<PreadQueue>(options);
  if (without_threads) return queue;
  RHIZOME_RETURN_IF_ERROR(queue->Start(std::min(options.pread_threads, options.depth)));
  return queue;
}

}  // namespace rhizome
