#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/file_system.h"
#include "rhizome/types.h"
#include "storage/catalog/catalog.h"

namespace rhizome {
inline namespace internal {

/// The data that could be saved from a damaged catalogue.
struct CatalogSalvage {
  std::unique_ptr<Catalog> left;  ///< a copy that RocksDB repaired; null: repair failed
  std::optional<CommitRecord> record;
  bool from_catalog = false;  ///< from the catalogue, or created for a manifest
};

/// Copies the catalogue of a store to `work`, runs RocksDB's repair on the copy, and finds the
/// commit record: the record in the copy if it names an intact manifest, otherwise one for the
/// newest intact manifest.
/// Errors: errors of reading and writing that do not prove damage, such as kIoError and
/// kOutOfSpace.
Result<CatalogSalvage> SalvageCatalog(FileSystem& fs, const Path& store, const StoreId& id,
                                      const Path& work);

/// Copies the commits of the delta of `from` after `base` to `to`, as long as each follows the
/// previous one. Returns the last commit that was copied, or `base` if there is none.
Result<std::uint64_t> CopyDelta(Catalog& from, std::uint64_t base, Catalog& to);

/// Returns whether the catalogue can be read and contains a commit record. Errors: errors that do
/// not prove damage.
Result<bool> HoldsCommit(FileSystem& fs, const StoreId& id, const Path& catalog);

/// Links or copies a closed catalogue into the new folder `to`. CURRENT comes last: without it the
/// folder does not count as a catalogue. Errors: kIoError, kOutOfSpace.
Status PutCatalog(FileSystem& fs, const Path& from, const Path& to);

}  // namespace internal
}  // namespace rhizome
