#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"

namespace rhizome {

/// One thing that is wrong with a store.
struct Damage {
  std::string file;  ///< relative to the store
  std::uint64_t offset_bytes = 0;
  std::string what;
};

struct VerifyReport {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Damage> damaged;

  /// The rows of the current generation's row arrays were compared with their sidecars: VerifyGraph
  /// need not read them again.
  bool rows_checked = false;

  /// What killed writers and jobs left, which is no damage: files, generations and scratch folders,
  /// relative to the store. The next open for writing removes them.
  std::vector<std::string> orphans;
  bool ok() const { return damaged.empty(); }
};

/// Reads every byte of a store and compares it with what was committed: the catalogue's own
/// checksums, every manifest, every file's length, CRC-32C and XXH3-128, the rows of row arrays
/// against their sidecars, files that are missing and files that no killed writer can have left.
/// Reads with O_DIRECT where that is granted, many reads in flight, and hashes on all processors.
/// Goes on after damage, so that the list is complete.
/// What only a graph can know (offsets, permutations) is checked by VerifyGraph (index/graph.h).
/// A writer may be at work meanwhile; then what is not committed yet is not looked at.
/// Errors: kNotFound, no store; kInterrupted; kBusy, a writer keeps cleaning up; kIoError only if
/// nothing could be checked at all.
Result<VerifyReport> VerifyFiles(FileSystem& fs, const Path& store, const JobControl& control);

}  // namespace rhizome
