#pragma once

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/manifest.h"

namespace rhizome {

/// Reads a file from the disk, past the page cache where that is possible, and compares length,
/// CRC-32C and XXH3-128 with what a manifest says of it. Errors: kCorruption naming the file;
/// kIoError; kInterrupted.
Status CheckFileBytes(FileSystem& fs, const Path& path, const FileEntry& entry,
                      const JobControl& control);

}  // namespace rhizome
