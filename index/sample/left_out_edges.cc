#include "index/sample/left_out_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "storage/base/mix.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

namespace {

constexpr std::uint64_t kFilterBitsPerEnd = 16;

}  // namespace

Status LeftOutEdges::Set(const GraphParts& parts, std::uint64_t vertex_count,
                         std::span<const VertexPair> pairs) {
  ends_.clear();
  partners_.clear();
  std::vector<std::pair<Row, Row>> both;
  both.reserve(2 * pairs.size());
  for (const VertexPair& pair : pairs) {
    for (const VertexId end : {pair.src, pair.dst}) {
      if (static_cast<std::uint64_t>(end) < vertex_count) continue;
      return Status::InvalidArgument(fmt::format(
          "an edge to leave out has the end {}: vertex ids are in [0, {})", end, vertex_count));
    }
    const Row src = parts.RowOf(pair.src), dst = parts.RowOf(pair.dst);
    both.emplace_back(dst, src);
    if (!RHIZOME_MUTANT("the reverse of a left-out edge is kept")) both.emplace_back(src, dst);
  }
  std::sort(both.begin(), both.end());
  both.erase(std::unique(both.begin(), both.end()), both.end());
  filter_.assign(std::bit_ceil(kFilterBitsPerEnd * both.size() + 64) / 64, 0);
  for (const auto& [end, partner] : both) {
    ends_.push_back(end);
    partners_.push_back(partner);
    const std::uint64_t bit = BitOf(end);
    filter_[bit / 64] |= std::uint64_t{1} << bit % 64;
  }
  return Status::Ok();
}

std::uint64_t LeftOutEdges::BitOf(Row row) const {
  return Mix64(static_cast<std::uint64_t>(row)) & (64 * filter_.size() - 1);
}

std::span<const Row> LeftOutEdges::PartnersOf(Row row) const {
  if (empty() || !MayHave(row)) return {};
  const auto [first, last] = std::equal_range(ends_.begin(), ends_.end(), row);
  return std::span(partners_).subspan(static_cast<std::size_t>(first - ends_.begin()),
                                      static_cast<std::size_t>(last - first));
}

void LeftOutEdges::Drop(std::span<const Row> vertices, std::vector<std::uint64_t>& counts,
                        std::vector<EntryRef>& entries, std::vector<Row>& rows) const {
  std::size_t kept = 0;
  std::size_t entry = 0;
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const std::span<const Row> partners = PartnersOf(vertices[i]);
    const std::size_t end = entry + counts[i];
    const std::size_t before = kept;
    if (partners.empty() && kept == entry) {
      kept = entry = end;  // nothing has moved yet
      continue;
    }
    for (; entry < end; ++entry) {
      if (std::binary_search(partners.begin(), partners.end(), rows[entry])) continue;
      entries[kept] = entries[entry];
      rows[kept++] = rows[entry];
    }
    counts[i] = kept - before;
  }
  entries.resize(kept);
  rows.resize(kept);
}

}  // namespace internal
}  // namespace rhizome
