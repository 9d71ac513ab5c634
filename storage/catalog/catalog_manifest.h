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

/// A catalogue's options let RocksDB begin a new MANIFEST at half of this, and at each opening by a
/// writer.
inline constexpr std::uint64_t kMaxCatalogManifestBytes = std::uint64_t{64} << 20;

/// The name of the MANIFEST that CURRENT's bytes name.
std::string ManifestNameIn(std::span<const std::byte> current);

/// What a MANIFEST says of a column family.
struct FamilyClaim {
  std::uint64_t first_log = 0;    ///< its changes in earlier logs are in tables
  std::uint64_t last_change = 0;  ///< in its tables
};

/// Follows the edits of RocksDB's MANIFEST, and refuses what a catalogue's options do not let
/// RocksDB write, be it behind a right checksum: it believes numbers of files, levels, keys and
/// changes, and comes upon assertions, or overwrites files, where they are wrong. Source: RocksDB,
/// db/version_edit.cc. Touches no file.
class ManifestEdits {
 public:
  /// The next edit, which may have to wait for others of its group. False if it is refused.
  bool Apply(std::span<const std::byte> edit);

  /// Whether what was applied fits together, once there is no more.
  bool Good() const;

  /// Tables (.sst) that are part of the catalogue, by number.
  const std::map<std::uint64_t, TableClaim>& live() const { return live_; }

  /// RocksDB reads no log with a smaller number.
  std::uint64_t first_log() const;
  std::uint64_t last_change() const { return last_change_; }
  FamilyClaim ClaimOf(std::uint32_t family) const;

  /// Those that edits since the last call added; they may have been taken away again.
  std::map<std::uint64_t, TableClaim> TakeAdded() { return std::exchange(added_, {}); }

 private:
  struct Edit;
  class Parser;
  struct Family {
    std::string name;
    std::uint64_t first_log = 0;  // that it needs
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

/// The tables that RocksDB's MANIFEST names at the end of its whole records, number and length:
/// those that a catalogue consists of, besides its logs. Errors: kCorruption, damage (a torn last
/// record is none), or what no RocksDB writes that a catalogue can be of. Touches no file; takes
/// memory as the bytes do.
Result<std::map<std::uint64_t, std::uint64_t>> LiveTables(std::span<const std::byte> manifest);

}  // namespace rhizome::inline internal
