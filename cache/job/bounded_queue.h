#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Hands values from producers to a consumer, with at most `capacity` waiting. Finish ends it on
/// the producer's side: what is queued is still delivered, then the status. Cancel ends it on the
/// consumer's side: the producer's next Push fails. So neither side waits for ever if the other
/// ends.
/// Threads: any; WaitForRoom is only of use to a single producer.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits until there is room. Returns false if cancelled; stop producing then.
  bool WaitForRoom() {
    MutexLock lock(mutex_);
    while (items_.size() >= capacity_ && !cancelled_) changed_.Wait(mutex_);
    return !cancelled_;
  }

  /// Waits for room, then queues `item`. Returns false if cancelled; `item` is dropped then.
  bool Push(T item) {
    MutexLock lock(mutex_);
    while (items_.size() >= capacity_ && !cancelled_) changed_.Wait(mutex_);
    if (cancelled_) return false;
    items_.push_back(std::move(item));
    changed_.NotifyAll();
    return true;
  }

  /// Queues `item` if there is room now. Returns false if there is none, or if cancelled.
  bool TryPush(T item) {
    MutexLock lock(mutex_);
    if (items_.size() >= capacity_ || cancelled_) return false;
    items_.push_back(std::move(item));
    changed_.NotifyAll();
    return true;
  }

  /// Says that no more will come; `status` says whether that is an error. Only the first call
  /// counts.
  void Finish(Status status) {
    MutexLock lock(mutex_);
    if (!end_) end_ = std::move(status);
    changed_.NotifyAll();
  }

  /// Stops delivery. Queued values stay alive as long as the queue, because the consumer may still
  /// look at one (Peek).
  void Cancel() {
    MutexLock lock(mutex_);
    cancelled_ = true;
    if (!end_) end_ = Status::Interrupted("stopped");
    changed_.NotifyAll();
  }

  /// Returns whether Pop would wait or report the end.
  bool empty() const {
    MutexLock lock(mutex_);
    return none();
  }

  /// Returns the value that Pop would return at once, or null. For the consumer; the pointer is
  /// valid until it calls Pop, even if the queue is cancelled.
  const T* Peek() const {
    MutexLock lock(mutex_);
    return none() ? nullptr : &items_.front();
  }

  /// Waits for the next value and returns it, or nothing after the last. Errors: the status that
  /// the producer finished with; kInterrupted, cancelled.
  Result<std::optional<T>> Pop() {
    MutexLock lock(mutex_);
    while (items_.empty() && !end_) changed_.Wait(mutex_);
    if (none()) {
      if (!end_->ok()) return Fail(*end_);
      return std::optional<T>();
    }
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    changed_.NotifyAll();
    return item;
  }

 private:
  bool none() const RHIZOME_REQUIRES(mutex_) { return items_.empty() || cancelled_; }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<T> items_ RHIZOME_GUARDED_BY(mutex_);
  std::optional<Status> end_ RHIZOME_GUARDED_BY(mutex_);
  bool cancelled_ RHIZOME_GUARDED_BY(mutex_) = false;
};

}  // namespace rhizome::inline internal
