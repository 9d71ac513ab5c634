#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rhizome/types.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

/// The set of partitions of each vertex, as a bitmap of whole bytes (whole 64-bit words above 64
/// partitions), so that the sets of many vertices share a cache line.
/// Threads: const methods may run concurrently, as may changes of different vertices. AddShared and
/// HasShared may run concurrently even for the same vertex.
class ReplicaSets {
 public:
  ReplicaSets(std::uint64_t vertices, std::uint32_t partitions)
      : vertices_(vertices),
        width_(Width(partitions)),
        words_((partitions + 63) / 64),
        mask_(width_ >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * width_)) - 1),
        // A set is read as whole words, so the last one needs padding behind it.
        bytes_(static_cast<std::size_t>(vertices) * width_ + 8) {}

  static std::uint64_t EstimateBytes(std::uint64_t vertices, std::uint32_t partitions) {
    return vertices * Width(partitions) + 8;
  }
  std::uint64_t memory_bytes() const { return bytes_.size(); }
  std::uint64_t vertex_count() const { return vertices_; }

  bool Has(std::uint64_t vertex, PartitionId p) const {
    return (bytes_[At(vertex, p)] >> (p % 8) & 1) != 0;
  }

  /// Returns true if `p` was not in the set before.
  bool Add(std::uint64_t vertex, PartitionId p) {
    std::uint8_t& byte = bytes_[At(vertex, p)];
    const auto bit = static_cast<std::uint8_t>(1U << (p % 8));
    const bool added = (byte & bit) == 0;
    byte |= bit;
    return added;
  }
  void Remove(std::uint64_t vertex, PartitionId p) {
    bytes_[At(vertex, p)] &= static_cast<std::uint8_t>(~(1U << (p % 8)));
  }

  /// Thread-safe forms of Has and Add: other threads may call these two concurrently, even for the
  /// same vertex.
  bool HasShared(std::uint64_t vertex, PartitionId p) {
    const std::atomic_ref<std::uint8_t> byte(bytes_[At(vertex, p)]);
    return (byte.load(std::memory_order_relaxed) >> (p % 8) & 1) != 0;
  }
  bool AddShared(std::uint64_t vertex, PartitionId p) {
    const std::atomic_ref<std::uint8_t> byte(bytes_[At(vertex, p)]);
    const auto bit = static_cast<std::uint8_t>(1U << (p % 8));
    return (byte.fetch_or(bit, std::memory_order_relaxed) & bit) == 0;
  }

  /// A set is a sequence of words; bit b of word w is partition 64 w + b.
  std::size_t word_count() const { return words_; }
  std::uint64_t word(std::uint64_t vertex, std::size_t index) const {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + vertex * width_ + 8 * index, 8);
    return word & mask_;
  }

  void set_word(std::uint64_t vertex, std::size_t index, std::uint64_t word) {
    RHIZOME_DCHECK(vertex < vertices_ && index < words_ && (word & ~mask_) == 0);
    std::memcpy(bytes_.data() + vertex * width_ + 8 * index, &word, width_ < 8 ? width_ : 8);
  }

  /// Returns whether the set has at least two partitions.
  bool HasSeveral(std::uint64_t vertex) const {
    std::uint64_t seen = 0;
    for (std::size_t w = 0; w < words_; ++w) {
      const std::uint64_t set = word(vertex, w);
      if ((set & (set - 1)) != 0 || (set != 0 && seen != 0)) return true;
      seen |= set;
    }
    return false;
  }

  std::uint32_t Size(std::uint64_t vertex) const {
    std::uint32_t size = 0;
    for (std::size_t w = 0; w < words_; ++w) {
      size += static_cast<std::uint32_t>(std::popcount(word(vertex, w)));
    }
    return size;
  }

  /// Calls visit(p) for each partition of the vertex, ascending.
  template <typename Visit>
  void ForEach(std::uint64_t vertex, Visit&& visit) const {
    for (std::size_t w = 0; w < words_; ++w) VisitBits(word(vertex, w), w, visit);
  }

  /// Returns whether a partition holds both vertices.
  bool HaveCommon(std::uint64_t a, std::uint64_t b) const {
    for (std::size_t w = 0; w < words_; ++w)
      if ((word(a, w) & word(b, w)) != 0) return true;
    return false;
  }

  /// Calls visit(p) for each partition that holds both vertices, ascending.
  template <typename Visit>
  void ForEachCommon(std::uint64_t a, std::uint64_t b, Visit&& visit) const {
    for (std::size_t w = 0; w < words_; ++w) VisitBits(word(a, w) & word(b, w), w, visit);
  }

  /// Calls visit(p) for each partition that holds either vertex, ascending.
  template <typename Visit>
  void ForEachOfEither(std::uint64_t a, std::uint64_t b, Visit&& visit) const {
    for (std::size_t w = 0; w < words_; ++w) VisitBits(word(a, w) | word(b, w), w, visit);
  }

 private:
  std::size_t At(std::uint64_t vertex, PartitionId p) const {
    RHIZOME_DCHECK(vertex < vertices_ && p / 8U < width_);
    return vertex * width_ + p / 8;
  }

  static std::size_t Width(std::uint32_t partitions) {
    return partitions <= 64 ? (partitions + 7) / 8 : std::size_t{8} * ((partitions + 63) / 64);
  }

  template <typename Visit>
  static void VisitBits(std::uint64_t word, std::size_t index, Visit& visit) {
    for (; word != 0; word &= word - 1) {
      visit(
          static_cast<PartitionId>(index * 64 + static_cast<std::size_t>(std::countr_zero(word))));
    }
  }

  std::uint64_t vertices_;
  std::size_t width_;  // bytes of a set
  std::size_t words_;
  std::uint64_t mask_;  // mask of a word: a read of a narrow set includes a part of the next set
  std::vector<std::uint8_t> bytes_;
};

}  // namespace internal
}  // namespace rhizome
