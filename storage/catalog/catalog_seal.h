#pragma once

#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// The seal of a catalogue that its writer closed contains the name, length and hash of RocksDB's
/// MANIFEST (storage/FORMAT.md, "Catalogue seal"). RocksDB treats a MANIFEST that was cut off
/// between two records as an earlier one and silently drops later changes. After a crash this is
/// correct; after a clean close it is damage. Only the seal distinguishes these cases.
///
/// A catalogue has a seal exactly while no writer has it open and the last writer closed it
/// cleanly. A torn seal, the result of a crash while it was written, counts as none.

/// Compares the catalogue with its seal, if it has one. A writer may be active and break the seal
/// at any moment. Errors: kCorruption; kIoError.
Status CheckCatalogSeal(FileSystem& fs, const Path& catalog);

/// Removes the seal durably. A writer calls it before it changes anything.
Status BreakCatalogSeal(FileSystem& fs, const Path& catalog);

/// Seals a catalogue that was just closed and has no seal. Does nothing if there is no CURRENT.
Status SealCatalog(FileSystem& fs, const Path& catalog);

}  // namespace internal
}  // namespace rhizome
