#include "gnn/links/score_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "cache/blocks/chunk_reader.h"
#include "cache/blocks/pair_schedule.h"
#include "gnn/links/few_rows.h"
#include "gnn/links/link_decoder.h"
#include "gnn/links/link_table.h"
#include "index/base/parallel.h"
#include "index/delta/graph_parts.h"
#include "storage/array/array_versions.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Memory for each pair of a batch: itself, its placed copy, its score, and its part of rows and
/// cells.
constexpr std::uint64_t kPairBytes = 160;
constexpr std::uint64_t kMinMemory = std::uint64_t{8} << 20;

/// Number of pairs that a thread scores at a time.
constexpr std::size_t kTilePairs = 512;

/// Number of chunks that are read ahead.
constexpr std::size_t kReadAhead = 2;

/// The division of the memory limit.
struct Budget {
  std::uint64_t pairs = 0;        // pairs of a batch
  std::uint64_t cache_bytes = 0;  // for decoded chunks
  std::uint64_t rows = 0;         // limit of the rows of a batch that reads single rows
};

Result<Budget> Divide(std::uint64_t memory_bytes, const ArrayEntry& entry) {
  const std::uint64_t chunk = ChunkReader::DecodedBytes(entry);
  const std::uint64_t need = std::max(kMinMemory, (kReadAhead + 6) * chunk);
  if (memory_bytes < need) {
    return Fail(
        Status::OutOfMemory(fmt::format("{} bytes are too few to score pairs of array {}, whose "
                                        "chunks have {} bytes; give at least {}",
                                        memory_bytes, ShownName(entry.name), chunk, need)));
  }
  const std::uint64_t rest = memory_bytes - memory_bytes / 4;
  return Budget{.pairs = std::min<std::uint64_t>(memory_bytes / 4 / kPairBytes, UINT32_MAX),
                .cache_bytes = rest - (kReadAhead + 3) * chunk,
                .rows = rest / 2 / (entry.dim * sizeof(float) + entry.row_bytes() + 16)};
}

/// Scores all pairs of a source. For each batch:
///   1. checks the pairs and looks up their rows;
///   2. sorts the pairs by chunks (PairSchedule);
///   3. reads either the few rows that the batch needs, or all their chunks through a Belady cache;
///   4. scores the pairs of each cell on all threads;
///   5. passes the scores to the sink, in the order of the source.
/// Ownership: borrows its arguments.
class ScoreRun {
 public:
  ScoreRun(const LinkTable& table, const LinkDecoder& decoder, const Budget& budget,
           std::uint32_t threads)
      : table_(table),
        decoder_(decoder),
        budget_(budget),
        few_rows_(table),
        arena_(static_cast<int>(std::clamp<std::uint32_t>(threads, 1, 1024))) {}

  Result<LinkScoreReport> Run(const PairSource& source, const ScoreSink& sink,
                              const JobControl& control) {
    for (bool more = true; more;) {
      RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "scoring", .done = report_.pairs}));
      pairs_.resize(budget_.pairs);
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, source(pairs_));
      more = count == pairs_.size();
      pairs_.resize(count);
      if (count == 0) break;
      RHIZOME_RETURN_IF_ERROR(ScoreBatch(control));
      RHIZOME_RETURN_IF_ERROR(sink(pairs_, scores_));
      report_.pairs += count;
      ++report_.batches;
    }
    return report_;
  }

 private:
  Status ScoreBatch(const JobControl& control) {
    placed_.clear();
    scores_.assign(pairs_.size(), 0);
    const auto parts = table_.graph->parts();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(Check(pairs_[i]));
      placed_.push_back({.src = parts->RowOf(pairs_[i].src),
                         .dst = parts->RowOf(pairs_[i].dst),
                         .place = static_cast<std::uint32_t>(i)});
    }
    const ArrayEntry& entry = table_.entry();
    const std::uint64_t cached = budget_.cache_bytes / ChunkReader::DecodedBytes(entry);
    std::optional<PairSchedule> schedule;
    arena_.execute([&] {
      schedule.emplace(placed_, entry.chunk_rows, std::max<std::uint64_t>(cached, 2) - 1);
    });
    if (few_rows_.possible()) {
      const std::vector<Row> rows = DistinctRows();
      if (rows.size() <= budget_.rows && few_rows_.better(rows.size(), schedule->distinct_chunks()))
        return ScoreByRows(rows);
    }
    return ScoreByChunks(*schedule, control);
  }

  Status Check(const VertexPair& pair) const {
    for (const VertexId vertex : {pair.src, pair.dst}) {
      if (vertex >= 0 && static_cast<std::uint64_t>(vertex) < table_.rows()) continue;
      return Status::InvalidArgument(fmt::format("there is no vertex with vertex id {}", vertex));
    }
    return decoder_.CheckType(pair.type);
  }

  std::vector<Row> DistinctRows() const {
    std::vector<Row> rows;
    rows.reserve(2 * placed_.size());
    for (const PlacedPair& pair : placed_) rows.insert(rows.end(), {pair.src, pair.dst});
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    return rows;
  }

  Status ScoreByRows(const std::vector<Row>& rows) {
    const Stopwatch watch;
    const std::uint64_t dim = table_.entry().dim;
    std::vector<float> values(rows.size() * dim);
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, few_rows_.Read(rows, values));
    report_.rows_read += rows.size();
    report_.bytes_read += bytes;
    report_.read_seconds += watch.seconds();
    ScoreRange(0, placed_.size(), [&](Row row) {
      const auto found = std::lower_bound(rows.begin(), rows.end(), row);
      return values.data() + static_cast<std::size_t>(found - rows.begin()) * dim;
    });
    return Status::Ok();
  }

  Status ScoreByChunks(const PairSchedule& schedule, const JobControl& control) {
    ChunkReader reader(
        *table_.array, table_.decoder, ChunkReader::OneByOne(schedule.Chunks()),
        {.policy = PolicyKind::kBelady, .cache_bytes = budget_.cache_bytes, .ahead = kReadAhead},
        control, table_.delta);
    DecodedChunk dst;
    const auto dim = static_cast<Row>(table_.entry().dim);
    for (std::size_t c = 0; c < schedule.cells().size(); ++c) {
      const PairCell& cell = schedule.cells()[c];
      const Stopwatch watch;
      if (c == 0 || schedule.cells()[c - 1].dst_chunk != cell.dst_chunk) {
        RHIZOME_ASSIGN_OR_RETURN(dst, reader.Next());
      }
      DecodedChunk src = dst;
      if (cell.src_chunk != cell.dst_chunk) {
        RHIZOME_ASSIGN_OR_RETURN(src, reader.Next());
      }
      report_.read_seconds += watch.seconds();
      ScoreRange(cell.begin, cell.end, [&](Row row) {
        const DecodedChunk& chunk =
            row >= src.first_row && row < src.first_row + static_cast<Row>(src.rows) ? src : dst;
        return chunk.values.get() + (row - chunk.first_row) * dim;
      });
    }
    const ChunkReaderStats stats = reader.Finish();
    report_.chunk_requests += stats.requests;
    report_.chunk_reads += stats.reads;
    report_.bytes_read += stats.bytes_read;
    return Status::Ok();
  }

  /// Scores placed pairs [begin, end), whose rows are at `row_at(row)`.
  template <typename RowAt>
  void ScoreRange(std::size_t begin, std::size_t end, const RowAt& row_at) {
    const Stopwatch watch;
    const std::size_t tiles = (end - begin + kTilePairs - 1) / kTilePairs;
    arena_.execute([&] {
      ParallelFor(tiles, [&](std::size_t tile) {
        const std::size_t first = begin + tile * kTilePairs;
        const std::size_t count = std::min(kTilePairs, end - first);
        std::array<PairRows, kTilePairs> rows;
        std::array<float, kTilePairs> scores{};
        for (std::size_t i = 0; i < count; ++i) {
          const PlacedPair& pair = placed_[first + i];
          rows[i] = decoder_.PairOf(row_at(pair.src), row_at(pair.dst), pairs_[pair.place].type);
        }
        decoder_.decoder().Score(std::span(rows).first(count), std::span(scores).first(count));
        for (std::size_t i = 0; i < count; ++i) scores_[placed_[first + i].place] = scores[i];
      });
    });
    report_.score_seconds += watch.seconds();
  }

  const LinkTable& table_;
  const LinkDecoder& decoder_;
  const Budget budget_;
  FewRows few_rows_;
  TaskArena arena_;
  std::vector<VertexPair> pairs_;
  std::vector<PlacedPair> placed_;
  std::vector<float> scores_;
  LinkScoreReport report_;
};

}  // namespace

Result<LinkScoreReport> ScorePairs(const GraphSnapshot& graph, const LinkScoreOptions& options,
                                   const PairSource& source, const ScoreSink& sink,
                                   const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const LinkTable table, LinkTable::Open(graph, options.array));
  RHIZOME_ASSIGN_OR_RETURN(const LinkDecoder decoder,
                           LinkDecoder::Load({.name = options.scorer, .path = options.decoder},
                                             table.dim(), table.graph->edge_types()));
  RHIZOME_ASSIGN_OR_RETURN(const Budget budget, Divide(options.memory_bytes, table.entry()));
  ScoreRun run(table, decoder, budget, options.threads);
  return run.Run(source, sink, control);
}

}  // namespace internal
}  // namespace rhizome
