#include "rhizome/storage/catalog_table.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/catalog_log.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/little_endian.h"
#include "rhizome/storage/rocks_unpacker.h"

namespace rhizome {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint64_t kFooterBytes = 53;
constexpr std::size_t kVersionAt = 41;
constexpr std::size_t kMagicAt = 45;
constexpr std::uint64_t kMagic = 0x88E241B785F4CFF7;
constexpr std::uint32_t kLastPlainVersion = 5;
constexpr std::uint64_t kTrailerBytes = 5;  // of a block: how it is compressed, checksum
constexpr std::string_view kPropertiesKey = "rocksdb.properties";

// Both blocks hold a few names and numbers.
constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 20;

enum class Checksum : std::uint8_t { kCrc32c = 1, kXxh3 = 4 };

struct Handle {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
std::optional<Handle> ReadHandle(Unpacker& in, std::uint64_t end) {
  const Handle handle{.offset = in.Number(), .size = in.Number()};
  const bool inside = handle.offset <= end && handle.size <= end - handle.offset &&
                      end - handle.offset - handle.size >= kTrailerBytes;
  if (in.bad() || !inside) return std::nullopt;
  return handle;
}

// RocksDB's sum of a block and the byte behind it.
std::uint32_t SumOf(Checksum kind, Bytes with_type) {
  if (kind == Checksum::kCrc32c) {
    const std::uint32_t crc = Crc32c(with_type);
    return MaskedLogCrc(crc);
  }
  const auto hash = static_cast<std::uint32_t>(XXH3_64bits(with_type.data(), with_type.size() - 1));
  return hash ^ (std::to_integer<std::uint32_t>(with_type.back()) * 0x6B9083D9U);
}

Status Bad(std::string_view what) {
  return Status::Corruption(fmt::format("the table's {} is damaged", what));
}

/// A block, if its checksum is right.
Result<std::vector<std::byte>> ReadBlock(const Handle& handle, Checksum kind, std::string_view what,
                                         const ReadAtFunction& read) {
  if (handle.size > kMaxBlockBytes) return Fail(Bad(what));
  std::vector<std::byte> bytes(handle.size + kTrailerBytes);
  RHIZOME_RETURN_IF_ERROR(read(handle.offset, bytes));
  const Bytes with_type = Bytes(bytes).first(handle.size + 1);
  if (LoadLittle<std::uint32_t>(bytes.data() + with_type.size()) != SumOf(kind, with_type))
    return Fail(Bad(what));
  bytes.resize(handle.size);
  return bytes;
}

/// The value of a key in a block, whose entries share the beginnings of their keys.
std::optional<Bytes> FindIn(Bytes block, std::string_view wanted) {
  constexpr std::size_t kCountBytes = sizeof(std::uint32_t);
  if (block.size() < kCountBytes) return std::nullopt;
  const std::uint64_t restarts =
      LoadLittle<std::uint32_t>(block.data() + block.size() - kCountBytes);
  if ((restarts + 1) * kCountBytes > block.size()) return std::nullopt;
  Unpacker in(block.first(block.size() - (restarts + 1) * kCountBytes));
  std::string key;
  while (!in.empty()) {
    const std::uint64_t shared = in.Number();
    const std::uint64_t own = in.Number();
    const std::uint64_t value_bytes = in.Number();
    const Bytes rest = in.Take(own);
    const Bytes value = in.Take(value_bytes);
    if (in.bad() || shared > key.size()) return std::nullopt;
    key.resize(shared);
    key.append(reinterpret_cast<const char*>(rest.data()), rest.size());
    if (key == wanted) return value;
  }
  return std::nullopt;
}

}  // namespace

Status CheckTableTail(std::uint64_t file_bytes, const ReadAtFunction& read) {
  std::array<std::byte, kFooterBytes> footer{};
  if (file_bytes < footer.size()) return Bad("length");
  const std::uint64_t end = file_bytes - footer.size();
  RHIZOME_RETURN_IF_ERROR(read(end, footer));
  if (LoadLittle<std::uint64_t>(footer.data() + kMagicAt) != kMagic) return Bad("footer");
  if (LoadLittle<std::uint32_t>(footer.data() + kVersionAt) > kLastPlainVersion)
    return Status::Ok();
  // Others are not written by any RocksDB that a catalogue can be of; 0 would mean no checksums.
  const auto kind = static_cast<Checksum>(footer[0]);
  if (kind != Checksum::kCrc32c && kind != Checksum::kXxh3) return Bad("footer");
  Unpacker in(Bytes(footer).subspan(1, kVersionAt - 1));
  const auto meta = ReadHandle(in, end);
  const auto index = ReadHandle(in, end);
  if (!meta || !index) return Bad("footer");
  RHIZOME_ASSIGN_OR_RETURN(const auto names, ReadBlock(*meta, kind, "list of blocks", read));
  const auto found = FindIn(names, kPropertiesKey);
  if (!found) return Bad("list of blocks");
  Unpacker value(*found);
  const auto properties = ReadHandle(value, end);
  if (!properties) return Bad("list of blocks");
  const auto block = ReadBlock(*properties, kind, "block of properties", read);
  return block ? Status::Ok() : block.error();
}

}  // namespace rhizome
