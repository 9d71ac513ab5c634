#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "rhizome/chunk_array.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Abstract source of an array's chunks, local or remote. A row has row_bytes bytes; chunk c holds
/// rows [c * chunk_rows, (c + 1) * chunk_rows), and the last chunk may hold fewer. Shape and
/// version are fixed when the source is opened.
/// Threads: ReadChunk and Version may be called concurrently from many threads.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;
  virtual std::string name() const = 0;  ///< used in messages
  virtual std::uint64_t rows() const = 0;
  virtual std::uint64_t row_bytes() const = 0;
  virtual std::uint64_t chunk_rows() const = 0;

  /// Returns a number that changes with the array's content.
  virtual Result<std::uint64_t> Version() = 0;

  /// Reads the rows of a chunk into `out`, whose size must match exactly. Returns the number of
  /// bytes read, which is smaller if the source ends early. Errors: kIoError; kCorruption.
  virtual Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out) = 0;

  std::uint64_t chunk_count() const { return (rows() + chunk_rows() - 1) / chunk_rows(); }
  /// Returns 0 if there is no such chunk.
  std::uint64_t RowsInChunk(std::uint64_t chunk) const {
    if (chunk >= chunk_count()) return 0;
    const std::uint64_t first = chunk * chunk_rows();
    return rows() - first < chunk_rows() ? rows() - first : chunk_rows();
  }
};

/// The chunks of an array in a local store. The array is immutable.
/// Ownership: `array` must outlive this object.
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
    static_cast<void>(stored_bytes);  // bytes on disk; all rows are always delivered
    return out.size();
  }

 private:
  const ChunkArray& array_;
};

}  // namespace internal
}  // namespace rhizome
