#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/storage/result.h"

namespace rhizome {

/// Fills `out` from a file's bytes at `offset_bytes`. Errors: those of reading, an end before.
using ReadAtFunction = std::function<Status(std::uint64_t offset_bytes, std::span<std::byte> out)>;

/// What RocksDB's MANIFEST says of a table (.sst).
struct TableClaim {
  std::uint64_t bytes = 0;
  std::uint32_t family = 0;
  std::uint32_t level = 0;
  std::string smallest;  ///< keys as RocksDB stores them
  std::string largest;
  std::uint64_t smallest_change = 0;
  std::uint64_t largest_change = 0;
};

/// A table of RocksDB's that is what a catalogue's options let RocksDB write, and nothing else.
/// RocksDB believes what is behind a right checksum: lengths, offsets, the order of keys, types of
/// values. What it was not written by RocksDB may end the process in one of its assertions, or, in
/// a build without them, be read beyond the end of a buffer. And a footer, which has no checksum,
/// and the block of properties, at whose checksum it looks too late, are believed in any case.
///
/// All but the blocks of data is checked when the table is opened; each of those when it is read
/// (CheckBlock). Source: RocksDB, table/format.h and table/block_based, format versions 2 to 5,
/// without compression, filters and indexes of hashes.
/// Threads: const functions from many at once.
class CatalogTable {
 public:
  /// `claim`: what the MANIFEST says, if it is known. Takes memory as the table's index does.
  /// Errors: kCorruption; kUnsupported, a newer format; the reader's.
  static Result<CatalogTable> Open(std::uint64_t file_bytes, const ReadAtFunction& read,
                                   std::optional<TableClaim> claim = {});

  /// The blocks of data that have bytes in a part of the file: the first one, and the one behind
  /// the last.
  std::pair<std::size_t, std::size_t> BlocksIn(std::uint64_t offset_bytes,
                                               std::uint64_t bytes) const;
  std::size_t block_count() const { return begins_.size() - 1; }

  /// Where a block of data begins and ends, its checksum included.
  std::pair<std::uint64_t, std::uint64_t> PlaceOf(std::size_t block) const {
    return {begins_[block], begins_[block + 1]};
  }

  /// Checks a block of data, of which these are the bytes. Errors: kCorruption.
  Status CheckBlock(std::size_t block, std::span<const std::byte> bytes) const;

 private:
  enum class Checksum : std::uint8_t { kCrc32c = 1, kXxh3 = 4 };
  struct Handle {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  class Opener;

  CatalogTable() = default;
  static bool SumFits(Checksum kind, std::span<const std::byte> with_trailer);
  bool HoldsEntries(std::size_t block, std::span<const std::byte> bytes) const;
  std::string_view SeparatorOf(std::size_t block) const;

  Checksum checksum_ = Checksum::kCrc32c;
  bool separators_are_user_keys_ = false;
  std::vector<std::uint64_t> begins_{0};  // of the blocks of data, and where the last one ends
  std::string separators_;                // one behind the other: the keys of the index
  std::vector<std::uint64_t> separator_ends_;
  std::optional<TableClaim> claim_;
};

}  // namespace rhizome
