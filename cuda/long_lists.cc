#include "cuda/long_lists.h"

#include <algorithm>

namespace rhizome {
inline namespace internal {

LongLists FindLongLists(std::span<const std::uint32_t> offsets, std::uint32_t longest,
                        std::uint32_t piece_edges) {
  LongLists lists{.pieces = {}, .longest = longest, .partial_count = 0};
  for (std::uint32_t target = 0; target + 1 < offsets.size(); ++target) {
    const std::uint32_t end = offsets[target + 1];
    const std::uint32_t edges = end - offsets[target];
    if (edges <= longest) continue;
    const bool whole = edges <= piece_edges;
    for (std::uint32_t begin = offsets[target]; begin < end;) {
      const std::uint32_t next = begin + std::min(piece_edges, end - begin);
      const std::uint32_t partial = whole ? cuda::kWholeList : lists.partial_count++;
      lists.pieces.push_back({.target = target, .begin = begin, .end = next, .partial = partial});
      begin = next;
    }
  }
  return lists;
}

}  // namespace internal
}  // namespace rhizome
