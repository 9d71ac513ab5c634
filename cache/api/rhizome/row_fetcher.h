#pragma once

#include <functional>
#include <memory>
#include <span>

#include "rhizome/export.h"
#include "rhizome/manifest.h"
#include "rhizome/result.h"
#include "rhizome/row_reader.h"

namespace RHIZOME_API rhizome {

/// Reads rows of one array from the local disk or from other machines.
/// Threads: one at a time.
class RowFetcher {
 public:
  virtual ~RowFetcher() = default;

  /// Fills all targets, row_bytes() bytes each, with verified rows; may reorder them. Duplicates
  /// are allowed. Errors: as RowReader::Read, and errors of remote sources. After an error the
  /// memory of the targets is unspecified, and no thread writes to it any more.
  virtual Status Read(std::span<RowTarget> targets) = 0;

  /// Returns statistics of the reads from the local disk.
  virtual RowReaderStats stats() const = 0;
};

/// Creates the fetcher of a cache, given the reader of the array on the local disk.
using RowFetcherFactory = std::function<Result<std::unique_ptr<RowFetcher>>(
    std::unique_ptr<RowReader> local, const ArrayEntry& array)>;

}  // namespace rhizome
