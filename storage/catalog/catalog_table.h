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

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Fills `out` with a file's bytes at `offset_bytes`. Errors: errors of reading; the file ends too
/// early.
using ReadAtFunction = std::function<Status(std::uint64_t offset_bytes, std::span<std::byte> out)>;

/// The claims of RocksDB's MANIFEST about a table (.sst).
struct TableClaim {
  std::uint64_t bytes = 0;
  std::uint32_t family = 0;
  std::uint32_t level = 0;
  std::string smallest;  ///< keys as RocksDB stores them
  std::string largest;
  std::uint64_t smallest_change = 0;
  std::uint64_t largest_change = 0;
};

/// A RocksDB table that was verified to be one that RocksDB writes with a catalogue's options.
/// RocksDB trusts everything that has a correct checksum: lengths, offsets, the order of keys,
/// types of values. Bytes that RocksDB did not write may end the process in one of its assertions,
/// or, in a build without assertions, make it read beyond the end of a buffer. It also trusts the
/// footer, which has no checksum, and the properties, whose checksum it checks too late.
///
/// Data blocks are checked when they are read (CheckBlock), everything else when the table is
/// opened.
/// Source: RocksDB, table/format.h and table/block_based, format versions 2 to 5, without
/// compression, filters and hash indexes.
/// Threads: const functions may be called from many threads at once.
class CatalogTable {
 public:
  /// `claim` is the MANIFEST's claim, if it is known. Memory: about the size of the table's index.
  /// Errors: kCorruption, damage, foreign bytes or a newer format; errors of `read`.
  static Result<CatalogTable> Open(std::uint64_t file_bytes, const ReadAtFunction& read,
                                   std::optional<TableClaim> claim = {});

  /// Returns the range [first, last) of the data blocks that overlap a part of the file.
  std::pair<std::size_t, std::size_t> BlocksIn(std::uint64_t offset_bytes,
                                               std::uint64_t bytes) const;
  std::size_t block_count() const { return begins_.size() - 1; }

  /// Returns the begin and end offsets of a data block, including its trailer.
  std::pair<std::uint64_t, std::uint64_t> PlaceOf(std::size_t block) const {
    return {begins_[block], begins_[block + 1]};
  }

  /// Checks the bytes of a data block, including its trailer. Errors: kCorruption.
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
  std::vector<std::uint64_t> begins_{0};  // offsets of the data blocks, and the end of the last
  std::string separators_;                // the keys of the index, concatenated
  std::vector<std::uint64_t> separator_ends_;
  std::optional<TableClaim> claim_;
};

}  // namespace internal
}  // namespace rhizome
