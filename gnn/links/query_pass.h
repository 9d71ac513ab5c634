#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gnn/links/candidates.h"
#include "gnn/links/few_rows.h"
#include "gnn/links/link_decoder.h"
#include "gnn/links/link_table.h"
#include "index/base/parallel.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// An edge with an open end.
struct LinkQuery {
  Row given = 0;                 ///< row of the end that it has
  TypeId type = 0;               ///< edge type
  EdgeEnd open = EdgeEnd::kDst;  ///< the end that candidates take
  std::uint32_t candidates = 0;  ///< a set of Candidates
};

/// A row that is no candidate of a query of a group.
struct ExcludedRow {
  Row row = 0;
  std::uint32_t lane = 0;  ///< index of the query in its group
  friend auto operator<=>(const ExcludedRow&, const ExcludedRow&) = default;
};

/// Queries of one set of candidates that are scored together, up to kGroupQueries.
struct LinkGroup {
  std::vector<std::uint32_t> queries;  ///< their numbers in the block
  std::uint32_t candidates = 0;
  std::vector<ExcludedRow> excluded = {};  ///< sorted by ScanTable
  std::unique_ptr<QueryGroup> scorer = {};
};

/// A multiple of kPanel. The packed queries of a group fit in the L2 cache.
inline constexpr std::size_t kGroupQueries = 64;

/// Divides queries into groups, in order within a set of candidates. `rows` has all given rows.
std::vector<LinkGroup> GroupQueries(const LinkDecoder& decoder, const GatheredRows& rows,
                                    std::span<const LinkQuery> queries);

/// Returns the score of each query of the group with the row of `truth[lane]`, from the same kernel
/// as the scores of a pass: equal rows have equal scores.
std::vector<float> ScoresOfRows(const LinkGroup& group, const GatheredRows& rows,
                                std::span<const Row> truth);

/// Scores of candidates: scores[i * kGroupQueries + lane] is the score of row first + places[i] in
/// the query `lane` of the group. Excluded rows have the score NaN, others never.
struct ScoredTile {
  Row first = 0;
  std::span<const std::uint32_t> places;
  std::span<const float> scores;
};

/// Receives scores.
class TileSink {
 public:
  virtual ~TileSink() = default;

  /// Threads: concurrently for different groups. The tiles of a group come in ascending order of
  /// rows.
  virtual void Take(std::size_t group, const ScoredTile& tile) = 0;
};

struct ScanStats {
  std::uint64_t chunks = 0;
  std::uint64_t bytes_read = 0;
  double read_seconds = 0;  ///< time spent waiting for rows
};

/// Reads the chunks of the table that have candidates of any group, once and in order, and scores
/// their rows with every group: groups in parallel, on the threads of `arena`.
/// Memory: ScanBytes, and a tile for each thread.
/// Errors: kInvalidArgument, a score is not a number, naming the vertices; kCorruption; kIoError;
/// kOutOfMemory; kInterrupted.
Result<ScanStats> ScanTable(const LinkTable& table, const Candidates& candidates,
                            std::span<const LinkQuery> queries, std::span<LinkGroup> groups,
                            TileSink& sink, TaskArena& arena, const JobControl& control);

/// Returns the memory of a scan without the groups.
std::uint64_t ScanBytes(const LinkTable& table, std::uint32_t threads);

/// Returns the memory of a query in a block: its given row and another row, stored and decoded, the
/// packed query, and its share of the lists.
std::uint64_t QueryBytes(const LinkTable& table);

}  // namespace internal
}  // namespace rhizome
