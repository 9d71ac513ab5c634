#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// Hands values from one thread to another, at most `capacity` waiting. Either side can end it: the
/// producer with Finish (what is queued is still delivered, then the status), the consumer with
/// Cancel (the producer's next Push says so). Neither side can wait for ever if the other ends.
/// Threads: any; WaitForRoom is for the only producer.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits until there is room. False: cancelled, stop producing.
  bool WaitForRoom() {
    MutexLock lock(mutex_);
    while (items_.size() >= capacity_ && !cancelled_) changed_.Wait(mutex_);
    return !cancelled_;
  }

  /// Waits for room, then queues. False: cancelled, `item` is dropped.
  bool Push(T item) {
    MutexLock lock(mutex_);
    while (items_.size() >= capacity_ && !cancelled_) changed_.Wait(mutex_);
    if (cancelled_) return false;
    items_.push_back(std::move(item));
    changed_.NotifyAll();
    return true;
  }

  /// Queues if there is room now. False: there is none, or cancelled.
  bool TryPush(T item) {
    MutexLock lock(mutex_);
    if (items_.size() >= capacity_ || cancelled_) return false;
    items_.push_back(std::move(item));
    changed_.NotifyAll();
    return true;
  }

  /// No more will come; `status` says whether that is an error. Only the first call counts.
  void Finish(Status status) {
    MutexLock lock(mutex_);
    if (!end_) end_ = std::move(status);
    changed_.NotifyAll();
  }

  /// What is queued is not delivered any more, but lives as long as this: the consumer may be
  /// looking at it.
  void Cancel() {
    MutexLock lock(mutex_);
    cancelled_ = true;
    if (!end_) end_ = Status::Interrupted("stopped");
    changed_.NotifyAll();
  }

  /// Would Pop wait, or end?
  bool empty() const {
    MutexLock lock(mutex_);
    return none();
  }

  /// What Pop would return at once, or null. For the consumer; valid until it calls Pop, even if
  /// this is cancelled.
  const T* Peek() const {
    MutexLock lock(mutex_);
    return none() ? nullptr : &items_.front();
  }

  /// The next value; nothing after the last. Errors: what the producer finished with.
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
