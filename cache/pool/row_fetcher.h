#pragma once

#include <span>

#include "rhizome/resource_options.h"
#include "rhizome/status.h"
#include "storage/array/row_reader.h"

namespace rhizome {

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

}  // namespace rhizome
