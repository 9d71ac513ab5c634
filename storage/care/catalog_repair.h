#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/storage/catalog.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/store_id.h"

namespace rhizome::inline internal {

/// The data that could be saved from a damaged catalogue.
struct CatalogSalvage {
  std::unique_ptr<Catalog> left;  ///< a copy that RocksDB repaired; null: it could not
  std::optional<CommitRecord> record;
  bool from_catalog = false;  ///< the record was in the catalogue; else it is the newest manifest's
};

/// Copies the catalogue of a store to `work`, lets RocksDB repair the copy, and finds the commit
/// record: the one in the copy, if that names a sound manifest, else one for the newest sound
/// manifest. Errors: those of reading and writing that do not prove damage, such as kIoError and
/// kOutOfSpace.
Result<CatalogSalvage> SalvageCatalog(FileSystem& fs, const Path& store, const StoreId& id,
                                      const Path& work);

/// Copies the commits of the delta of `from` after `base` to `to`, while each follows the one
/// before. Returns the last commit that was copied, or `base` if there is none.
Result<std::uint64_t> CopyDelta(Catalog& from, std::uint64_t base, Catalog& to);

/// Returns whether the catalogue can be read and holds a commit record. Errors: those that do not
/// prove damage.
Result<bool> HoldsCommit(FileSystem& fs, const StoreId& id, const Path& catalog);

/// Links or copies a closed catalogue into the new folder `to`. CURRENT comes last: without it the
/// folder holds no catalogue. Errors: kIoError, kOutOfSpace.
Status PutCatalog(FileSystem& fs, const Path& from, const Path& to);

}  // namespace rhizome::inline internal
