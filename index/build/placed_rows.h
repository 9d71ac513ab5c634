#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/row_reader.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// Rows of an array in any order, for scans of many at a time whose orders are alike: rows in
/// layout kRow are read where they stand; of layout kChunk, decoded chunks are kept, as many as
/// there is room for, and at least one. Threads: one at a time. Ownership: `array` must outlive it.
class PlacedRows {
 public:
  /// `sidecar`: of layout kRow, else null; only read here.
  static Result<std::unique_ptr<PlacedRows>> Open(const ChunkArray& array,
                                                  const ChunkArray* sidecar,
                                                  std::uint64_t memory_bytes);

  /// One more for another thread, with as much memory; row checksums are shared.
  Result<std::unique_ptr<PlacedRows>> Another() const;

  /// A row, and which row of `out` it goes to.
  struct Place {
    Row row = 0;
    std::size_t index = 0;
  };

  /// Copies rows into `out`; may sort `places`. Errors: kCorruption; kIoError.
  Status Read(std::span<Place> places, std::span<std::byte> out);

 private:
  struct KeptChunk {
    std::uint64_t chunk = 0;
    std::uint64_t used = 0;  // the call that used it last
    std::vector<std::byte> rows;
  };
  explicit PlacedRows(const ChunkArray& array) : array_(array) {}
  Status ReadByChunk(std::span<Place> places, std::span<std::byte> out);
  Result<const KeptChunk*> Chunk(std::uint64_t chunk);

  const ChunkArray& array_;
  std::unique_ptr<RowReader> reader_;  // of layout kRow
  std::size_t most_chunks_ = 1;
  std::uint64_t calls_ = 0;
  std::vector<KeptChunk> kept_;
  std::vector<RowTarget> targets_;
};

}  // namespace rhizome::inline internal
