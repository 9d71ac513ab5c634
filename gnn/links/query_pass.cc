#include "gnn/links/query_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "cache/blocks/chunk_reader.h"
#include "index/delta/graph_parts.h"
#include "storage/array/array_versions.h"
#include "storage/base/mutant.h"
#include "storage/base/stopwatch.h"

// ScanTable: for each chunk with candidates, (1) waits for its rows; (2) lists the candidates of
// each set; (3) runs the groups in parallel: a group scores its candidates in tiles, checks the
// scores, marks excluded rows and passes the tile to the sink; (4) reports a score that is not a
// number.

namespace rhizome {
inline namespace internal {
namespace {

/// Rows of a tile: the scores of a tile, and its rows, remain in the L2 cache.
constexpr std::size_t kTileRows = 128;

/// Number of chunks that are read ahead.
constexpr std::size_t kScanAhead = 1;

ChunkReaderOptions ScanOptions() { return {.ahead = kScanAhead}; }

/// A score that is not a number.
struct BadScore {
  Row row = 0;
  std::uint32_t query = 0;
};

/// A group in a scan.
struct ScannedGroup {
  LinkGroup* group = nullptr;
  std::size_t next_excluded = 0;
  std::optional<BadScore> bad = {};
};

/// Returns whether any of the scores is NaN. The sum of x - x is 0 or NaN, also for infinite x, so
/// infinite scores are searched for NaN, too.
bool MayHaveNan(std::span<const float> scores) {
  float sum = 0;
  for (const float x : scores) sum += x - x;
  return std::isnan(sum);
}

class TableScan {
 public:
  TableScan(const LinkTable& table, const Candidates& candidates, std::span<LinkGroup> groups,
            TileSink& sink)
      : table_(table), candidates_(candidates), sink_(sink), places_(candidates.sets()) {
    wanted_.resize(candidates.sets());
    for (LinkGroup& group : groups) {
      std::sort(group.excluded.begin(), group.excluded.end());
      groups_.push_back({.group = &group});
      wanted_[group.candidates] = true;
    }
  }

  bool Wants(std::uint64_t chunk) const {
    for (std::uint32_t set = 0; set < wanted_.size(); ++set)
      if (wanted_[set] && candidates_.InChunk(set, chunk)) return true;
    return false;
  }

  void Score(const DecodedChunk& chunk, TaskArena& arena) {
    for (std::uint32_t set = 0; set < wanted_.size(); ++set)
      if (wanted_[set]) candidates_.Places(set, chunk.first_row, chunk.rows, places_[set]);
    arena.execute(
        [&] { ParallelFor(groups_.size(), [&](std::size_t group) { ScoreGroup(group, chunk); }); });
  }

  const BadScore* bad() const {
    const BadScore* first = nullptr;
    for (const ScannedGroup& scanned : groups_) {
      if (scanned.bad && (first == nullptr || scanned.bad->row < first->row)) first = &*scanned.bad;
    }
    return first;
  }

 private:
  void ScoreGroup(std::size_t number, const DecodedChunk& chunk) {
    const std::vector<std::uint32_t>& places = places_[groups_[number].group->candidates];
    std::vector<float> scores(std::min(kTileRows, places.size()) * kGroupQueries);
    for (std::size_t first = 0; first < places.size(); first += kTileRows) {
      const auto tile =
          std::span(places).subspan(first, std::min(kTileRows, places.size() - first));
      ScoreTile(number, chunk, tile, std::span(scores).first(tile.size() * kGroupQueries));
    }
  }

  void ScoreTile(std::size_t number, const DecodedChunk& chunk,
                 std::span<const std::uint32_t> places, std::span<float> scores) {
    ScannedGroup& scanned = groups_[number];
    const std::size_t dim = table_.dim();
    const ProductRows rows{
        .x = chunk.values.get(), .stride = dim, .columns = dim, .place = places.data()};
    scanned.group->scorer->Score(rows, places.size(), scores.data(), kGroupQueries);
    if (MayHaveNan(scores)) NoteNan(scanned, chunk.first_row, places, scores);
    Exclude(scanned, chunk.first_row, places, scores);
    sink_.Take(number, {.first = chunk.first_row, .places = places, .scores = scores});
  }

  void NoteNan(ScannedGroup& scanned, Row first, std::span<const std::uint32_t> places,
               std::span<const float> scores) const {
    if (scanned.bad) return;
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (std::size_t lane = 0; lane < scanned.group->queries.size(); ++lane) {
        if (!std::isnan(scores[i * kGroupQueries + lane])) continue;
        scanned.bad = {.row = first + places[i], .query = scanned.group->queries[lane]};
        return;
      }
    }
  }

  static void Exclude(ScannedGroup& scanned, Row first, std::span<const std::uint32_t> places,
                      std::span<float> scores) {
    const std::vector<ExcludedRow>& excluded = scanned.group->excluded;
    const Row last = first + places.back();
    std::size_t i = 0;
    for (; scanned.next_excluded < excluded.size(); ++scanned.next_excluded) {
      const ExcludedRow& entry = excluded[scanned.next_excluded];
      if (entry.row > last) return;
      while (first + places[i] < entry.row) ++i;
      if (first + places[i] == entry.row)
        scores[i * kGroupQueries + entry.lane] = std::numeric_limits<float>::quiet_NaN();
    }
  }

  const LinkTable& table_;
  const Candidates& candidates_;
  TileSink& sink_;
  std::vector<bool> wanted_;                        // by set
  std::vector<std::vector<std::uint32_t>> places_;  // by set: candidates of the chunk
  std::vector<ScannedGroup> groups_;
};

Status NotANumber(const LinkTable& table, const LinkQuery& query, Row row) {
  const auto parts = table.graph->parts();
  return Status::InvalidArgument(fmt::format(
      "array {}: the score of vertex {} as {} of an edge with vertex {} is not a number; the row "
      "of one of them, or the decoder, has NaN or infinite values",
      ShownName(table.entry().name), table.graph->NameOf(parts->VertexAt(row)),
      query.open == EdgeEnd::kDst ? "destination" : "source",
      table.graph->NameOf(parts->VertexAt(query.given))));
}

}  // namespace

std::vector<LinkGroup> GroupQueries(const LinkDecoder& decoder, const GatheredRows& rows,
                                    std::span<const LinkQuery> queries) {
  std::map<std::uint32_t, std::size_t> unfinished;  // by set: its last group
  std::vector<LinkGroup> groups;
  for (std::uint32_t i = 0; i < queries.size(); ++i) {
    const std::uint32_t set = queries[i].candidates;
    const auto found = unfinished.find(set);
    if (found == unfinished.end() || groups[found->second].queries.size() == kGroupQueries) {
      unfinished[set] = groups.size();
      groups.push_back({.queries = {}, .candidates = set});
    }
    groups[unfinished[set]].queries.push_back(i);
  }
  std::vector<QueryRows> of_group;
  for (LinkGroup& group : groups) {
    of_group.clear();
    for (const std::uint32_t i : group.queries) {
      of_group.push_back(
          decoder.QueryOf(rows.At(queries[i].given), queries[i].type, queries[i].open));
    }
    group.scorer = decoder.decoder().Group(of_group);
  }
  return groups;
}

std::vector<float> ScoresOfRows(const LinkGroup& group, const GatheredRows& rows,
                                std::span<const Row> truth) {
  std::vector<float> scores(group.queries.size());
  std::vector<float> all(group.queries.size());
  for (std::size_t lane = 0; lane < scores.size(); ++lane) {
    const std::size_t dim = rows.dim();
    const ProductRows row{.x = rows.At(truth[lane]), .stride = dim, .columns = dim};
    group.scorer->Score(row, 1, all.data(), all.size());
    scores[lane] = RHIZOME_MUTANT("the true score is rounded")
                       ? std::nextafter(all[lane], std::numeric_limits<float>::infinity())
                       : all[lane];
  }
  return scores;
}

Result<ScanStats> ScanTable(const LinkTable& table, const Candidates& candidates,
                            std::span<const LinkQuery> queries, std::span<LinkGroup> groups,
                            TileSink& sink, TaskArena& arena, const JobControl& control) {
  TableScan scan(table, candidates, groups, sink);
  ChunkReader reader(*table.array, table.decoder, ScanOptions(), control, table.delta);
  ScanStats stats;
  for (std::uint64_t chunk = 0; chunk < table.chunks(); ++chunk) {
    if (!scan.Wants(chunk)) continue;
    reader.Append(chunk);
    ++stats.chunks;
  }
  for (std::uint64_t i = 0; i < stats.chunks; ++i) {
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(const DecodedChunk chunk, reader.Next());
    stats.read_seconds += watch.seconds();
    scan.Score(chunk, arena);
    if (const BadScore* const bad = scan.bad(); bad != nullptr)
      return Fail(NotANumber(table, queries[bad->query], bad->row));
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  }
  stats.bytes_read = reader.Finish().bytes_read;
  return stats;
}

std::uint64_t ScanBytes(const LinkTable& table, std::uint32_t threads) {
  const std::uint64_t tile = kTileRows * kGroupQueries * sizeof(float);
  return ChunkReader::WorkingBytes(table.entry(), ScanOptions()) + Candidates::Bytes(table) +
         threads * tile + table.entry().chunk_rows * sizeof(std::uint32_t);
}

std::uint64_t QueryBytes(const LinkTable& table) {
  const std::uint64_t row = table.dim() * sizeof(float) + table.decoder.stored_row_bytes();
  return 2 * row + 2 * table.dim() * sizeof(float) + 256;
}

}  // namespace internal
}  // namespace rhizome
