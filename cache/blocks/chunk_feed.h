#pragma once

#include <cstdint>
#include <memory>

#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// A decoded chunk: rows [first_row, first_row + rows) as floats.
struct DecodedChunk {
  std::uint64_t request = 0;  ///< index of the chunk in the sequence
  std::uint64_t chunk = 0;
  Row first_row = 0;
  std::uint64_t rows = 0;
  std::shared_ptr<const float[]> values;  ///< [rows, dim]
};

/// Delivers the chunks of an array, as floats, in a sequence that the caller defines.
/// Threads: one at a time.
class ChunkFeed {
 public:
  virtual ~ChunkFeed() = default;

  /// Appends a chunk to the sequence.
  virtual void Append(std::uint64_t chunk) = 0;

  /// Waits for the next chunk of the sequence. Errors: kCorruption; kIoError; kOutOfMemory;
  /// kInterrupted.
  virtual Result<DecodedChunk> Next() = 0;
};

}  // namespace internal
}  // namespace rhizome
