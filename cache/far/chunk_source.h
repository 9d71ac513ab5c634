#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The source of an array's chunks: a local store, or a remote one. Rows have row_bytes bytes;
/// chunk c holds rows [c * chunk_rows, (c + 1) * chunk_rows), the last chunk perhaps fewer. Shape
/// and version are those of the moment when it was opened.
/// Threads: ReadChunk and Version may be called from many threads at once.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual std::string name() const = 0;  ///< for messages
  virtual std::uint64_t rows() const = 0;
  virtual std::uint64_t row_bytes() const = 0;
  virtual std::uint64_t chunk_rows() const = 0;

  /// Returns a number that changes with the array's content.
  virtual Result<std::uint64_t> Version() = 0;

  /// Reads the rows of a chunk into `out`, which has exactly their size. Returns the number of
  /// bytes delivered, which is smaller if the source ends too soon. Errors: kIoError; kCorruption.
  virtual Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out) = 0;

  std::uint64_t chunk_count() const { return (rows() + chunk_rows() - 1) / chunk_rows(); }
  /// Returns 0 if there is no such chunk.
  std::uint64_t RowsInChunk(std::uint64_t chunk) const {
    if (chunk >= chunk_count()) return 0;
    const std::uint64_t first = chunk * chunk_rows();
    return rows() - first < chunk_rows() ? rows() - first : chunk_rows();
  }
};

/// The chunks of an array of a local store, which cannot change.
/// Ownership: `array` must outlive it.
class StoredChunkSource final : public ChunkSource {
 public:
  explicit StoredChunkSource(const ChunkArray& array) : array_(array) {}
  std::string name() const override { return "array " + array_.entry().name; }
  std::uint64_t rows() const override { return array_.entry().rows; }
  std::uint64_t row_bytes() const override { return array_.entry().row_bytes(); }
  std::uint64_t chunk_rows() const override { return array_.entry().chunk_rows; }
  Result<std::uint64_t> Version() override { return array_.entry().array_id; }
  Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out) override {
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t stored_bytes, array_.ReadChunk(chunk, out));
    static_cast<void>(stored_bytes);  // bytes on disk; always all rows are delivered
    return out.size();
  }

 private:
  const ChunkArray& array_;
};

}  // namespace rhizome::inline internal
