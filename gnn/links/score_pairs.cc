#include "gnn/links/score_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>

#include "cache/blocks/chunk_reader.h"
#include "cache/blocks/pair_schedule.h"
#include "gnn/links/link_scorer.h"
#include "index/base/parallel.h"
#include "index/delta/graph_parts.h"
#include "index/graph/delta_rows.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_reader.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Memory for each pair of a batch: itself, its placed copy, its score, and its part of rows and
/// cells.
constexpr std::uint64_t kPairBytes = 160;
constexpr std::uint64_t kMinMemory = std::uint64_t{8} << 20;
constexpr std::uint64_t kStagingBytes = std::uint64_t{1} << 20;

/// Number of pairs that a thread scores at a time.
constexpr std::size_t kTilePairs = 512;

/// Single rows are read if they are fewer, by this factor, than the rows of all chunks that would
/// be read.
constexpr std::uint64_t kRowAdvantage = 4;

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

/// Reads single rows of an array in layout row or in shards.
class FewRows {
 public:
  FewRows(const Store& store, const ChunkArray& array, const FeatureDecoder& decoder,
          const DeltaRows* delta)
      : store_(store), array_(array), decoder_(decoder), delta_(delta) {}

  bool possible() const {
    return array_.entry().layout == ArrayLayout::kRow || array_.entry().inner_rows != 0;
  }

  /// Reads row rows[i] to out[i * dim, (i + 1) * dim); `rows` ascend. Returns the bytes read.
  Result<std::uint64_t> Read(std::span<const Row> rows, std::span<float> out) {
    const std::size_t row_bytes = decoder_.stored_row_bytes();
    stored_.resize(rows.size() * row_bytes);
    std::vector<RowTarget> in_files;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::span<std::byte> row = std::span(stored_).subspan(i * row_bytes, row_bytes);
      if (delta_ != nullptr && delta_->Holds(rows[i]))
        RHIZOME_RETURN_IF_ERROR(delta_->Read(rows[i], row));
      else
        in_files.push_back({rows[i], row.data()});
    }
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t bytes, array_.entry().layout == ArrayLayout::kRow
                                                            ? ReadSingle(in_files)
                                                            : ReadShards(in_files));
    decoder_.Decode(stored_, out);
    return bytes;
  }

 private:
  Result<std::uint64_t> ReadSingle(std::span<RowTarget> targets) {
    if (reader_ == nullptr) {
      RHIZOME_ASSIGN_OR_RETURN(const auto sidecar,
                               store_.OpenArray(SidecarName(array_.entry().name)));
      RHIZOME_ASSIGN_OR_RETURN(
          reader_, RowReader::Open(array_, *sidecar, {.io = {}, .staging_bytes = kStagingBytes}));
    }
    const std::uint64_t before = reader_->stats().read_bytes;
    RHIZOME_RETURN_IF_ERROR(reader_->Read(targets));
    return reader_->stats().read_bytes - before;
  }

  // Reads all wanted rows of an inner chunk at once, because it is decoded as a whole anyway.
  Result<std::uint64_t> ReadShards(std::span<const RowTarget> targets) {
    const ArrayEntry& entry = array_.entry();
    const std::uint64_t row_bytes = entry.row_bytes();
    std::uint64_t bytes = 0;
    const auto inner_of = [&](std::size_t i) {
      return static_cast<std::uint64_t>(targets[i].row) / entry.inner_rows;
    };
    for (std::size_t i = 0; i < targets.size();) {
      std::size_t end = i + 1;
      while (end < targets.size() && inner_of(end) == inner_of(i)) ++end;
      const auto first = static_cast<std::uint64_t>(targets[i].row);
      const std::uint64_t count = static_cast<std::uint64_t>(targets[end - 1].row) - first + 1;
      run_.resize(count * row_bytes);
      RHIZOME_RETURN_IF_ERROR(array_.ReadRows(first, count, run_));
      bytes += run_.size();
      for (; i < end; ++i) {
        const std::uint64_t at = static_cast<std::uint64_t>(targets[i].row) - first;
        std::memcpy(targets[i].out, run_.data() + at * row_bytes, row_bytes);
      }
    }
    return bytes;
  }

  const Store& store_;
  const ChunkArray& array_;
  const FeatureDecoder& decoder_;
  const DeltaRows* const delta_;
  std::unique_ptr<RowReader> reader_;  // opened at the first use
  std::vector<std::byte> stored_;
  std::vector<std::byte> run_;
};

/// Scores all pairs of a source. For each batch:
///   1. checks the pairs and looks up their rows;
///   2. sorts the pairs by chunks (PairSchedule);
///   3. reads either the few rows that the batch needs, or all their chunks through a Belady cache;
///   4. scores the pairs of each cell on all threads;
///   5. passes the scores to the sink, in the order of the source.
/// Ownership: borrows its arguments.
class ScoreRun {
 public:
  ScoreRun(const GraphSnapshot& graph, const ChunkArray& array, const FeatureDecoder& decoder,
           const LinkScorer& scorer, std::shared_ptr<const DeltaRows> delta, const Budget& budget,
           std::uint32_t threads)
      : graph_(graph),
        array_(array),
        decoder_(decoder),
        scorer_(scorer),
        delta_(std::move(delta)),
        budget_(budget),
        few_rows_(graph.store(), array, decoder, delta_.get()),
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
    const auto parts = graph_.parts();
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(Check(pairs_[i]));
      placed_.push_back({.src = parts->RowOf(pairs_[i].src),
                         .dst = parts->RowOf(pairs_[i].dst),
                         .place = static_cast<std::uint32_t>(i)});
    }
    const ArrayEntry& entry = array_.entry();
    const std::uint64_t cached = budget_.cache_bytes / ChunkReader::DecodedBytes(entry);
    std::optional<PairSchedule> schedule;
    arena_.execute([&] {
      schedule.emplace(placed_, entry.chunk_rows, std::max<std::uint64_t>(cached, 2) - 1);
    });
    if (few_rows_.possible()) {
      const std::vector<Row> rows = DistinctRows();
      const std::uint64_t whole = schedule->distinct_chunks() * entry.chunk_rows;
      if (rows.size() <= budget_.rows && rows.size() * kRowAdvantage < whole)
        return ScoreByRows(rows);
    }
    return ScoreByChunks(*schedule, control);
  }

  Status Check(const VertexPair& pair) const {
    for (const VertexId vertex : {pair.src, pair.dst}) {
      if (vertex >= 0 && static_cast<std::uint64_t>(vertex) < graph_.vertex_count()) continue;
      return Status::InvalidArgument(fmt::format("there is no vertex with vertex id {}", vertex));
    }
    const std::optional<std::uint64_t> types = scorer_.types();
    if (!types || pair.type < *types) return Status::Ok();
    return Status::InvalidArgument(fmt::format(
        "a pair has type {}, but the decoder has relations of {} types", pair.type, *types));
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
    const std::uint64_t dim = array_.entry().dim;
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
        array_, decoder_, ChunkReader::OneByOne(schedule.Chunks()),
        {.policy = PolicyKind::kBelady, .cache_bytes = budget_.cache_bytes, .ahead = kReadAhead},
        control, delta_);
    DecodedChunk dst;
    const auto dim = static_cast<Row>(array_.entry().dim);
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
          rows[i] = {row_at(pair.src), row_at(pair.dst), pairs_[pair.place].type};
        }
        scorer_.Score(std::span(rows).first(count), std::span(scores).first(count));
        for (std::size_t i = 0; i < count; ++i) scores_[placed_[first + i].place] = scores[i];
      });
    });
    report_.score_seconds += watch.seconds();
  }

  const GraphSnapshot& graph_;
  const ChunkArray& array_;
  const FeatureDecoder& decoder_;
  const LinkScorer& scorer_;
  const std::shared_ptr<const DeltaRows> delta_;
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
  const std::shared_ptr<const GraphSnapshot> fixed = graph.Snapshot();
  RHIZOME_ASSIGN_OR_RETURN(const auto array, fixed->store().OpenArray(options.array));
  const ArrayEntry& entry = array->entry();
  if (IsOfEdges(entry) || entry.rows != fixed->info().vertices) {
    return Fail(Status::InvalidArgument(
        fmt::format("array {} has {} rows, but there are {} vertices; give an array with one row "
                    "for each vertex",
                    ShownName(entry.name), entry.rows, fixed->info().vertices)));
  }
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(entry, /*normalize=*/false));
  LoadedTensorFile weights;
  if (options.scorer != LinkScorerKind::kDot) {
    auto loaded = LoadSafetensors(FileSystem::Posix(), options.decoder);
    if (!loaded) return Fail(OfNamedFile(loaded.error(), options.decoder));
    weights = *std::move(loaded);
  }
  Result<LinkScorer> scorer = LinkScorer::Create(options.scorer, entry.dim, weights.file);
  if (!scorer)
    return Fail(OfNamedFile(scorer.error().WithContext(options.decoder.string()), options.decoder));
  RHIZOME_ASSIGN_OR_RETURN(const Budget budget, Divide(options.memory_bytes, entry));
  ScoreRun run(*fixed, *array, decoder, *scorer, DeltaRows::Of(fixed, entry), budget,
               options.threads);
  return run.Run(source, sink, control);
}

}  // namespace internal
}  // namespace rhizome
