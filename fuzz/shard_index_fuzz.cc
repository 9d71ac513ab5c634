#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "edits.h"
#include "input.h"
#include "seeds.h"
#include "storage/array/shard_index.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"

namespace {

using namespace rhizome;

/// Checks that the ranges of an accepted index are inside the file, outside the index, and do not
/// overlap.
void CheckRanges(const ShardIndexFormat& format, std::vector<InnerRange> ranges,
                 std::uint64_t file_bytes) {
  RHIZOME_CHECK(ranges.size() == format.inner_chunks);
  const std::uint64_t index_begin = format.at_start ? 0 : file_bytes - format.size_bytes();
  std::erase_if(ranges,
                [](const InnerRange& range) { return range.missing() || range.size_bytes == 0; });
  ranges.push_back({index_begin, format.size_bytes()});
  std::sort(ranges.begin(), ranges.end(), [](const InnerRange& a, const InnerRange& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  std::uint64_t end = 0;
  for (const InnerRange& range : ranges) {
    if (range.size_bytes == 0) continue;  // an empty range overlaps nothing
    RHIZOME_CHECK(range.offset_bytes >= end);
    RHIZOME_CHECK(range.size_bytes <= file_bytes && range.offset_bytes <= file_bytes);
    end = range.offset_bytes + range.size_bytes;
    RHIZOME_CHECK(end <= file_bytes);
  }
}

std::vector<InnerRange> DrawRanges(fuzzing::Input& input, const ShardIndexFormat& format,
                                   std::uint64_t& file_bytes) {
  std::vector<InnerRange> ranges(format.inner_chunks);
  std::uint64_t end = format.at_start ? format.size_bytes() : 0;
  for (InnerRange& range : ranges) {
    const std::uint8_t drawn = input.Byte();
    if (drawn % 4 == 0) continue;
    range = {end + drawn % 3, drawn};
    end = range.offset_bytes + range.size_bytes;
  }
  std::reverse(ranges.begin(), ranges.end());
  file_bytes = end + (format.at_start ? 0 : format.size_bytes());
  return ranges;
}

void Reseal(const ShardIndexFormat& format, std::span<std::byte> bytes) {
  for (std::uint32_t i = format.checksums; i > 0; --i) {
    const std::size_t at = bytes.size() - i * sizeof(std::uint32_t);
    const std::uint32_t seal = Crc32c(bytes.first(at));
    std::memcpy(bytes.data() + at, &seal, sizeof(seal));
  }
}

}  // namespace

// Decodes arbitrary bytes as the index of a shard, a valid index, and one with edits and correct
// checksums.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> all(data, size);
  constexpr std::size_t kDrawnBytes = 24;
  fuzzing::Input input(all.first(std::min(size, kDrawnBytes)));
  const std::uint8_t kind = input.Byte();
  const ShardIndexFormat format{.inner_chunks = input.Byte() % 20U,
                                .at_start = (kind & 1) != 0,
                                .big_endian = (kind & 2) != 0,
                                .checksums = (kind & 12U) >> 2};
  std::uint64_t file_bytes = 0;
  const std::vector<InnerRange> ranges = DrawRanges(input, format, file_bytes);
  const auto rest = all.subspan(std::min(size, kDrawnBytes));
  const std::vector<std::byte> sound = EncodeShardIndex(format, ranges);
  const auto whole = DecodeShardIndex(format, sound, file_bytes);
  RHIZOME_CHECK(whole.has_value() && *whole == ranges);

  const auto raw = std::as_bytes(rest);
  if (const auto decoded = DecodeShardIndex(format, raw, file_bytes))
    CheckRanges(format, *decoded, file_bytes);

  std::vector<std::byte> edited = fuzzing::WithEdits(sound, rest);
  if (edited.size() != sound.size()) return 0;
  Reseal(format, edited);
  const auto decoded = DecodeShardIndex(format, edited, file_bytes);
  if (!decoded) {
    RHIZOME_CHECK(decoded.error().code() == StatusCode::kCorruption);
    return 0;
  }
  CheckRanges(format, *decoded, file_bytes);
  RHIZOME_CHECK(EncodeShardIndex(format, *decoded) == edited);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (std::uint8_t kind = 0; kind < 16; ++kind) {
    Seed head = {kind, 6, 9, 0, 7, 30, 5, 2, 1};
    head.resize(24);
    AddEdits(seeds, head, 6 * 16 + 8, 300);
  }
  seeds.push_back(Seed(200, 1));
  return seeds;
}
