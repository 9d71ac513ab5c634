#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/storage/catalog_table.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A bound on the length of a MANIFEST. A catalogue's options make RocksDB begin a new one at half
/// of this; it also does at each opening by a writer.
inline constexpr std::uint64_t kMaxCatalogManifestBytes = std::uint64_t{64} << 20;

/// Returns the name of the MANIFEST from the bytes of CURRENT. It is not checked.
std::string ManifestNameIn(std::span<const std::byte> current);

/// The claims of a MANIFEST about a column family.
struct FamilyClaim {
  std::uint64_t first_log = 0;    ///< changes of the family in earlier logs are in tables
  std::uint64_t last_change = 0;  ///< the last change in its tables
};

/// Follows the edits of RocksDB's MANIFEST, and refuses edits that a catalogue's options do not let
/// RocksDB write, even with a right checksum. RocksDB itself believes numbers of files, levels,
/// keys and changes; wrong ones make it fail in assertions or overwrite files. Source: RocksDB,
/// db/version_edit.cc. Touches no file.
class ManifestEdits {
 public:
  /// Takes the next edit, which may wait for others of its group. False: it is refused.
  bool Apply(std::span<const std::byte> edit);

  /// Returns whether the edits fit together; to be asked when all were applied.
  bool Good() const;

  /// Tables (.sst) that are part of the catalogue, by number.
  const std::map<std::uint64_t, TableClaim>& live() const { return live_; }

  /// RocksDB reads no log with a smaller number.
  std::uint64_t first_log() const;
  std::uint64_t last_change() const { return last_change_; }
  FamilyClaim ClaimOf(std::uint32_t family) const;

  /// Returns the tables that edits have added since the last call. Later edits may have removed
  /// them again.
  std::map<std::uint64_t, TableClaim> TakeAdded() { return std::exchange(added_, {}); }

 private:
  struct Edit;
  class Parser;
  struct Family {
    std::string name;
    std::uint64_t first_log = 0;  // the first log that it needs
  };

  bool ApplyAtOnce(const Edit& edit);
  bool LevelsFit() const;

  std::map<std::uint64_t, TableClaim> live_;
  std::map<std::uint64_t, TableClaim> added_;
  std::map<std::uint32_t, Family> families_{{0, {"default"}}};
  std::vector<std::vector<std::byte>> group_;  // edits that take effect together
  std::uint64_t group_left_ = 0;
  std::uint64_t least_log_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t largest_log_ = 0;
  std::uint64_t last_change_ = 0;
};

/// Returns number and length of the tables that a MANIFEST names after its last whole record; with
/// the logs they make up a catalogue. Errors: kCorruption, damage (a torn last record is none), or
/// records that no RocksDB would write for a catalogue. Touches no file; its memory is bounded by
/// the bytes'.
Result<std::map<std::uint64_t, std::uint64_t>> LiveTables(std::span<const std::byte> manifest);

}  // namespace rhizome::inline internal
