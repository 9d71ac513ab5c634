#include "cache/ranks/row_homes.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "cache/feed/label_arrays.h"
#include "cache/pool/row_ranks.h"
#include "index/graph/delta_rows.h"
#include "index/homes/home_array.h"
#include "index/topology/vertex_order.h"

namespace rhizome {
inline namespace internal {

std::vector<std::uint16_t> RowHomes::RanksOfRows(std::uint32_t ranks) const {
  std::vector<std::uint16_t> rank_of;
  rank_of.reserve(of_row.size());
  for (const std::uint16_t home : of_row)
    rank_of.push_back(static_cast<std::uint16_t>(RankOf(home, ranks)));
  return rank_of;
}

std::vector<std::uint16_t> RowHomes::RanksOfRows(const GraphSnapshot& graph,
                                                 const ArrayEntry& array,
                                                 std::uint32_t ranks) const {
  std::vector<std::uint16_t> rank_of = RanksOfRows(ranks);
  const auto delta = DeltaRows::Of(graph.Snapshot(), array);
  if (delta == nullptr) return rank_of;
  for (std::size_t row = 0; row < rank_of.size(); ++row)
    if (delta->Holds(static_cast<Row>(row))) rank_of[row] = kEveryRank;
  return rank_of;
}

Result<std::vector<std::vector<VertexId>>> RowHomes::Divide(
    const GraphSnapshot& graph, std::span<const VertexId> vertices) const {
  std::vector<std::vector<VertexId>> of_home(count);
  for (const VertexId vertex : vertices) {
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph.RowOf(vertex));
    of_home[of_row[static_cast<std::size_t>(row)]].push_back(vertex);
  }
  return of_home;
}

Status CheckRanks(std::uint32_t ranks, const RowHomes& homes) {
  if (ranks >= 1 && ranks <= homes.count) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("{} ranks: the store has {} {}, and a rank needs at least one; create a store "
                  "with more of them by `partitions`",
                  ranks, homes.count, homes.by == "partitions" ? "partitions" : "homes"));
}

Result<RowHomes> CountHomes(const Manifest& manifest) {
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<StoredHomes> stored, FindHomes(manifest));
  return RowHomes{.count = stored ? stored->homes : manifest.info.partitions,
                  .by = stored ? std::string(HomeRuleName(stored->rule)) : "partitions",
                  .of_row = {}};
}

Result<RowHomes> RowHomesOf(const GraphSnapshot& graph) {
  RHIZOME_ASSIGN_OR_RETURN(const std::optional<StoredHomes> stored,
                           FindHomes(graph.store().manifest()));
  RHIZOME_ASSIGN_OR_RETURN(RowHomes homes, CountHomes(graph.store().manifest()));
  if (!stored) homes.count = graph.partition_count();  // in the state of the graph
  const std::uint64_t rows = graph.vertex_count();
  homes.of_row.resize(rows);
  for (std::uint64_t row = 0; row < rows; ++row)
    homes.of_row[row] = static_cast<std::uint16_t>(row % homes.count);
  if (!stored) {
    const VertexOrder& order = graph.order();
    for (Row row = 0; row < static_cast<Row>(order.size()); ++row)
      homes.of_row[static_cast<std::size_t>(row)] = static_cast<std::uint16_t>(order.OwnerOf(row));
    return homes;
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto array, OpenLabelArray(graph, std::string(kHomeArray),
                                                            {DataType::kInt32}, 1, "homes"));
  const auto use = [&](std::uint64_t first, std::span<const std::byte> bytes) {
    for (std::size_t i = 0; i < bytes.size() / sizeof(std::int32_t); ++i) {
      std::int32_t home = kNoHome;
      std::memcpy(&home, bytes.data() + i * sizeof home, sizeof home);
      if (home == kNoHome || first + i >= rows) continue;
      if (!stored->Allows(home)) {
        return Status::Corruption(
            fmt::format("array '{}': row {} has home {}, but there are {} homes", kHomeArray,
                        first + i, home, stored->homes));
      }
      homes.of_row[first + i] = static_cast<std::uint16_t>(home);
    }
    return Status::Ok();
  };
  RHIZOME_RETURN_IF_ERROR(ForEachLabelChunk(*array, graph, use, [](std::uint64_t) {}));
  return homes;
}

}  // namespace internal
}  // namespace rhizome
