#include "storage/array/shard_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kEntryBytes = 16;
constexpr std::size_t kIndexCrcBytes = sizeof(std::uint32_t);

std::uint64_t InOrder(std::uint64_t number, bool big_endian) {
  return big_endian ? __builtin_bswap64(number) : number;
}

std::uint64_t IndexOffset(const ShardIndexFormat& format, std::uint64_t file_bytes) {
  return format.at_start ? 0 : file_bytes - format.size_bytes();
}

Status Bad(const ShardIndexFormat& format, std::uint64_t file_bytes, std::string_view why) {
  const std::uint64_t begin = IndexOffset(format, file_bytes);
  return Status::Corruption(
      fmt::format("shard index, bytes [{}, {}): {}", begin, begin + format.size_bytes(), why));
}

Status TooShort(const ShardIndexFormat& format, std::uint64_t file_bytes) {
  return Status::Corruption(
      fmt::format("{} bytes are too few for the shard index of {} bytes ({} inner chunks)",
                  file_bytes, format.size_bytes(), format.inner_chunks));
}

Status CheckSums(const ShardIndexFormat& format, std::span<const std::byte> bytes,
                 std::uint64_t file_bytes) {
  for (std::uint32_t i = 0; i < format.checksums; ++i) {
    bytes = bytes.first(bytes.size() - kIndexCrcBytes);
    const auto stored = LoadLittle<std::uint32_t>(bytes.data() + bytes.size());
    const std::uint32_t computed = Crc32c(bytes);
    if (stored == computed) continue;
    return Bad(format, file_bytes,
               fmt::format("its checksum is {:08x}, but its bytes give {:08x}", stored, computed));
  }
  return Status::Ok();
}

/// Checks that an inner chunk is inside the file and outside the index.
Status CheckRange(const ShardIndexFormat& format, std::uint64_t inner, const InnerRange& range,
                  std::uint64_t file_bytes) {
  const auto bad = [&](std::string_view why) {
    return Bad(format, file_bytes,
               fmt::format("inner chunk {} has offset {} and length {}: {}", inner,
                           range.offset_bytes, range.size_bytes, why));
  };
  if (range.offset_bytes == InnerRange::kNone || range.size_bytes == InnerRange::kNone)
    return bad("only one of the two marks it as missing");
  if (range.offset_bytes > file_bytes || range.size_bytes > file_bytes - range.offset_bytes)
    return bad(fmt::format("beyond the end of the file at {}", file_bytes));
  const std::uint64_t begin = IndexOffset(format, file_bytes);
  const std::uint64_t end = range.offset_bytes + range.size_bytes;
  if (end > begin && range.offset_bytes < begin + format.size_bytes())
    return bad("it overlaps the index");
  return Status::Ok();
}

// A file whose index refers to the same bytes many times could decode to any amount of memory.
Status CheckDisjoint(const ShardIndexFormat& format, std::span<const InnerRange> ranges,
                     std::uint64_t file_bytes) {
  std::vector<std::uint32_t> order;
  order.reserve(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (!ranges[i].missing() && ranges[i].size_bytes > 0)
      order.push_back(static_cast<std::uint32_t>(i));
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return ranges[a].offset_bytes < ranges[b].offset_bytes;
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const InnerRange& before = ranges[order[i - 1]];
    const InnerRange& after = ranges[order[i]];
    if (before.offset_bytes + before.size_bytes <= after.offset_bytes) continue;
    return Bad(format, file_bytes,
               fmt::format("{} overlaps {}", DescribeInner(order[i - 1], before),
                           DescribeInner(order[i], after)));
  }
  return Status::Ok();
}

}  // namespace

std::string DescribeInner(std::uint64_t inner, const InnerRange& range) {
  if (range.missing()) return fmt::format("inner chunk {}", inner);
  return fmt::format("inner chunk {}, bytes [{}, {})", inner, range.offset_bytes,
                     range.offset_bytes + range.size_bytes);
}

std::vector<std::byte> EncodeShardIndex(const ShardIndexFormat& format,
                                        std::span<const InnerRange> ranges) {
  RHIZOME_CHECK(ranges.size() == format.inner_chunks);
  std::vector<std::byte> bytes(format.size_bytes());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    std::byte* const to = bytes.data() + i * kEntryBytes;
    StoreLittle(to, InOrder(ranges[i].offset_bytes, format.big_endian));
    StoreLittle(to + 8, InOrder(ranges[i].size_bytes, format.big_endian));
  }
  std::size_t end = ranges.size() * kEntryBytes;
  for (std::uint32_t i = 0; i < format.checksums; ++i, end += kIndexCrcBytes)
    StoreLittle(bytes.data() + end, Crc32c(std::span(bytes).first(end)));
  return bytes;
}

Result<std::vector<InnerRange>> DecodeShardIndex(const ShardIndexFormat& format,
                                                 std::span<const std::byte> bytes,
                                                 std::uint64_t file_bytes) {
  if (format.inner_chunks > kMaxInnerChunks || bytes.size() != format.size_bytes() ||
      file_bytes < bytes.size())
    return Fail(TooShort(format, std::min<std::uint64_t>(bytes.size(), file_bytes)));
  // The outermost checksum covers the inner ones.
  RHIZOME_RETURN_IF_ERROR(CheckSums(format, bytes, file_bytes));
  std::vector<InnerRange> ranges(format.inner_chunks);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const std::byte* const from = bytes.data() + i * kEntryBytes;
    ranges[i] = {InOrder(LoadLittle<std::uint64_t>(from), format.big_endian),
                 InOrder(LoadLittle<std::uint64_t>(from + 8), format.big_endian)};
    if (!ranges[i].missing()) RHIZOME_RETURN_IF_ERROR(CheckRange(format, i, ranges[i], file_bytes));
  }
  RHIZOME_RETURN_IF_ERROR(CheckDisjoint(format, ranges, file_bytes));
  return ranges;
}

Result<std::vector<InnerRange>> ReadShardIndex(ReadableFile& file, const ShardIndexFormat& format) {
  const std::uint64_t file_bytes = file.size_bytes();
  if (format.inner_chunks > kMaxInnerChunks || file_bytes < format.size_bytes())
    return Fail(TooShort(format, file_bytes));
  std::vector<std::byte> bytes(format.size_bytes());
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, IndexOffset(format, file_bytes), bytes));
  return DecodeShardIndex(format, bytes, file_bytes);
}

}  // namespace internal
}  // namespace rhizome
