#include "cache/blocks/row_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace rhizome {
inline namespace internal {

RowStream::RowStream(std::unique_ptr<ChunkFeed> feed, const Rows& rows)
    : feed_(std::move(feed)), dim_(rows.dim) {
  for (std::uint64_t chunk = rows.first / rows.chunk_rows; chunk * rows.chunk_rows < rows.end;
       ++chunk) {
    feed_->Append(chunk);
  }
}

Result<const float*> RowStream::Take(std::uint64_t first, std::uint64_t count) {
  std::uint64_t joined = 0;
  while (true) {
    const auto begin = static_cast<std::uint64_t>(current_.first_row);
    const std::uint64_t wanted = first + joined;
    if (current_.values == nullptr || wanted >= begin + current_.rows) {
      current_ = {};  // its memory may be reused for the next chunk
      RHIZOME_ASSIGN_OR_RETURN(current_, feed_->Next());
      continue;
    }
    const std::uint64_t here = std::min(begin + current_.rows - wanted, count - joined);
    const float* const rows = current_.values.get() + (wanted - begin) * dim_;
    if (here == count) return rows;
    joined_.resize(count * dim_);
    std::memcpy(joined_.data() + joined * dim_, rows, here * dim_ * sizeof(float));
    joined += here;
    if (joined == count) return joined_.data();
  }
}

}  // namespace internal
}  // namespace rhizome
