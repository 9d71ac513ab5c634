#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace RHIZOME_API rhizome {

/// A folder of scratch files of a job on a store.
struct JobScratchFolder {
  Path path;
  std::uint64_t bytes = 0;  ///< total size of its files

  enum class State : std::uint8_t {
    kEnded,    ///< the job ended without removing it, for example because it was killed
    kRunning,  ///< the job is running
    kForeign,  ///< no job created it: it is never removed
  };
  State state = State::kEnded;
};

struct CleanOptions {
  bool dry_run = false;  ///< remove nothing
  Path scratch = {};     ///< also the store's folder below this one (StoreOptions::scratch)
};

struct CleanReport {
  std::vector<JobScratchFolder> folders;  ///< all that were found
  std::uint64_t removed = 0;              ///< number of folders that were removed
  std::uint64_t removed_bytes = 0;
};

/// Removes the scratch files of jobs that ended. A killed job cannot be resumed afterwards. Opening
/// a store for writing does the same; this function needs no lock of the store, so that readers,
/// a writer, and running jobs, whose files remain, are not affected.
/// Errors: kNotFound, there is no store; kCorruption, a folder contains links, pipes or devices;
/// kIoError, also if another store replaces this one in the meantime.
Result<CleanReport> CleanScratch(FileSystem& fs, const Path& store,
                                 const CleanOptions& options = {});

}  // namespace rhizome
