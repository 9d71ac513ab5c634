#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/dtype.h"
#include "rhizome/export.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// The rows of a dense array, read once from front to back, from a file or from an importer that
/// combines several files. Shape: [rows, dim], row-major elements of dtype.
/// Threads: one at a time.
class RowSource {
 public:
  virtual ~RowSource() = default;

  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kInvalid;

  /// Returns the number of bytes of all elements.
  std::uint64_t data_bytes() const { return rows * dim * DataTypeBytes(dtype); }

  /// Reads the next out.size() bytes of whole elements, row-major; the caller must not ask for more
  /// than data_bytes() in total.
  /// Errors: kInvalidArgument, a file ends early or a value is malformed, naming the file;
  /// kIoError.
  virtual Status Read(std::span<std::byte> out) = 0;

  /// Checks that nothing follows the last row. Errors: kInvalidArgument.
  virtual Status Finish() { return Status::Ok(); }

  /// Returns the number of bytes of its files on disk; 0 if unknown.
  virtual std::uint64_t file_bytes() const { return 0; }

  /// Returns the maximum memory that it holds, without the memory of its creator.
  virtual std::uint64_t memory_bytes() const { return 0; }
};

}  // namespace rhizome
