#pragma once

#include <memory>

#include "rhizome/file_system.h"
#include "rhizome/metrics.h"

namespace rhizome {
inline namespace internal {

/// Wraps a file system and counts its reads and writes (Counter::kFileReads, kFileReadBytes,
/// kFileWriteBytes), including reads by io_uring. Threads: as for `base`. Ownership: `base` and
/// `metrics` must outlive the result and its files.
std::unique_ptr<FileSystem> MakeMeteredFileSystem(FileSystem& base, Metrics& metrics);

}  // namespace internal
}  // namespace rhizome
