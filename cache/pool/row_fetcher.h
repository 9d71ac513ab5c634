#pragma once

#include <functional>
#include <memory>
#include <span>

#include "rhizome/storage/export.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/row_reader.h"

namespace RHIZOME_API rhizome {

/// Reads rows of one array from wherever they are: this machine's disk, and other machines.
/// Threads: one at a time.
class RowFetcher {
 public:
  virtual ~RowFetcher() = default;

  /// Fills all targets, row_bytes() bytes each, with rows that were checked; it may reorder them.
  /// Duplicates are allowed. Errors: those of RowReader::Read, and of what else it asks. After an
  /// error the targets' memory is unspecified, and nothing writes to it any more.
  virtual Status Read(std::span<RowTarget> targets) = 0;

  /// Returns what was read from this machine's disk.
  virtual RowReaderStats stats() const = 0;
};

/// Makes the fetcher of a cache, which is given the reader of the array on this machine's disk.
using RowFetcherMaker = std::function<Result<std::unique_ptr<RowFetcher>>(
    std::unique_ptr<RowReader> local, const ArrayEntry& array)>;

}  // namespace rhizome
