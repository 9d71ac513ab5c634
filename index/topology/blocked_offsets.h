#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "index/topology/column.h"
#include "rhizome/status.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// The section kinds of an array of offsets.
struct OffsetKinds {
  std::uint32_t bases;
  std::uint32_t steps;
  std::uint32_t wide;
};

/// An ascending array of offsets in blocks of 64. A block stores its first offset in full, and each
/// offset as its distance from the first, in the narrowest column that saves space. Blocks that
/// span too much (those with hubs) are "wide": their offsets are stored in full in a separate list.
/// An offset thus takes little more than one or two bytes instead of four, and a look-up usually
/// reads two numbers. Format: storage/FORMAT.md, "Offsets".
/// Ownership: borrows the bytes of the SectionFile it was read from.
/// Threads: const.
class BlockedOffsets {
 public:
  static constexpr std::uint64_t kBlock = 64;  // part of the format

  BlockedOffsets() = default;

  /// Reads `count` offsets and checks that they begin at 0, do not descend, and end at `last`. The
  /// offsets of a paged file are not checked. Messages call them `name`. Errors: kCorruption.
  static Result<BlockedOffsets> Read(const SectionFile& file, const OffsetKinds& kinds,
                                     std::uint64_t count, std::uint64_t last, const char* name);

  std::uint64_t operator[](std::size_t i) const {
    const std::uint64_t base = bases_[i / kBlock];
    if ((base & 1) != 0) [[unlikely]]
      return wide_[(base >> 1) * kBlock + i % kBlock];
    return (base >> 1) + steps_[i];
  }
  /// Prefetches the data that operator[] reads.
  void Prefetch(std::size_t i) const {
    bases_.Prefetch(i / kBlock);
    steps_.Prefetch(i);
  }

  std::size_t size() const { return steps_.size(); }
  bool empty() const { return steps_.empty(); }

  /// Returns the first position whose offset is above `value`.
  std::size_t UpperBound(std::uint64_t value) const;

 private:
  Status Check(const SectionFile& file, std::uint64_t last, const char* name) const;

  Column bases_;  // [blocks]: twice the first offset, or twice a wide block's number plus 1
  Column steps_;  // [count]: distance from the block's first offset; 0 in a wide block
  Column wide_;   // [wide blocks * kBlock]: offsets in full
};

/// Writes ascending `offsets`, with the width of steps that needs the fewest bytes.
Status WriteOffsets(SectionFileWriter& writer, const OffsetKinds& kinds,
                    std::span<const std::uint64_t> offsets);

}  // namespace internal
}  // namespace rhizome
