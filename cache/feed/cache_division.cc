#include "cache/feed/cache_division.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kSteps = 16;

/// The memory of one array, and the reads with it.
class Part {
 public:
  explicit Part(const DividedArray& array) : array_(array) {}

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t room() const { return array_.most_bytes - bytes_; }

  /// Requested bytes per byte of memory.
  double density() const {
    return static_cast<double>(array_.requested_bytes) / static_cast<double>(array_.most_bytes);
  }

  /// Returns the bytes that a step of memory saves.
  Result<std::uint64_t> SavedBy(std::uint64_t step) {
    if (!read_) {
      RHIZOME_ASSIGN_OR_RETURN(read_, array_.bytes_read(bytes_));
    }
    const std::uint64_t grown = bytes_ + std::min(step, room());
    if (!next_ || next_->first != grown) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t read, array_.bytes_read(grown));
      next_ = {grown, read};
    }
    return *read_ > next_->second ? *read_ - next_->second : 0;
  }

  /// Adds a step of memory; returns the bytes that it takes.
  std::uint64_t Grow(std::uint64_t step) {
    const std::uint64_t more = std::min(step, room());
    bytes_ += more;
    read_ = next_ && next_->first == bytes_ ? std::optional(next_->second) : std::nullopt;
    return more;
  }

 private:
  const DividedArray& array_;
  std::uint64_t bytes_ = 0;
  std::optional<std::uint64_t> read_;                            // with bytes_
  std::optional<std::pair<std::uint64_t, std::uint64_t>> next_;  // memory and reads with a step
};

/// Returns the part that the next step goes to; null: all rows of all arrays fit.
Result<Part*> Choose(std::vector<Part>& parts, std::uint64_t step) {
  Part* best = nullptr;
  std::uint64_t best_saved = 0;
  for (Part& part : parts) {
    if (part.room() == 0) continue;
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t saved, part.SavedBy(step));
    const bool better = best == nullptr || saved > best_saved ||
                        (saved == 0 && best_saved == 0 && part.density() > best->density());
    if (!better) continue;
    best = &part;
    best_saved = saved;
  }
  return best;
}

}  // namespace

Result<std::vector<std::uint64_t>> DivideCache(std::uint64_t cache_bytes,
                                               std::span<const DividedArray> arrays) {
  std::vector<std::uint64_t> bytes;
  std::uint64_t most = 0;
  for (const DividedArray& array : arrays) most += array.most_bytes;
  if (cache_bytes >= most) {
    for (const DividedArray& array : arrays) bytes.push_back(array.most_bytes);
    return bytes;
  }
  std::vector<Part> parts(arrays.begin(), arrays.end());
  const std::uint64_t step = std::max<std::uint64_t>(cache_bytes / kSteps, 1);
  for (std::uint64_t left = cache_bytes; left > 0;) {
    const std::uint64_t next = std::min(step, left);
    RHIZOME_ASSIGN_OR_RETURN(Part* const part, Choose(parts, next));
    left -= part->Grow(next);  // not null: `most` exceeds cache_bytes
  }
  for (const Part& part : parts) bytes.push_back(part.bytes());
  return bytes;
}

}  // namespace internal
}  // namespace rhizome
