#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/storage/dtype.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// The rows of a dense array, read once from front to back: a file, or what an importer makes of
/// several. Threads: one at a time.
class RowSource {
 public:
  virtual ~RowSource() = default;

  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kInvalid;

  std::uint64_t data_bytes() const { return rows * dim * DataTypeBytes(dtype); }

  /// Reads the next out.size() bytes of elements, row-major, whole ones; no more than there are.
  /// Errors: kInvalidArgument naming the file: it ends early, a value is malformed; kIoError.
  virtual Status Read(std::span<std::byte> out) = 0;

  /// Checks that nothing follows. Errors: kInvalidArgument.
  virtual Status Finish() { return Status::Ok(); }

  /// Bytes of its files, as they lie on disk; 0: not known.
  virtual std::uint64_t file_bytes() const { return 0; }

  /// What it holds in memory at most, besides what whoever made it holds.
  virtual std::uint64_t memory_bytes() const { return 0; }
};

}  // namespace rhizome
