#pragma once

#include <memory>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/metrics.h"

namespace rhizome::inline internal {

/// Another file system whose reads and writes are counted (Counter::kFileReads and following),
/// those by io_uring among them. Threads: as `base`. Ownership: `base` and `metrics` must outlive
/// it and its files.
std::unique_ptr<FileSystem> MakeMeteredFileSystem(FileSystem& base, Metrics& metrics);

}  // namespace rhizome::inline internal
