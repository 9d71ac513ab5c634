#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/index/column.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/section_file.h"

namespace rhizome::inline internal {

/// The three sections of an array of offsets.
struct OffsetKinds {
  std::uint32_t bases;
  std::uint32_t steps;
  std::uint32_t wide;
};

/// Ascending numbers, 64 to a block: each block stores its first in full, and every number as its
/// distance from that, in a column as narrow as pays; blocks that reach too far (those of hubs)
/// stand in full in a list of their own. So an offset costs little more than one or two bytes
/// where full numbers cost four, and is still one look-up, mostly of two numbers.
/// Format: storage/FORMAT.md, "Offsets".
/// Ownership: borrows the bytes of the SectionFile it was read from. Threads: const.
class BlockedOffsets {
 public:
  static constexpr std::uint64_t kBlock = 64;

  BlockedOffsets() = default;

  /// Reads `count` offsets that begin at 0, do not fall, and end at `last`; each is compared.
  /// `name` is theirs in messages. Errors: kCorruption.
  static Result<BlockedOffsets> Read(const SectionFile& file, const OffsetKinds& kinds,
                                     std::uint64_t count, std::uint64_t last, const char* name);

  std::uint64_t operator[](std::size_t i) const {
    const std::uint64_t base = bases_[i / kBlock];
    if ((base & 1) != 0) [[unlikely]]
      return wide_[(base >> 1) * kBlock + i % kBlock];
    return (base >> 1) + steps_[i];
  }
  /// Starts to fetch what operator[] reads.
  void Prefetch(std::size_t i) const {
    bases_.Prefetch(i / kBlock);
    steps_.Prefetch(i);
  }

  std::size_t size() const { return steps_.size(); }
  bool empty() const { return steps_.empty(); }

  /// First position whose offset is above `value`.
  std::size_t UpperBound(std::uint64_t value) const;

 private:
  Status Check(const SectionFile& file, std::uint64_t last, const char* name) const;

  Column bases_;  // [blocks]: twice the first offset, or twice a wide block's number plus 1
  Column steps_;  // [count]: above the first of the block; 0 in a wide one
  Column wide_;   // [wide blocks * kBlock]: offsets in full
};

/// Writes ascending `offsets` in the least bytes that one width of steps allows.
Status WriteOffsets(SectionFileWriter& writer, const OffsetKinds& kinds,
                    std::span<const std::uint64_t> offsets);

}  // namespace rhizome::inline internal
