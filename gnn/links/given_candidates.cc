#include "gnn/links/given_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gnn/links/rank_block.h"
#include "index/delta/graph_parts.h"
#include "storage/array/array_versions.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMaxGivenEdges = std::uint64_t{1} << 14;

Status TooFewCandidates(const LinkEvaluationEdges::Given& given) {
  return Status::InvalidArgument(fmt::format(
      "there are fewer candidates than test edges; give {} candidates for each test edge",
      given.per_edge));
}

}  // namespace

GivenRanks::GivenRanks(const LinkTable& table, const LinkDecoder& decoder,
                       const LinkEvaluationEdges::Given& given, std::uint64_t bytes)
    : table_(table), decoder_(decoder), given_(given) {
  const std::uint64_t row = table.dim() * sizeof(float) + table.decoder.stored_row_bytes() + 32;
  const std::uint64_t rows =
      2 + (given.dst ? given.per_edge : 0) + (given.src ? given.per_edge : 0);
  block_edges_ = std::clamp<std::uint64_t>(bytes / (row * rows), 1, kMaxGivenEdges);
}

Result<std::vector<Row>> GivenRanks::Next(const VertexSource& source, std::size_t edges) const {
  if (!source) return std::vector<Row>();
  std::vector<VertexId> vertices(edges * given_.per_edge);
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, source(vertices));
  if (count < vertices.size()) return Fail(TooFewCandidates(given_));
  const auto parts = table_.graph->parts();
  std::vector<Row> rows;
  rows.reserve(vertices.size());
  for (const VertexId vertex : vertices) {
    if (vertex < 0 || static_cast<std::uint64_t>(vertex) >= table_.rows()) {
      return Fail(
          Status::InvalidArgument(fmt::format("there is no vertex with vertex id {}", vertex)));
    }
    rows.push_back(parts->RowOf(vertex));
  }
  return rows;
}

Result<GivenCounts> GivenRanks::Rank(std::span<const VertexPair> edges, TaskArena& arena,
                                     const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Row> dst, Next(given_.dst, edges.size()));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Row> src, Next(given_.src, edges.size()));
  const auto parts = table_.graph->parts();
  std::vector<Row> needed = dst;
  needed.insert(needed.end(), src.begin(), src.end());
  for (const VertexPair& edge : edges)
    needed.insert(needed.end(), {parts->RowOf(edge.src), parts->RowOf(edge.dst)});
  RHIZOME_ASSIGN_OR_RETURN(const GatheredRows rows,
                           GatheredRows::Read(table_, SortedRows(std::move(needed)), control));
  GivenCounts counts;
  RHIZOME_ASSIGN_OR_RETURN(counts.dst, Count(edges, dst, EdgeEnd::kDst, rows, arena));
  RHIZOME_ASSIGN_OR_RETURN(counts.src, Count(edges, src, EdgeEnd::kSrc, rows, arena));
  return counts;
}

Result<std::vector<LinkCounts>> GivenRanks::Count(std::span<const VertexPair> edges,
                                                  std::span<const Row> candidates, EdgeEnd open,
                                                  const GatheredRows& rows,
                                                  TaskArena& arena) const {
  std::vector<LinkCounts> counts(candidates.empty() ? 0 : edges.size());
  std::vector<std::int64_t> bad(counts.size(), -1);  // place of the first score that is no number
  const auto parts = table_.graph->parts();
  arena.execute([&] {
    ParallelFor(counts.size(), [&](std::size_t i) {
      const bool to_dst = open == EdgeEnd::kDst;
      const Row given = parts->RowOf(to_dst ? edges[i].src : edges[i].dst);
      const Row truth = parts->RowOf(to_dst ? edges[i].dst : edges[i].src);
      const std::array<QueryRows, 1> query = {
          decoder_.QueryOf(rows.At(given), edges[i].type, open)};
      std::vector<std::uint32_t> places = {rows.PlaceOf(truth)};
      for (const Row row : candidates.subspan(i * given_.per_edge, given_.per_edge))
        places.push_back(rows.PlaceOf(row));
      std::vector<float> scores(places.size());
      decoder_.decoder().Group(query)->Score(
          {.x = rows.values(), .stride = rows.dim(), .columns = rows.dim(), .place = places.data()},
          places.size(), scores.data(), 1);
      for (std::size_t k = 1; k < scores.size(); ++k) {
        counts[i].better += scores[k] > scores[0] ? 1 : 0;
        counts[i].equal += scores[k] == scores[0] ? 1 : 0;
      }
      for (std::size_t k = scores.size(); k-- > 0;)
        if (std::isnan(scores[k])) bad[i] = places[k];
    });
  });
  const auto first =
      std::find_if(bad.begin(), bad.end(), [](std::int64_t place) { return place >= 0; });
  if (first == bad.end()) return counts;
  const VertexPair& edge = edges[static_cast<std::size_t>(first - bad.begin())];
  const Row row = rows.rows()[static_cast<std::size_t>(*first)];
  return Fail(Status::InvalidArgument(fmt::format(
      "array {}: the score of vertex {} as {} of the edge from {} to {} is not a number; its row, "
      "another one, or the decoder, has NaN or infinite values",
      ShownName(table_.entry().name), table_.graph->NameOf(parts->VertexAt(row)),
      open == EdgeEnd::kDst ? "destination" : "source", table_.graph->NameOf(edge.src),
      table_.graph->NameOf(edge.dst))));
}

Status GivenRanks::Finish() const {
  std::array<VertexId, 1> one{};
  for (const VertexSource* const source : {&given_.dst, &given_.src}) {
    if (!*source) continue;
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, (*source)(one));
    if (count == 0) continue;
    return Status::InvalidArgument(fmt::format(
        "there are more candidates than test edges; give {} candidates for each", given_.per_edge));
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
