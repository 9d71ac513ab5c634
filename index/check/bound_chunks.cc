#include "index/check/bound_chunks.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/array/array_facts.h"
#include "storage/array/chunk_writer.h"

namespace rhizome {
inline namespace internal {
namespace {

std::vector<RowRange> RowsOfTypeIn(const TypeRows& of_type, std::uint64_t begin,
                                   std::uint64_t end) {
  std::vector<RowRange> ranges;
  for (std::uint64_t row = begin; row < end; ++row) {
    if (!of_type.Has(row)) continue;
    if (!ranges.empty() && ranges.back().last + 1 == row)
      ranges.back().last = row;
    else
      ranges.push_back({row, row});
  }
  return ranges;
}

}  // namespace

std::vector<ChunkFault> WrongChunksOf(const ArrayEntry& entry, const TypeRows& of_type,
                                      std::span<const FileEntry> files) {
  std::vector<ChunkFault> wrong;
  const std::vector<std::uint64_t> listed = ListedChunks(entry, files);
  auto next = listed.begin();
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    const std::uint64_t begin = chunk * entry.chunk_rows;
    const std::uint64_t end = std::min(begin + entry.chunk_rows, entry.rows);
    const std::uint64_t rows = of_type.RankOf(end) - of_type.RankOf(begin);
    const bool stored = next != listed.end() && *next == chunk;
    if (stored) ++next;
    if (stored == (rows > 0)) continue;
    ChunkFault fault{.array = entry.name,
                     .chunk = chunk,
                     .file = ChunkPath(entry.name, chunk, entry.form),
                     .rows = RowsOfTypeIn(of_type, begin, end),
                     .what = {}};
    fault.what =
        stored ? fmt::format("is stored, but has no vertex of type '{}'", BoundType(entry))
               : fmt::format(
                     "the manifest does not list it, but it has the rows of {} vertices of type "
                     "'{}'",
                     rows, BoundType(entry));
    wrong.push_back(std::move(fault));
  }
  return wrong;
}

}  // namespace internal
}  // namespace rhizome
