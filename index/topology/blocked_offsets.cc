#include "index/topology/blocked_offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "index/topology/bound_search.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kBlock = BlockedOffsets::kBlock;

std::uint64_t BlockCount(std::uint64_t count) { return (count + kBlock - 1) / kBlock; }

/// Returns the distance of each block's last offset from its first.
std::vector<std::uint64_t> Reaches(std::span<const std::uint64_t> offsets) {
  std::vector<std::uint64_t> reaches(BlockCount(offsets.size()));
  for (std::size_t b = 0; b < reaches.size(); ++b) {
    const std::size_t last = std::min<std::size_t>((b + 1) * kBlock, offsets.size()) - 1;
    reaches[b] = offsets[last] - offsets[b * kBlock];
  }
  return reaches;
}

/// Chooses the largest step of a block that is not wide, so that the total size of all sections is
/// minimal.
std::uint64_t ChooseLargestStep(std::span<const std::uint64_t> offsets,
                                std::span<const std::uint64_t> reaches) {
  constexpr std::array<std::uint64_t, 3> kLargest = {UINT8_MAX, UINT16_MAX, UINT32_MAX};
  std::uint64_t best = UINT64_MAX;
  std::uint64_t best_bytes = offsets.size() * 8;
  const std::uint64_t full_bytes = offsets.empty() || offsets.back() <= UINT32_MAX ? 4 : 8;
  for (std::size_t i = kLargest.size(); i-- > 0;) {
    const auto wide = static_cast<std::uint64_t>(std::count_if(
        reaches.begin(), reaches.end(), [&](std::uint64_t reach) { return reach > kLargest[i]; }));
    const std::uint64_t bytes =
        offsets.size() * (std::uint64_t{1} << i) + wide * kBlock * full_bytes;
    if (bytes > best_bytes) continue;
    best_bytes = bytes;
    best = kLargest[i];
  }
  return best;
}

/// Writes the distance of each offset from the first one of its block; 0 in a wide block.
Status WriteSteps(SectionFileWriter& writer, std::uint32_t kind,
                  std::span<const std::uint64_t> offsets, std::span<const std::uint64_t> reaches,
                  std::uint64_t largest) {
  std::uint64_t largest_step = 0;
  for (const std::uint64_t reach : reaches)
    if (reach <= largest) largest_step = std::max(largest_step, reach);
  RHIZOME_ASSIGN_OR_RETURN(ColumnWriter steps, ColumnWriter::Begin(writer, kind, largest_step));
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::size_t block = i / kBlock;
    RHIZOME_RETURN_IF_ERROR(
        steps.Add(reaches[block] <= largest ? offsets[i] - offsets[block * kBlock] : 0));
  }
  return steps.Flush();
}

}  // namespace

Status WriteOffsets(SectionFileWriter& writer, const OffsetKinds& kinds,
                    std::span<const std::uint64_t> offsets) {
  RHIZOME_DCHECK(offsets.empty() || offsets.front() == 0);
  RHIZOME_DCHECK(std::is_sorted(offsets.begin(), offsets.end()));
  const std::vector<std::uint64_t> reaches = Reaches(offsets);
  const std::uint64_t largest = ChooseLargestStep(offsets, reaches);
  std::vector<std::uint64_t> bases(reaches.size());
  std::vector<std::uint64_t> wide;
  for (std::size_t b = 0; b < reaches.size(); ++b) {
    const std::size_t begin = b * kBlock;
    const std::size_t end = std::min<std::size_t>(begin + kBlock, offsets.size());
    bases[b] = 2 * offsets[begin];
    if (reaches[b] <= largest) continue;
    RHIZOME_DCHECK(wide.size() % kBlock == 0);
    bases[b] = 2 * (wide.size() / kBlock) + 1;
    wide.insert(wide.end(), offsets.begin() + static_cast<std::ptrdiff_t>(begin),
                offsets.begin() + static_cast<std::ptrdiff_t>(end));
    wide.resize((wide.size() + kBlock - 1) / kBlock * kBlock, offsets.back());
  }
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, kinds.bases, bases));
  RHIZOME_RETURN_IF_ERROR(WriteSteps(writer, kinds.steps, offsets, reaches, largest));
  return WriteColumn(writer, kinds.wide, wide);
}

Result<BlockedOffsets> BlockedOffsets::Read(const SectionFile& file, const OffsetKinds& kinds,
                                            std::uint64_t count, std::uint64_t last,
                                            const char* name) {
  BlockedOffsets offsets;
  RHIZOME_ASSIGN_OR_RETURN(offsets.bases_, Column::Read(file, kinds.bases, BlockCount(count)));
  RHIZOME_ASSIGN_OR_RETURN(offsets.steps_, Column::Read(file, kinds.steps, count));
  RHIZOME_ASSIGN_OR_RETURN(offsets.wide_, Column::Read(file, kinds.wide, file.Count(kinds.wide)));
  if (!file.paged()) RHIZOME_RETURN_IF_ERROR(offsets.Check(file, last, name));
  return offsets;
}

// Checks the offsets. Wide blocks must be numbered in order and each used once, so that the column
// of full offsets has no unused parts.
Status BlockedOffsets::Check(const SectionFile& file, std::uint64_t last, const char* name) const {
  const auto corrupt = [&](const std::string& what) {
    return Status::Corruption(fmt::format("{}: {} {}", file.path().string(), name, what));
  };
  std::uint64_t wide_blocks = 0;
  std::uint64_t before = 0;
  for (std::size_t b = 0; b < bases_.size(); ++b) {
    const std::size_t begin = b * kBlock;
    const std::size_t end = std::min<std::size_t>(begin + kBlock, size());
    const bool wide = (bases_[b] & 1) != 0;
    if (wide && (bases_[b] >> 1) != wide_blocks++)
      return corrupt(fmt::format("block {}: wide blocks are not numbered in order", b));
    if (wide && wide_blocks * kBlock > wide_.size())
      return corrupt(fmt::format("block {}: its full offsets are missing", b));
    for (std::size_t i = begin; i < end; ++i) {
      if (wide && steps_[i] != 0)
        return corrupt(fmt::format("entry {}: a step in a wide block", i));
      if (!wide && i == begin && steps_[i] != 0)
        return corrupt(fmt::format("entry {}: the first step of a block is not 0", i));
      const std::uint64_t offset = (*this)[i];
      if (offset < before || offset > last || (i == 0 && offset != 0))
        return corrupt(fmt::format("entry {}: {} is out of order", i, offset));
      before = offset;
    }
    for (std::size_t i = end; wide && i < begin + kBlock; ++i) {
      if (wide_[(wide_blocks - 1) * kBlock + i % kBlock] != before)
        return corrupt(fmt::format("block {}: wrong padding", b));
    }
  }
  if (wide_.size() != wide_blocks * kBlock)
    return corrupt("has full offsets that belong to no block");
  if (before != last) return corrupt(fmt::format("does not end at {}", last));
  return Status::Ok();
}

std::size_t BlockedOffsets::UpperBound(std::uint64_t value) const {
  return FirstNot(0, size(), [&](std::size_t i) { return (*this)[i] <= value; });
}

}  // namespace internal
}  // namespace rhizome
