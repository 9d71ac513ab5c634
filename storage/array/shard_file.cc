#include "storage/array/shard_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/array/codec.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {
namespace {
// EncodeShard writes the inner chunks, then the table of their checksums, then Zarr's index.
// DecodeShardTail reads in the opposite order: index, positions (CheckPlaces), table, and finally
// the CRC-32C of the file, which it derives from the table (SumOfFile). DecodeInner then needs only
// the table and the bytes of one inner chunk.

constexpr std::size_t kSumBytes = sizeof(std::uint32_t);

// The CRC-32C of any byte sequence that ends in its own CRC-32C: the residue of this polynomial.
constexpr std::uint32_t kSumOfSummed = 0x48674BC7;

ShardIndexFormat IndexFormat(const ArrayEntry& entry) {
  return {.inner_chunks = InnerChunks(entry)};
}

std::uint64_t InnerBytes(const ArrayEntry& entry) { return entry.inner_rows * entry.row_bytes(); }

std::uint32_t SumAtEnd(std::span<const std::byte> encoded) {
  return LoadLittle<std::uint32_t>(encoded.data() + encoded.size() - kSumBytes);
}

/// Encodes an inner chunk. It ends in its CRC-32C with every codec.
Result<std::vector<std::byte>> EncodeInner(const Codec& codec, std::span<const std::byte> raw) {
  RHIZOME_ASSIGN_OR_RETURN(std::vector<std::byte> encoded, EncodeChunk(codec, raw));
  if (codec.kind != CodecKind::kRaw) return encoded;
  const std::uint32_t sum = Crc32c(encoded);
  encoded.resize(encoded.size() + kSumBytes);
  StoreLittle(encoded.data() + encoded.size() - kSumBytes, sum);
  return encoded;
}

Status DecodeRawInner(std::span<const std::byte> encoded, std::span<std::byte> out) {
  if (encoded.size() != out.size() + kSumBytes)
    return Status::Corruption(
        fmt::format("{} bytes instead of {}", encoded.size(), out.size() + kSumBytes));
  const auto content = encoded.first(out.size());
  if (const std::uint32_t sum = Crc32c(content); sum != SumAtEnd(encoded))
    return Status::Corruption(
        fmt::format("chunk checksum is {:08x}, its bytes give {:08x}", SumAtEnd(encoded), sum));
  std::copy(content.begin(), content.end(), out.begin());
  return Status::Ok();
}

/// Checks that inner chunks that contain rows are contiguous from the start up to the table, and
/// that those without rows are missing.
Status CheckPlaces(const ArrayEntry& entry, std::uint64_t rows, std::span<const InnerRange> ranges,
                   std::uint64_t table_begin) {
  std::uint64_t end = 0;
  for (std::uint64_t inner = 0; inner < ranges.size(); ++inner) {
    const InnerRange& range = ranges[inner];
    const bool due = inner < InnerChunks(entry, rows);
    if (due && !range.missing() && range.offset_bytes == end && range.size_bytes > kSumBytes &&
        range.size_bytes <= MaxInnerBytes(entry)) {
      end += range.size_bytes;
    } else if (due || !range.missing()) {
      return Status::Corruption(
          fmt::format("{} is not at its offset", DescribeInner(inner, range)));
    }
  }
  if (end == table_begin) return Status::Ok();
  return Status::Corruption(fmt::format(
      "inner chunks end at {}, but the table of checksums begins at {}", end, table_begin));
}

/// Computes the CRC-32C of the file, using that every inner chunk ends in its own CRC-32C.
std::uint32_t SumOfFile(const ShardTable& table, std::span<const std::byte> sums,
                        std::uint64_t index_bytes) {
  std::uint32_t sum = 0;
  for (const InnerRange& range : table.ranges)
    if (!range.missing()) sum = Crc32cCombine(sum, kSumOfSummed, range.size_bytes);
  sum = Crc32c(sums, sum);
  return Crc32cCombine(sum, kSumOfSummed, index_bytes);
}

}  // namespace

std::uint64_t InnerChunks(const ArrayEntry& entry) { return entry.chunk_rows / entry.inner_rows; }

std::uint64_t InnerChunks(const ArrayEntry& entry, std::uint64_t rows) {
  return (rows + entry.inner_rows - 1) / entry.inner_rows;
}

std::uint64_t ShardTailBytes(const ArrayEntry& entry) {
  return InnerChunks(entry) * kSumBytes + IndexFormat(entry).size_bytes();
}

std::uint64_t MaxInnerBytes(const ArrayEntry& entry) {
  const std::uint64_t sum = entry.codec.kind == CodecKind::kRaw ? kSumBytes : 0;
  return MaxEncodedBytes(entry.codec, InnerBytes(entry)) + sum;
}

std::uint64_t MaxShardBytes(const ArrayEntry& entry) {
  return InnerChunks(entry) * MaxInnerBytes(entry) + ShardTailBytes(entry);
}

Result<std::vector<std::byte>> EncodeShard(const ArrayEntry& entry,
                                           std::span<const std::byte> rows) {
  const std::uint64_t inner_bytes = InnerBytes(entry);
  std::vector<std::byte> file;
  std::vector<InnerRange> ranges(InnerChunks(entry));
  std::vector<std::uint32_t> sums(ranges.size());
  std::vector<std::byte> padded;
  for (std::uint64_t inner = 0; inner * inner_bytes < rows.size(); ++inner) {
    auto raw = rows.subspan(inner * inner_bytes);
    raw = raw.first(std::min<std::uint64_t>(raw.size(), inner_bytes));
    if (raw.size() < inner_bytes) {
      padded.assign(raw.begin(), raw.end());
      padded.resize(inner_bytes);
      raw = padded;
    }
    RHIZOME_ASSIGN_OR_RETURN(const auto encoded, EncodeInner(entry.codec, raw));
    RHIZOME_DCHECK(encoded.size() > kSumBytes && encoded.size() <= MaxInnerBytes(entry));
    ranges[inner] = {file.size(), encoded.size()};
    sums[inner] = SumAtEnd(encoded);
    file.insert(file.end(), encoded.begin(), encoded.end());
  }
  const auto table = std::as_bytes(std::span(sums));
  file.insert(file.end(), table.begin(), table.end());
  const auto index = EncodeShardIndex(IndexFormat(entry), ranges);
  file.insert(file.end(), index.begin(), index.end());
  RHIZOME_DCHECK(file.size() <= MaxShardBytes(entry) &&
                 DecodeShardIndex(IndexFormat(entry), index, file.size()).has_value());
  return file;
}

Result<ShardTable> DecodeShardTail(const ArrayEntry& entry, std::uint64_t rows,
                                   std::span<const std::byte> tail, const FileEntry& file) {
  if (tail.size() != ShardTailBytes(entry) || file.size_bytes < tail.size())
    return Fail(
        Status::Corruption(fmt::format("{} bytes are too few for the shard's table of {} bytes",
                                       file.size_bytes, ShardTailBytes(entry))));
  const ShardIndexFormat format = IndexFormat(entry);
  const std::size_t sum_bytes = tail.size() - format.size_bytes();
  ShardTable table;
  RHIZOME_ASSIGN_OR_RETURN(table.ranges,
                           DecodeShardIndex(format, tail.subspan(sum_bytes), file.size_bytes));
  RHIZOME_RETURN_IF_ERROR(CheckPlaces(entry, rows, table.ranges, file.size_bytes - tail.size()));
  for (std::size_t at = 0; at < sum_bytes; at += kSumBytes)
    table.sums.push_back(LoadLittle<std::uint32_t>(tail.data() + at));
  const std::uint32_t sum = SumOfFile(table, tail.first(sum_bytes), format.size_bytes());
  if (sum == file.crc32c) return table;
  return Fail(Status::Corruption(fmt::format(
      "table of checksums, bytes [{}, {}): with it the CRC-32C of the file is {:08x}, but the "
      "manifest says {:08x}",
      file.size_bytes - tail.size(), file.size_bytes - format.size_bytes(), sum, file.crc32c)));
}

Status DecodeInner(const ArrayEntry& entry, const ShardTable& table, std::uint64_t inner,
                   std::span<const std::byte> encoded, std::span<std::byte> out) {
  const InnerRange& range = table.ranges[inner];
  RHIZOME_CHECK(encoded.size() == range.size_bytes && encoded.size() > kSumBytes);
  const auto named = [&](const Status& status) {
    return status.ok() ? status : status.WithContext(DescribeInner(inner, range));
  };
  if (SumAtEnd(encoded) != table.sums[inner])
    return named(
        Status::Corruption(fmt::format("its checksum is {:08x}, the shard's table says "
                                       "{:08x}",
                                       SumAtEnd(encoded), table.sums[inner])));
  std::vector<std::byte> padded(out.size() == InnerBytes(entry) ? 0 : InnerBytes(entry));
  const std::span<std::byte> decoded = padded.empty() ? out : std::span<std::byte>(padded);
  RHIZOME_RETURN_IF_ERROR(named(entry.codec.kind == CodecKind::kRaw
                                    ? DecodeRawInner(encoded, decoded)
                                    : DecodeChunk(entry.codec, encoded, decoded)));
  if (!padded.empty()) std::copy_n(padded.begin(), out.size(), out.begin());
  return Status::Ok();
}

std::vector<ShardDamage> FindShardDamage(const ArrayEntry& entry, std::uint64_t rows,
                                         std::span<const std::byte> bytes, const FileEntry& file) {
  if (bytes.size() != file.size_bytes || bytes.size() < ShardTailBytes(entry))
    return {
        {0, fmt::format("{} bytes long, but the manifest says {}", bytes.size(), file.size_bytes)}};
  const std::uint64_t tail_begin = bytes.size() - ShardTailBytes(entry);
  const auto table = DecodeShardTail(entry, rows, bytes.subspan(tail_begin), file);
  if (!table) return {{tail_begin, table.error().message()}};
  std::vector<ShardDamage> damage;
  std::vector<std::byte> out(InnerBytes(entry));
  for (std::uint64_t inner = 0; inner < InnerChunks(entry, rows); ++inner) {
    const InnerRange& range = table->ranges[inner];
    const auto encoded = bytes.subspan(range.offset_bytes, range.size_bytes);
    const Status decoded = DecodeInner(entry, *table, inner, encoded, out);
    if (!decoded.ok()) damage.push_back({range.offset_bytes, decoded.message()});
  }
  return damage;
}

}  // namespace internal
}  // namespace rhizome
