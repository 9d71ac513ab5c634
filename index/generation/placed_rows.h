#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/status.h"
#include "rhizome/types.h"
#include "storage/array/row_reader.h"

namespace rhizome {
inline namespace internal {

/// Reads rows of an array in any order; optimised for many scans in similar orders. Rows in layout
/// kRow are read individually from the file; for layout kChunk, decoded chunks are cached, as many
/// as memory allows, but at least one.
/// Threads: one at a time.
/// Ownership: `array` must outlive it.
class PlacedRows {
 public:
  /// `sidecar` is the sidecar of an array in layout kRow, otherwise null; it is used only during
  /// the call.
  static Result<std::unique_ptr<PlacedRows>> Open(const ChunkArray& array,
                                                  const ChunkArray* sidecar,
                                                  std::uint64_t memory_bytes);

  /// Returns a second reader for another thread, with the same memory limit; the two share row
  /// checksums.
  Result<std::unique_ptr<PlacedRows>> Another() const;

  /// A row, and the index in `out` where it is copied.
  struct Place {
    Row row = 0;
    std::size_t index = 0;
  };

  /// Copies rows into `out`, each to its index; may sort `places`.
  /// Errors: kCorruption; kIoError.
  Status Read(std::span<Place> places, std::span<std::byte> out);

 private:
  struct KeptChunk {
    std::uint64_t chunk = 0;
    std::uint64_t used = 0;  // number of the last call that used the chunk
    std::vector<std::byte> rows;
  };
  explicit PlacedRows(const ChunkArray& array) : array_(array) {}
  Status ReadByChunk(std::span<Place> places, std::span<std::byte> out);
  Result<const KeptChunk*> Chunk(std::uint64_t chunk);

  const ChunkArray& array_;
  std::unique_ptr<RowReader> reader_;  // for layout kRow
  std::size_t max_chunks_ = 1;
  std::uint64_t calls_ = 0;
  std::vector<KeptChunk> kept_;
  std::vector<RowTarget> targets_;
};

}  // namespace internal
}  // namespace rhizome
