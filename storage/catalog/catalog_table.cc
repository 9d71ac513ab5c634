#include "storage/catalog/catalog_table.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <map>

#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/catalog/catalog_block.h"
#include "storage/catalog/catalog_key.h"
#include "storage/catalog/catalog_log.h"
#include "storage/catalog/rocks_unpacker.h"

namespace rhizome {
inline namespace internal {
namespace {

using Bytes = std::span<const std::byte>;

// The footer of a table (RocksDB, table/format.h): checksum type, handles of the list of meta
// blocks and of the index, version, magic.
constexpr std::uint64_t kFooterBytes = 53;
constexpr std::size_t kVersionAt = 41;
constexpr std::size_t kTableMagicAt = 45;
constexpr std::uint64_t kTableMagic = 0x88E241B785F4CFF7;
constexpr std::uint32_t kFirstVersion = 2;
constexpr std::uint32_t kLastVersion = 5;
constexpr std::uint64_t kTrailerBytes = 5;  // trailer of a block: compression type and checksum

// RocksDB begins a new table long before an index reaches this length; meta blocks are short.
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxListBytes = std::uint64_t{1} << 20;

// RocksDB's XXH3 checksum of a block and its compression type (the byte after the block).
std::uint32_t XxhSum(Bytes with_type) {
  const auto hash = static_cast<std::uint32_t>(XXH3_64bits(with_type.data(), with_type.size() - 1));
  return hash ^ (std::to_integer<std::uint32_t>(with_type.back()) * 0x6B9083D9U);
}

Status Bad(std::string_view what) {
  return Status::Corruption(fmt::format("the table's {} is damaged", what));
}

/// The properties of a table, from its properties block. Plain counts are bounded, since RocksDB
/// adds them up.
class Properties {
 public:
  bool See(std::string_view name, Bytes value) {
    if (name <= last_) return false;
    last_ = name;
    if (name == "rocksdb.column.family.name") family_ = TextOf(value);
    if (const auto* const text = Find(kTexts, name)) return TextOf(value) == text->second;
    if (name == "rocksdb.block.based.table.index.type")
      return value.size() == sizeof(std::uint32_t) && LoadLittle<std::uint32_t>(value.data()) == 0;
    if (const auto* const number = Find(kNumbers, name)) {
      Unpacker in(value);
      numbers_[number->first] = in.NumberTo(number->second);
      return !in.bad() && in.empty();
    }
    return !name.starts_with("rocksdb.external_sst_file");
  }

  // RocksDB's repair learns the families only from tables, and asserts that no two have the same
  // name.
  bool Good() const {
    return family_ == kFamilyNames[At("rocksdb.column.family.id")] &&
           At("rocksdb.deleted.keys") <= At("rocksdb.num.entries") &&
           At("rocksdb.num.range-deletions") <= At("rocksdb.deleted.keys") &&
           (At("rocksdb.num.entries") == 0 || At("rocksdb.raw.key.size") > 0);
  }
  std::uint64_t At(std::string_view name) const {
    const auto at = numbers_.find(name);
    return at == numbers_.end() ? 0 : at->second;
  }

 private:
  static constexpr std::uint64_t kMany = std::uint64_t{1} << 48;
  template <typename Value>
  using Facts = std::pair<std::string_view, Value>;

  // Constant-initialised tables, because a store may be opened before main.
  static constexpr std::array<Facts<std::string_view>, 6> kTexts = {{
      {"rocksdb.comparator", "leveldb.BytewiseComparator"},
      {"rocksdb.compression", "NoCompression"},
      {"rocksdb.filter.policy", ""},
      {"rocksdb.merge.operator", "nullptr"},
      {"rocksdb.prefix.extractor.name", "nullptr"},
      {"rocksdb.property.collectors", "[]"},
  }};
  static constexpr std::array<Facts<std::uint64_t>, 22> kNumbers = {{
      {"rocksdb.column.family.id", kFamilyNames.size() - 1},
      {"rocksdb.creation.time", kMany},
      {"rocksdb.data.size", kMany},
      {"rocksdb.deleted.keys", kMany},
      {"rocksdb.file.creation.time", kMany},
      {"rocksdb.filter.size", 0},
      {"rocksdb.fixed.key.length", 0},
      {"rocksdb.format.version", 0},
      {"rocksdb.index.key.is.user.key", 1},
      {"rocksdb.index.partitions", 0},
      {"rocksdb.index.size", kMany},
      {"rocksdb.index.value.is.delta.encoded", 1},
      {"rocksdb.merge.operands", 0},
      {"rocksdb.num.data.blocks", kMany},
      {"rocksdb.num.entries", kMany},
      {"rocksdb.num.filter_entries", 0},
      {"rocksdb.num.range-deletions", kMany},
      {"rocksdb.oldest.key.time", ~std::uint64_t{0}},
      {"rocksdb.original.file.number", kMaxRocksNumber},
      {"rocksdb.raw.key.size", kMany},
      {"rocksdb.raw.value.size", kMany},
      {"rocksdb.top-level.index.size", 0},
  }};

  template <typename Value, std::size_t count>
  static constexpr const Facts<Value>* Find(const std::array<Facts<Value>, count>& facts,
                                            std::string_view name) {
    for (const Facts<Value>& fact : facts)
      if (fact.first == name) return &fact;
    return nullptr;
  }

  std::string last_;
  std::string family_;
  std::map<std::string_view, std::uint64_t> numbers_;
};

}  // namespace

bool CatalogTable::SumFits(Checksum kind, Bytes with_trailer) {
  const Bytes with_type = with_trailer.first(with_trailer.size() - sizeof(std::uint32_t));
  const std::uint32_t sum =
      kind == Checksum::kCrc32c ? MaskedLogCrc(Crc32c(with_type)) : XxhSum(with_type);
  return LoadLittle<std::uint32_t>(with_trailer.data() + with_type.size()) == sum;
}

/// Opens a table, from its end to its front:
///   1. the footer, which contains the offsets of the index and of the list of meta blocks;
///   2. the list of meta blocks (ReadNames), which contains the offsets of properties and
///      deletions;
///   3. the properties, which are checked against the bounds in Properties and the claim;
///   4. the index, which contains the offset and the last key of each data block;
///   5. the range deletions;
///   6. a check that every byte of the file belongs to one block or the footer.
class CatalogTable::Opener {
 public:
  Opener(std::uint64_t file_bytes, const ReadAtFunction& read) : read_(read), bytes_(file_bytes) {}

  Status Open(std::optional<TableClaim> claim) {
    if (bytes_ < kFooterBytes) return Bad("length");
    if (claim && claim->bytes != bytes_)
      return Status::Corruption(
          fmt::format("the table is {} bytes long, but was {}", bytes_, claim->bytes));
    table_.claim_ = std::move(claim);
    RHIZOME_RETURN_IF_ERROR(ReadFooter());
    RHIZOME_RETURN_IF_ERROR(ReadNames());
    RHIZOME_RETURN_IF_ERROR(ReadProperties());
    RHIZOME_RETURN_IF_ERROR(ReadIndex());
    RHIZOME_RETURN_IF_ERROR(CheckDeletions());
    return CheckPlaces();
  }
  CatalogTable Take() { return std::move(table_); }

 private:
  std::optional<Handle> ReadHandle(Unpacker& in) {
    const std::uint64_t end = bytes_ - kFooterBytes;
    const Handle handle{.offset = in.Number(), .size = in.Number()};
    const bool inside = handle.offset <= end && handle.size <= end - handle.offset &&
                        end - handle.offset - handle.size >= kTrailerBytes;
    if (in.bad() || !inside) return std::nullopt;
    return handle;
  }

  Status ReadFooter() {
    std::array<std::byte, kFooterBytes> footer{};
    RHIZOME_RETURN_IF_ERROR(read_(bytes_ - footer.size(), footer));
    if (LoadLittle<std::uint64_t>(footer.data() + kTableMagicAt) != kTableMagic)
      return Bad("footer");
    const auto version = LoadLittle<std::uint32_t>(footer.data() + kVersionAt);
    if (version < kFirstVersion || version > kLastVersion)
      return Status::Corruption(fmt::format(
          "the table's footer is damaged, or was written by a newer RocksDB: format version {}",
          version));
    // RocksDB writes no other types for a catalogue; 0 would mean no checksums.
    table_.checksum_ = static_cast<Checksum>(footer[0]);
    if (table_.checksum_ != Checksum::kCrc32c && table_.checksum_ != Checksum::kXxh3)
      return Bad("footer");
    Unpacker in(Bytes(footer).subspan(1, kVersionAt - 1));
    const auto names = ReadHandle(in);
    const auto index = ReadHandle(in);
    if (!names || !index) return Bad("footer");
    names_ = *names;
    index_ = *index;
    return Status::Ok();
  }

  /// Reads a block of at most `max` bytes. Errors: kCorruption, its checksum is wrong or it is
  /// compressed.
  Result<std::vector<std::byte>> ReadBlock(const Handle& handle, std::string_view what,
                                           std::uint64_t max) {
    if (handle.size > max) return Fail(Bad(what));
    std::vector<std::byte> bytes(handle.size + kTrailerBytes);
    RHIZOME_RETURN_IF_ERROR(read_(handle.offset, bytes));
    if (!SumFits(table_.checksum_, bytes) || bytes[handle.size] != std::byte{0})
      return Fail(Bad(what));
    bytes.resize(handle.size);
    return bytes;
  }

  Status ReadNames() {
    RHIZOME_ASSIGN_OR_RETURN(const auto block, ReadBlock(names_, "list of blocks", kMaxListBytes));
    std::string last;
    const auto see = [&](std::string_view name, Bytes value) {
      Unpacker in(value);
      const auto handle = ReadHandle(in);
      if (!handle || !in.empty() || name <= last) return false;
      last = name;
      if (name == "rocksdb.properties") properties_ = handle;
      if (name == "rocksdb.range_del") deletions_ = handle;
      // Filters, dictionaries and similar blocks are not written for a catalogue.
      return name == "rocksdb.properties" || name == "rocksdb.range_del";
    };
    if (!ReadRocksBlock(block, BlockValues::kSized, see) || !properties_)
      return Bad("list of blocks");
    return Status::Ok();
  }

  Status ReadProperties() {
    RHIZOME_ASSIGN_OR_RETURN(const auto block,
                             ReadBlock(*properties_, "block of properties", kMaxListBytes));
    const auto see = [&](std::string_view name, Bytes value) { return said_.See(name, value); };
    if (!ReadRocksBlock(block, BlockValues::kSized, see) || !said_.Good())
      return Bad("block of properties");
    if (table_.claim_ && said_.At("rocksdb.column.family.id") != table_.claim_->family)
      return Status::Corruption("the table belongs to another column family");
    return Status::Ok();
  }

  Status ReadIndex() {
    RHIZOME_ASSIGN_OR_RETURN(const auto block, ReadBlock(index_, "index", kMaxIndexBytes));
    const bool whole = said_.At("rocksdb.index.value.is.delta.encoded") == 0;
    table_.separators_are_user_keys_ = said_.At("rocksdb.index.key.is.user.key") == 1;
    const auto see = [&](std::string_view key, Bytes value) { return SeeBlock(key, value); };
    if (!ReadRocksBlock(block, whole ? BlockValues::kSized : BlockValues::kHandles, see) ||
        table_.block_count() != said_.At("rocksdb.num.data.blocks"))
      return Bad("index");
    return Status::Ok();
  }

  bool SeeBlock(std::string_view key, Bytes value) {
    Unpacker in(value);
    const auto handle = ReadHandle(in);
    if (!handle || !in.empty() || handle->offset != table_.begins_.back()) return false;
    const std::size_t before = table_.block_count();
    if (before > 0 && !Follows(table_.SeparatorOf(before - 1), key)) return false;
    if (!table_.separators_are_user_keys_ && key.size() < sizeof(std::uint64_t)) return false;
    table_.begins_.push_back(handle->offset + handle->size + kTrailerBytes);
    table_.separators_ += key;
    table_.separator_ends_.push_back(table_.separators_.size());
    return true;
  }

  bool Follows(std::string_view before, std::string_view key) const {
    if (table_.separators_are_user_keys_) return before < key;
    return SeparatorKey(before) < SeparatorKey(key);
  }

  Status CheckDeletions() {
    if (!deletions_) {
      const bool none = said_.At("rocksdb.num.range-deletions") == 0;
      return none ? Status::Ok() : Bad("list of blocks");
    }
    RHIZOME_ASSIGN_OR_RETURN(const auto block,
                             ReadBlock(*deletions_, "block of deletions", kMaxIndexBytes));
    const auto see = [&](std::string_view bytes, Bytes end) {
      const auto key = RocksKey::Parse(bytes);
      return key && key->type == RocksType::kRangeDeletion && key->user < TextOf(end) &&
             (!table_.claim_ || key->change <= table_.claim_->largest_change);
    };
    return ReadRocksBlock(block, BlockValues::kSized, see) ? Status::Ok()
                                                           : Bad("block of deletions");
  }

  /// Checks that every byte of the file belongs to one block, or to the footer.
  Status CheckPlaces() {
    std::vector<Handle> blocks = {names_, index_, *properties_};
    if (deletions_) blocks.push_back(*deletions_);
    std::sort(blocks.begin(), blocks.end(),
              [](const Handle& a, const Handle& b) { return a.offset < b.offset; });
    std::uint64_t at = table_.begins_.back();
    for (const Handle& block : blocks) {
      if (block.offset != at) return Bad("list of blocks");
      at += block.size + kTrailerBytes;
    }
    return at + kFooterBytes == bytes_ ? Status::Ok() : Bad("length");
  }

 public:
  /// Parses a key of the index. It may be an artificial key between two others, with any type, and
  /// is used only for comparisons.
  static RocksKey SeparatorKey(std::string_view bytes) {
    const std::size_t end = bytes.size() - sizeof(std::uint64_t);
    const auto packed =
        LoadLittle<std::uint64_t>(reinterpret_cast<const std::byte*>(bytes.data()) + end);
    return {.user = bytes.substr(0, end),
            .change = packed >> 8U,
            .type = static_cast<RocksType>(packed & 0xFF)};
  }

 private:
  const ReadAtFunction& read_;
  const std::uint64_t bytes_;
  CatalogTable table_;
  Properties said_;
  Handle names_;
  Handle index_;
  std::optional<Handle> properties_;
  std::optional<Handle> deletions_;
};

Result<CatalogTable> CatalogTable::Open(std::uint64_t file_bytes, const ReadAtFunction& read,
                                        std::optional<TableClaim> claim) {
  Opener opener(file_bytes, read);
  RHIZOME_RETURN_IF_ERROR(opener.Open(std::move(claim)));
  return opener.Take();
}

std::pair<std::size_t, std::size_t> CatalogTable::BlocksIn(std::uint64_t offset_bytes,
                                                           std::uint64_t bytes) const {
  if (bytes == 0 || offset_bytes >= begins_.back()) return {0, 0};
  const auto first = std::upper_bound(begins_.begin(), begins_.end(), offset_bytes);
  const std::uint64_t end =
      begins_.back() - offset_bytes < bytes ? begins_.back() : offset_bytes + bytes;
  const auto last = std::lower_bound(begins_.begin(), begins_.end(), end);
  return {first - begins_.begin() - 1, last - begins_.begin()};
}

std::string_view CatalogTable::SeparatorOf(std::size_t block) const {
  const std::uint64_t begin = block == 0 ? 0 : separator_ends_[block - 1];
  return std::string_view(separators_).substr(begin, separator_ends_[block] - begin);
}

Status CatalogTable::CheckBlock(std::size_t block, Bytes bytes) const {
  // RocksDB checks the checksum itself, but here a block is parsed first and must be verified
  // before that.
  const bool good =
      bytes.size() > kTrailerBytes && bytes.size() == begins_[block + 1] - begins_[block] &&
      SumFits(checksum_, bytes) && bytes[bytes.size() - kTrailerBytes] == std::byte{0} &&
      HoldsEntries(block, bytes.first(bytes.size() - kTrailerBytes));
  if (good || RHIZOME_MUTANT("blocks of the catalogue are believed")) return Status::Ok();
  return Bad(fmt::format("block at offset {}", begins_[block]));
}

bool CatalogTable::HoldsEntries(std::size_t block, Bytes bytes) const {
  std::string before;
  const auto smallest = claim_ ? RocksKey::Parse(claim_->smallest) : std::nullopt;
  const auto largest = claim_ ? RocksKey::Parse(claim_->largest) : std::nullopt;
  const auto follows = [&](const RocksKey& key) {
    if (!before.empty()) return *RocksKey::Parse(before) < key;
    if (block == 0) return true;
    const std::string_view separator = SeparatorOf(block - 1);
    return separators_are_user_keys_ ? separator < key.user : Opener::SeparatorKey(separator) < key;
  };
  const auto see = [&](std::string_view encoded, Bytes) {
    const auto key = RocksKey::Parse(encoded);
    if (!key || key->type != RocksType::kValue || !follows(*key)) return false;
    if (smallest && *key < *smallest) return false;
    if (largest && *largest < *key) return false;
    if (claim_ && key->change > claim_->largest_change) return false;
    before = encoded;
    return true;
  };
  if (!ReadRocksBlock(bytes, BlockValues::kSized, see) || before.empty()) return false;
  const auto last = *RocksKey::Parse(before);
  return separators_are_user_keys_ ? last.user <= SeparatorOf(block)
                                   : !(Opener::SeparatorKey(SeparatorOf(block)) < last);
}

}  // namespace internal
}  // namespace rhizome
