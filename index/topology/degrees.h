#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Degrees by vertex or by row: 2 bytes each, and an entry of a table for each degree above 65,534.
/// At most one vertex in 65,535 edges has such a degree.
/// Threads: const methods may run concurrently; see AddShared.
class Degrees {
 public:
  Degrees() = default;
  explicit Degrees(std::uint64_t size) : small_(size) {}
  explicit Degrees(std::span<const std::uint64_t> degrees) : small_(degrees.size()) {
    for (std::size_t i = 0; i < degrees.size(); ++i) Set(i, degrees[i]);
  }

  std::uint64_t size() const { return small_.size(); }
  std::uint64_t operator[](std::uint64_t i) const {
    return small_[i] != kLarge ? small_[i] : large_.at(i);
  }

  void Increment(std::uint64_t i) {
    if (small_[i] < kLarge - 1) {
      ++small_[i];
    } else {
      Set(i, (*this)[i] + 1);
    }
  }

  /// Adds to a degree. Several threads may call it, even for one degree, with the same `mutex`,
  /// while no other method runs.
  void AddShared(std::uint64_t i, std::uint64_t count, Mutex& mutex) {
    const std::atomic_ref<std::uint16_t> small(small_[i]);
    std::uint16_t old = small.load(std::memory_order_relaxed);
    while (old + count < kLarge && old != kLarge) {
      const auto sum = static_cast<std::uint16_t>(old + count);
      if (small.compare_exchange_weak(old, sum, std::memory_order_relaxed)) return;
    }
    const MutexLock lock(mutex);
    const std::uint16_t before = small.exchange(kLarge, std::memory_order_relaxed);
    large_[i] += count + (before == kLarge ? 0 : before);
  }

  /// Returns degree index_of(i) at each i.
  template <typename IndexOf>
  Degrees Reordered(IndexOf&& index_of) const {
    Degrees result(size());
    for (std::uint64_t i = 0; i < size(); ++i) result.Set(i, (*this)[index_of(i)]);
    return result;
  }

 private:
  static constexpr std::uint16_t kLarge = UINT16_MAX;  // the degree is in large_

  void Set(std::uint64_t i, std::uint64_t degree) {
    small_[i] = degree < kLarge ? static_cast<std::uint16_t>(degree) : kLarge;
    if (degree >= kLarge) large_[i] = degree;
  }

  std::vector<std::uint16_t> small_;
  std::unordered_map<std::uint64_t, std::uint64_t> large_;
};

}  // namespace internal
}  // namespace rhizome
