#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "rhizome/status.h"
#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Passes values from producers to a consumer; at most `capacity` values wait in the queue. Finish
/// ends the queue from the producer's side: queued values are still delivered, then the status.
/// Cancel ends it from the consumer's side: the producer's next Push fails. Neither side blocks
/// indefinitely after the other one has ended.
/// Threads: any. WaitForSpace is useful only with a single producer.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// Waits until the queue has space. Returns false if cancelled; the producer must then stop.
  bool WaitForSpace() {
    MutexLock lock(mutex_);
    while (items_.size() >= capacity_ && !cancelled_) changed_.Wait(mutex_);
    return !cancelled_;
  }

  /// Waits for space, then queues `item`. Returns false if cancelled, in which case `item` is
  /// dropped.
  bool Push(T item) {
    MutexLock lock(mutex_);
    while (items_.size() >= capacity_ && !cancelled_) changed_.Wait(mutex_);
    if (cancelled_) return false;
    items_.push_back(std::move(item));
    changed_.NotifyAll();
    return true;
  }

  /// Queues `item` if there is space now. Returns false if the queue is full or cancelled.
  bool TryPush(T item) {
    MutexLock lock(mutex_);
    if (items_.size() >= capacity_ || cancelled_) return false;
    items_.push_back(std::move(item));
    changed_.NotifyAll();
    return true;
  }

  /// Marks the end of the values; `status` is the error, if any. Only the first call has an effect.
  void Finish(Status status) {
    MutexLock lock(mutex_);
    if (!end_) end_ = std::move(status);
    changed_.NotifyAll();
  }

  /// Stops delivery. Queued values live as long as the queue, because the consumer may still hold a
  /// pointer from Peek.
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

  /// Returns the value that Pop would return without waiting, or null. Only the consumer may call
  /// it. The pointer is valid until the consumer calls Pop, even if the queue is cancelled.
  const T* Peek() const {
    MutexLock lock(mutex_);
    return none() ? nullptr : &items_.front();
  }

  /// Waits for the next value and returns it, or nullopt after the last one. Errors: the status
  /// passed to Finish; kInterrupted, cancelled.
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

}  // namespace internal
}  // namespace rhizome
