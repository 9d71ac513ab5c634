#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/status.h"
#include "storage/catalog/catalog_table.h"

namespace rhizome {
inline namespace internal {

/// Max length of a MANIFEST. With a catalogue's options RocksDB begins a new one at half this
/// length; it also does so whenever a writer opens the catalogue.
inline constexpr std::uint64_t kMaxCatalogManifestBytes = std::uint64_t{64} << 20;

/// Returns the name of the MANIFEST from the content of CURRENT. The name is not checked.
std::string ManifestNameIn(std::span<const std::byte> current);

/// The claims of a MANIFEST about a column family.
struct FamilyClaim {
  std::uint64_t first_log = 0;    ///< changes of the family in earlier logs are in tables
  std::uint64_t last_change = 0;  ///< the last change in its tables
};

/// Follows the edits of RocksDB's MANIFEST, and refuses edits that RocksDB, with a catalogue's
/// options, does not write, even if the checksum is correct. RocksDB itself trusts the numbers of
/// files, levels, keys and changes; wrong ones make it fail in assertions or overwrite files.
/// Accesses no file.
/// Source: RocksDB, db/version_edit.cc.
class ManifestEdits {
 public:
  /// Processes the next edit, which may wait for others of its group. Returns false if the edit is
  /// refused.
  bool Apply(std::span<const std::byte> edit);

  /// Returns whether the edits are consistent. To be called after all were applied.
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
  std::uint64_t min_log_ = 0;
  std::uint64_t next_number_ = 0;
  std::uint64_t largest_log_ = 0;
  std::uint64_t last_change_ = 0;
};

/// Returns number and length of the tables that a MANIFEST names after its last complete record;
/// together with the logs they make up a catalogue. Errors: kCorruption, damage (other than a torn
/// last record), or records that no RocksDB would write for a catalogue. Accesses no file; memory
/// is bounded by the size of `manifest`.
Result<std::map<std::uint64_t, std::uint64_t>> LiveTables(std::span<const std::byte> manifest);

}  // namespace internal
}  // namespace rhizome
