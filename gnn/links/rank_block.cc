#include "gnn/links/rank_block.h"

#include <algorithm>
#include <array>
#include <limits>

#include "index/delta/graph_parts.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Counts, for each query of the groups, the candidates that are better than the truth or equal.
class RankSink final : public TileSink {
 public:
  explicit RankSink(std::size_t groups) : counts_(groups) {}

  void SetTruth(std::size_t group, std::span<const float> scores) {
    std::copy(scores.begin(), scores.end(), counts_[group].truth.begin());
  }
  LinkCounts CountsOf(std::size_t group, std::size_t lane) const {
    return {counts_[group].better[lane], counts_[group].equal[lane]};
  }

  void Take(std::size_t group, const ScoredTile& tile) override {
    GroupCounts& counts = counts_[group];
    std::array<std::uint32_t, kGroupQueries> better{};
    std::array<std::uint32_t, kGroupQueries> equal{};
    const float* score = tile.scores.data();
    for (std::size_t i = 0; i < tile.places.size(); ++i, score += kGroupQueries) {
      for (std::size_t lane = 0; lane < kGroupQueries; ++lane) {
        better[lane] += static_cast<std::uint32_t>(score[lane] > counts.truth[lane]);
        equal[lane] += static_cast<std::uint32_t>(score[lane] == counts.truth[lane]);
      }
    }
    for (std::size_t lane = 0; lane < kGroupQueries; ++lane) {
      counts.better[lane] += better[lane];
      counts.equal[lane] += equal[lane];
    }
  }

 private:
  struct GroupCounts {
    GroupCounts() { truth.fill(std::numeric_limits<float>::quiet_NaN()); }
    std::array<float, kGroupQueries> truth;
    std::array<std::uint64_t, kGroupQueries> better{};
    std::array<std::uint64_t, kGroupQueries> equal{};
  };
  std::vector<GroupCounts> counts_;
};

}  // namespace

std::vector<Row> SortedRows(std::vector<Row> rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

Status RankBlock::Add(const VertexPair& edge) {
  RHIZOME_RETURN_IF_ERROR(AddQuery(edge.src, edge.dst, edge.type, EdgeEnd::kDst));
  return AddQuery(edge.dst, edge.src, edge.type, EdgeEnd::kSrc);
}

Status RankBlock::AddQuery(VertexId given, VertexId truth, TypeId type, EdgeEnd open) {
  const auto parts = table_.graph->parts();
  truth_.push_back(parts->RowOf(truth));
  queries_.push_back({.given = parts->RowOf(given),
                      .type = type,
                      .open = open,
                      .candidates = candidates_.SetOf(truth_.back())});
  excluded_.push_back(truth_.back());
  RHIZOME_RETURN_IF_ERROR(known_.AppendEnds(given, type, open, excluded_));
  list_ends_.push_back(excluded_.size());
  return Status::Ok();
}

// (1) Reads the rows of all ends; (2) forms groups of queries, each with its excluded rows; (3)
// scores the true ends; (4) counts better and equal candidates in one pass over the table.
Result<std::vector<LinkCounts>> RankBlock::Rank(TaskArena& arena, const JobControl& control,
                                                ScanStats& stats) {
  std::vector<Row> ends = truth_;
  for (const LinkQuery& query : queries_) ends.push_back(query.given);
  RHIZOME_ASSIGN_OR_RETURN(const GatheredRows rows,
                           GatheredRows::Read(table_, SortedRows(std::move(ends)), control));
  std::vector<LinkGroup> groups = GroupQueries(decoder_, rows, queries_);
  RankSink sink(groups.size());
  std::vector<Row> truth;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    truth.clear();
    for (std::uint32_t lane = 0; lane < groups[g].queries.size(); ++lane) {
      const std::uint32_t query = groups[g].queries[lane];
      truth.push_back(truth_[query]);
      for (std::size_t i = query == 0 ? 0 : list_ends_[query - 1]; i < list_ends_[query]; ++i)
        groups[g].excluded.push_back({.row = excluded_[i], .lane = lane});
    }
    sink.SetTruth(g, ScoresOfRows(groups[g], rows, truth));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ScanStats scanned,
                           ScanTable(table_, candidates_, queries_, groups, sink, arena, control));
  stats.chunks += scanned.chunks;
  stats.bytes_read += scanned.bytes_read;
  stats.read_seconds += scanned.read_seconds;
  std::vector<LinkCounts> counts(queries_.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t lane = 0; lane < groups[g].queries.size(); ++lane)
      counts[groups[g].queries[lane]] = sink.CountsOf(g, lane);
  queries_.clear();
  truth_.clear();
  list_ends_.clear();
  excluded_.clear();
  return counts;
}

}  // namespace internal
}  // namespace rhizome
