#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/blocks/chunk_feed.h"
#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Returns the rows of a matrix in order, independently of the boundaries of the chunks that
/// deliver them.
/// Threads: one at a time.
class RowStream {
 public:
  /// Rows [first, end) of `dim` floats, of a matrix in chunks of `chunk_rows` rows.
  struct Rows {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::uint64_t dim = 0;
    std::uint64_t chunk_rows = 1;
  };
  RowStream(std::unique_ptr<ChunkFeed> feed, const Rows& rows);

  /// Returns rows [first, first + count), which must follow the rows of the previous call; valid
  /// until the next call. Errors: as ChunkFeed::Next.
  Result<const float*> Take(std::uint64_t first, std::uint64_t count);

  std::uint64_t dim() const { return dim_; }

 private:
  const std::unique_ptr<ChunkFeed> feed_;
  const std::uint64_t dim_;
  DecodedChunk current_;
  std::vector<float> joined_;  // rows that span several chunks
};

}  // namespace internal
}  // namespace rhizome
