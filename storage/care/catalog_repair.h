#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "rhizome/storage/catalog.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/store_id.h"

namespace rhizome::inline internal {

/// What a damaged catalogue still says.
struct CatalogSalvage {
  std::unique_ptr<Catalog> left;  ///< a copy that RocksDB repaired; null: nothing is left
  std::optional<CommitRecord> record;
  bool from_catalog = false;  ///< the record was in the catalogue; else it is the newest manifest's
};

/// Copies the catalogue of a store to `work`, lets RocksDB repair the copy, and looks for what was
/// committed: the record that it holds, if that names a sound manifest, else that of the newest
/// generation and version which is there. Errors: those of reading and writing
/// which prove no damage: kIoError, kOutOfSpace, ...
Result<CatalogSalvage> SalvageCatalog(FileSystem& fs, const Path& store, const StoreId& id,
                                      const Path& work);

/// Puts the delta of `from` above `base`, commit by commit as long as each follows the one before,
/// into `to`. Returns the last commit that was put, `base` if there is none.
Result<std::uint64_t> CopyDelta(Catalog& from, std::uint64_t base, Catalog& to);

/// Can the catalogue be read, and was something committed in it? Errors: those that prove no
/// damage.
Result<bool> HoldsCommit(FileSystem& fs, const StoreId& id, const Path& catalog);

/// Puts a closed catalogue into the folder `to`, which is not there. Until CURRENT is, which comes
/// last, there is none. Errors: kIoError, kOutOfSpace.
Status PutCatalog(FileSystem& fs, const Path& from, const Path& to);

}  // namespace rhizome::inline internal
