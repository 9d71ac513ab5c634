#include "cache/policy/match_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cache/policy/basic_policies.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

/// A bitmap of the keys of one step.
class KeyMarks {
 public:
  explicit KeyMarks(std::uint64_t key_count) : words_((key_count + 63) / 64, 0) {}

  /// Marks exactly these keys. `keys` must remain valid until the next call.
  void Mark(std::span<const CacheKey> keys) {
    for (const CacheKey key : marked_) words_[WordOf(key)] = 0;
    for (const CacheKey key : keys) words_[WordOf(key)] |= BitOf(key);
    marked_ = keys;
  }

  std::uint64_t CountMarked(std::span<const CacheKey> keys) const {
    std::uint64_t count = 0;
    for (const CacheKey key : keys) {
      count += words_[WordOf(key)] >> (static_cast<std::uint64_t>(key) % 64) & 1;
    }
    return count;
  }

 private:
  static std::size_t WordOf(CacheKey key) { return static_cast<std::size_t>(key) / 64; }
  static std::uint64_t BitOf(CacheKey key) {
    return std::uint64_t{1} << (static_cast<std::uint64_t>(key) % 64);
  }

  std::vector<std::uint64_t> words_;
  std::span<const CacheKey> marked_;
};

/// Orders `steps` greedily: each step is the one that shares the most keys with its predecessor.
/// The first is compared with the keys marked in `last`.
void OrderWindow(const Trace& trace, std::span<std::uint32_t> steps, KeyMarks& last) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::size_t best = i;
    std::uint64_t best_shared = last.CountMarked(trace.step(steps[i]));
    for (std::size_t candidate = i + 1; candidate < steps.size(); ++candidate) {
      const std::uint64_t shared = last.CountMarked(trace.step(steps[candidate]));
      if (shared <= best_shared) continue;
      best = candidate;
      best_shared = shared;
    }
    // The remaining steps keep their order, so that the earliest among equal candidates is chosen.
    const auto from = steps.begin() + static_cast<std::ptrdiff_t>(i);
    const auto chosen = steps.begin() + static_cast<std::ptrdiff_t>(best);
    std::rotate(from, chosen, chosen + 1);
    last.Mark(trace.step(steps[i]));
  }
}

}  // namespace

Result<std::vector<std::uint32_t>> MatchOrder(const Trace& trace, std::uint64_t key_count,
                                              std::size_t window) try {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace, key_count));
  std::vector<std::uint32_t> order(trace.steps());
  std::iota(order.begin(), order.end(), 0U);
  if (window <= 1) return order;
  KeyMarks last(key_count);
  for (std::size_t begin = 0; begin < order.size();) {
    const std::size_t size = std::min(window, order.size() - begin);
    // No key is marked before the first step, so it remains first.
    OrderWindow(trace, std::span(order).subspan(begin, size), last);
    begin += size;
  }
  return order;
} catch (...) {
  return Fail(StatusOfException());
}

Result<Trace> Reordered(const Trace& trace, std::span<const std::uint32_t> order) try {
  RHIZOME_RETURN_IF_ERROR(CheckTrace(trace));
  Trace reordered;
  reordered.keys.reserve(trace.keys.size());
  reordered.offsets.reserve(trace.offsets.size());
  for (const std::uint32_t step : order) {
    if (step >= trace.steps()) {
      return Fail(Status::InvalidArgument(
          fmt::format("an order names step {} of a trace of {}", step, trace.steps())));
    }
    reordered.AddStep(trace.step(step));
  }
  return reordered;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace internal
}  // namespace rhizome
