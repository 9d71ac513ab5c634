#pragma once

#include <span>
#include <vector>

#include "rhizome/storage/chunk_array.h"

namespace rhizome {

/// Rows out of mapped chunk files, as out-of-core trainers without a cache of their own read them
/// (PyG+ of the Ginex paper): a baseline for benchmarks. The product maps no store data. Pages are
/// read one by one (MADV_RANDOM), and what the page cache held of the files is dropped first.
/// Threads: Gather from any.
class MappedRows {
 public:
  /// Errors: kIoError, a file that cannot be mapped.
  static Result<MappedRows> Open(const ChunkArray& array);
  MappedRows(MappedRows&& other) noexcept = default;
  MappedRows& operator=(MappedRows&&) = delete;
  ~MappedRows();

  /// `out` holds rows.size() rows.
  void Gather(std::span<const std::int64_t> rows, std::span<std::byte> out) const;

 private:
  explicit MappedRows(const ArrayEntry& entry)
      : chunk_rows_(entry.chunk_rows), row_bytes_(entry.row_bytes()) {}

  std::uint64_t chunk_rows_;
  std::size_t row_bytes_;
  std::vector<std::span<std::byte>> chunks_;
};

}  // namespace rhizome
