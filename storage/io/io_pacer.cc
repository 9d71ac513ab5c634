#include "storage/io/io_pacer.h"

namespace rhizome {
inline namespace internal {

using Clock = std::chrono::steady_clock;

IoPacer::Commit::~Commit() {
  pacer_.last_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  pacer_.commits_.fetch_sub(1);
}

bool IoPacer::busy() const {
  if (commits_.load(std::memory_order_relaxed) > 0) return true;
  const std::int64_t last = last_.load(std::memory_order_relaxed);
  return last != 0 && Clock::now().time_since_epoch() - Clock::duration(last) < linger_;
}

IoPacer::Turn::Turn(IoPacer* pacer) {
  if (pacer == nullptr || !pacer->busy()) return;
  pacer->turn_.Lock();
  held_ = pacer;
}

IoPacer::Turn::~Turn() {
  if (held_ != nullptr) held_->turn_.Unlock();
}

}  // namespace internal
}  // namespace rhizome
