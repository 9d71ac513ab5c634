#pragma once

#include "rhizome/storage/file_system.h"

namespace rhizome::inline internal {

/// The seal of a catalogue that its writer closed: which MANIFEST RocksDB left, its length and hash
/// (storage/FORMAT.md, "Catalogue seal"). RocksDB takes a MANIFEST that was cut off between two
/// records for an earlier one, and what came later is gone without a word; after a crash that is
/// right, after a clean close it is damage, and only the seal tells the one from the other.
///
/// A catalogue has a seal exactly while no writer has it open and the last one closed it in order.
/// A seal that is torn is none: a crash while it was written leaves such.

/// Compares the catalogue with its seal, if it has one. Beside a writer, too, who may break the
/// seal at any moment. Errors: kCorruption; kIoError.
Status CheckCatalogSeal(FileSystem& fs, const Path& catalog);

/// Removes the seal, for good when it returns: to be called before anything is changed.
Status BreakCatalogSeal(FileSystem& fs, const Path& catalog);

/// Seals a catalogue that was just closed and has no seal.
Status SealCatalog(FileSystem& fs, const Path& catalog);

}  // namespace rhizome::inline internal
