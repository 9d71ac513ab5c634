#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/full_graph/pass_sequence.h"

namespace rhizome {
inline namespace internal {

/// Numbers the chunks of all arrays of a sequence, one array after the other, and returns their
/// sizes.
/// Threads: immutable.
class ChunkTable {
 public:
  explicit ChunkTable(std::span<const SpillArray> arrays) {
    for (const SpillArray& array : arrays) {
      const std::uint32_t chunks = array.chunks();
      of_.push_back({.first = size_,
                     .chunks = chunks,
                     .bytes = chunks == 0 ? 0 : array.BytesOfChunk(0),
                     .last_bytes = chunks == 0 ? 0 : array.BytesOfChunk(chunks - 1)});
      size_ += chunks;
    }
  }

  std::size_t size() const { return size_; }
  std::size_t arrays() const { return of_.size(); }
  std::uint32_t ChunksOf(ArrayId array) const { return of_[array].chunks; }
  std::size_t NumberOf(ArrayId array, std::uint32_t chunk) const {
    return of_[array].first + chunk;
  }
  std::uint64_t BytesOf(ArrayId array, std::uint32_t chunk) const {
    const Array& of = of_[array];
    return chunk + 1 < of.chunks ? of.bytes : of.last_bytes;
  }

 private:
  struct Array {
    std::size_t first = 0;
    std::uint32_t chunks = 0;
    std::uint64_t bytes = 0;  // bytes of every chunk except the last
    std::uint64_t last_bytes = 0;
  };
  std::vector<Array> of_;
  std::size_t size_ = 0;
};

}  // namespace internal
}  // namespace rhizome
