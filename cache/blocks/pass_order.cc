#include "cache/blocks/pass_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "cache/blocks/block_plan.h"
#include "cache/layout/pass_cost.h"
#include "index/topology/rank_bitmap.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The rules that are counted in addition to the stored order. Each of them was best on some graph.
constexpr std::array<RowRule, 3> kCounted = {RowRule::kBlocks, RowRule::kReferences, RowRule::kBfs};

/// Laying out and counting one rule walks all lists several times. This takes about as long as
/// reading and decoding this many bytes of chunks per edge.
constexpr std::uint64_t kCountingBytesOfEdge = 200;

/// The lower bound (rows without the rest of their chunks) is never nearly reached, so an order
/// within this factor of it is good enough.
constexpr std::uint64_t kSlack = 2;

/// Memory of counting, in bytes: per edge in the lists, per edge in the blocks of each row, and per
/// row for numbers, orders and degrees.
constexpr std::uint64_t kListBytesOfEdge = 4;
constexpr std::uint64_t kLayOutBytesOfEdge = 4;
constexpr std::uint64_t kBytesOfRow = 64;

/// Returns the order that a rule assigns to rows that are all targets in stored order.
RowOrder Place(const PassLists& lists, RowRule rule, std::uint64_t block_rows) {
  const PassLayout layout =
      LayOut(lists, {.rows = rule, .targets = TargetOrder::kStored}, block_rows);
  std::vector<std::uint32_t> row_at(layout.position.size());
  for (std::size_t row = 0; row < row_at.size(); ++row) {
    row_at[layout.position[row]] = static_cast<std::uint32_t>(row);
  }
  const std::uint64_t rows = row_at.size();
  return {std::move(row_at), rows};
}

/// Chunks that a pass reads, and a lower bound on its bytes for any order of its rows.
struct PassReadCounts {
  std::uint64_t chunks = 0;
  std::uint64_t min_bytes = 0;
};

Result<PassReadCounts> CountPass(const PassReads& pass, const BlockReads& reads,
                                 std::uint64_t row_count) {
  const std::uint64_t chunks = ChunksOf(row_count, pass.planner.source_chunk_rows);
  // The bound assumes that the rows of every block are contiguous and that the cache holds some of
  // them.
  const std::uint64_t chunk_bytes = pass.source_chunk_bytes;
  const auto rows_bytes = static_cast<std::uint64_t>(
      static_cast<double>(reads.rows) / static_cast<double>(pass.planner.source_chunk_rows) *
      static_cast<double>(chunk_bytes));
  const std::uint64_t cached = reads.blocks * pass.cache_chunks() * chunk_bytes;
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t read, CountPassReads(pass, reads.trace, chunks));
  return PassReadCounts{
      .chunks = read,
      .min_bytes = std::max(chunks * chunk_bytes, rows_bytes - std::min(rows_bytes, cached))};
}

/// Traces the chunks of a pass's windows, cut as in BlockPlanner. `lists` must be the lists of all
/// rows.
class PassTrace {
 public:
  PassTrace(const PassLists& lists, const PassReads& pass, const RowOrder& targets,
            const RowOrder& source)
      : lists_(lists),
        pass_(pass),
        targets_(targets),
        source_(source),
        read_(lists.rows.size()),
        seen_in_(ChunksOf(lists.rows.size(), pass.planner.source_chunk_rows), 0) {}

  Result<PassReadCounts> Count() {
    const std::uint64_t rows = lists_.rows.size();
    const std::vector<bool> none_done(ChunksOf(rows, pass_.output_chunk_rows), false);
    const BlockEdges edges{.most = pass_.block_edges,
                           .of =
                               [&](std::uint64_t place) {
                                 return std::uint64_t{ReadsOf(static_cast<Row>(place)).size()};
                               },
                           .most_groups = pass_.block_groups,
                           .relations = GroupsOfTarget(pass_.planner)};
    for (const Block& block :
         MakeBlocks(rows, pass_.output_chunk_rows, pass_.block_rows, none_done, edges)) {
      AddBlock(block);
    }
    return CountPass(pass_, reads_, rows);
  }

 private:
  std::uint64_t RowAt(Row place) const {
    return static_cast<std::uint64_t>(targets_.RowAt(static_cast<std::uint64_t>(place)));
  }
  std::span<const LocalRow> ReadsOf(Row place) const { return lists_.ReadsOf(RowAt(place)); }

  void AddBlock(const Block& block) {
    for (Row place = block.begin; place < block.end; ++place) {
      for (const LocalRow neighbor : ReadsOf(place)) read_.Set(neighbor);
    }
    std::uint64_t count = 0;
    read_.ForEach([&](std::uint64_t) { ++count; });
    for (Row place = block.begin; place < block.end; ++place) {
      if (!read_.Test(RowAt(place))) ++count;
    }
    reads_.rows += count;
    ++reads_.blocks;
    const bool one_window = !pass_.planner.edge_relations && count <= pass_.planner.stage_rows;
    const OwnWindows own = one_window ? OwnWindows{false, false} : pass_.planner.own;
    if (own.before) AddOwn(block);
    for (Row place = block.begin; one_window && place < block.end; ++place) {
      read_.Set(RowAt(place));
    }
    read_.ForEach([&](std::uint64_t row) {
      AddRow(row);
      read_.Clear(row);
    });
    EndWindow();
    if (own.after) AddOwn(block);
  }

  void AddOwn(const Block& block) {
    for (Row place = block.begin; place < block.end; ++place) AddRow(RowAt(place));
    EndWindow();
  }

  void AddRow(std::uint64_t row) {
    if (in_window_ == pass_.planner.stage_rows) EndWindow();
    ++in_window_;
    const std::uint64_t chunk =
        source_.PlaceOf(static_cast<Row>(row)) / pass_.planner.source_chunk_rows;
    if (seen_in_[chunk] == reads_.trace.steps() + 1) return;
    seen_in_[chunk] = reads_.trace.steps() + 1;
    step_.push_back(static_cast<CacheKey>(chunk));
  }

  void EndWindow() {
    if (in_window_ == 0) return;
    std::sort(step_.begin(), step_.end());
    reads_.trace.AddStep(step_);
    step_.clear();
    in_window_ = 0;
  }

  const PassLists& lists_;
  const PassReads& pass_;
  const RowOrder& targets_;
  const RowOrder& source_;
  RankBitmap read_;
  std::vector<std::uint64_t> seen_in_;  // last window that read a chunk, counted from 1
  std::vector<CacheKey> step_;
  std::uint64_t in_window_ = 0;  // number of rows in the current window
  BlockReads reads_;
};

OrderCost CostOf(RowRule rule, const OrderOptions& options, const PassReadCounts& maker,
                 const PassReadCounts& reader) {
  return {.rule = rule,
          .maker_reads = maker.chunks,
          .reader_reads = reader.chunks,
          .bytes = maker.chunks * options.maker.source_chunk_bytes +
                   reader.chunks * options.reader.source_chunk_bytes,
          .min_bytes = maker.min_bytes + reader.min_bytes};
}

/// The lists of both passes, which are the same if all neighbours are used.
class Counting {
 public:
  explicit Counting(const OrderOptions& options) : options_(options) {}

  Status Draw(const GraphSnapshot& graph, const JobControl& control) {
    std::vector<Row> targets(graph.vertex_count());
    std::iota(targets.begin(), targets.end(), Row{0});
    PassDrawOptions maker = options_.maker.planner.draw;
    PassDrawOptions reader = options_.reader.planner.draw;
    same_ = TakeSameLists(maker, reader);
    maker.weights = reader.weights = false;  // weights do not affect reads
    RHIZOME_ASSIGN_OR_RETURN(reader_, DrawPassLists(graph, targets, reader, control));
    if (same_) return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(maker_, DrawPassLists(graph, targets, maker, control));
    return Status::Ok();
  }

  const PassLists& reader() const { return reader_; }

  Result<OrderCost> Count(RowRule rule, const RowOrder& order) const {
    const RowOrder stored;
    const RowOrder& source = options_.maker.planner.source_order == nullptr
                                 ? stored
                                 : *options_.maker.planner.source_order;
    RHIZOME_ASSIGN_OR_RETURN(
        const PassReadCounts maker,
        PassTrace(same_ ? reader_ : maker_, options_.maker, order, source).Count());
    RHIZOME_ASSIGN_OR_RETURN(const PassReadCounts reader,
                             PassTrace(reader_, options_.reader, stored, order).Count());
    return CostOf(rule, options_, maker, reader);
  }

 private:
  const OrderOptions& options_;
  PassLists reader_;
  PassLists maker_;
  bool same_ = false;
};

}  // namespace

std::vector<Block> BlocksOfPass(const PassReads& pass, std::uint64_t rows,
                                const std::vector<bool>& done) {
  const RowOrder* const order = pass.planner.target_order;
  const BlockEdges edges{.most = pass.block_edges,
                         .of =
                             [&](std::uint64_t place) {
                               return EdgesOfRow(pass.planner, order == nullptr
                                                                   ? static_cast<Row>(place)
                                                                   : order->RowAt(place));
                             },
                         .most_groups = pass.block_groups,
                         .relations = GroupsOfTarget(pass.planner)};
  return MakeBlocks(rows, pass.output_chunk_rows, pass.block_rows, done, edges);
}

Result<std::uint64_t> CountPassReads(const PassReads& pass, Trace blocks, std::uint64_t chunks) {
  return CountReads(ChunkReader::PolicySteps(std::move(blocks), pass.reader), chunks,
                    pass.reader.policy, pass.cache_chunks());
}

Result<BlockReads> PlanPassReads(const GraphSnapshot& graph, const PassReads& pass,
                                 std::uint64_t rows, const JobControl& control) {
  const std::vector<bool> none_done(ChunksOf(rows, pass.output_chunk_rows), false);
  return PlanReads(graph, pass.planner, BlocksOfPass(pass, rows, none_done), control);
}

std::string RowRuleName(RowRule rule) {
  const std::string name = LayoutName({.rows = rule, .targets = TargetOrder::kStored});
  return name.substr(0, name.find('/'));
}

// Chooses an order: (1) keeps the stored order if no other can help; (2) counts the stored order
// exactly, and keeps it if its reads are near the lower bound; (3) draws the lists of both passes,
// if memory allows; (4) counts one rule after another while each is better than the last and not
// yet near the bound. A rule that the caller specifies is laid out without counting.
Result<OrderChoice> ChooseOrder(const GraphSnapshot& graph, const OrderOptions& options,
                                const JobControl& control) {
  OrderChoice choice;
  if (options.rule == RowRule::kStored) return choice;
  const std::uint64_t rows = graph.vertex_count();
  const auto fits = [&](const PassReads& pass) {
    return ChunksOf(rows, pass.planner.source_chunk_rows) <= pass.cache_chunks();
  };
  // If the cache holds both arrays, every chunk is read once in any order.
  if (!options.rule && fits(options.maker) && fits(options.reader)) return choice;
  if (rows >= std::numeric_limits<LocalRow>::max()) return choice;
  // Windows of a block follow the stored order; any other order scatters their chunks.
  if (!options.rule &&
      std::min(options.reader.block_rows, rows) > options.reader.planner.stage_rows)
    return choice;
  RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "layout", .done = 0, .total = 1}));
  const std::uint64_t edges = std::max(MostEdgesOf(options.maker.planner.draw, graph),
                                       MostEdgesOf(options.reader.planner.draw, graph));
  const auto is_enough = [&](std::uint64_t bytes) {
    return bytes < kSlack * choice.costs.front().min_bytes + edges * kCountingBytesOfEdge;
  };
  if (!options.rule) {
    RHIZOME_ASSIGN_OR_RETURN(choice.maker, PlanPassReads(graph, options.maker, rows, control));
    RHIZOME_ASSIGN_OR_RETURN(choice.reader, PlanPassReads(graph, options.reader, rows, control));
    RHIZOME_ASSIGN_OR_RETURN(const PassReadCounts maker,
                             CountPass(options.maker, *choice.maker, rows));
    RHIZOME_ASSIGN_OR_RETURN(const PassReadCounts reader,
                             CountPass(options.reader, *choice.reader, rows));
    choice.costs.push_back(CostOf(RowRule::kStored, options, maker, reader));
    if (is_enough(choice.costs.front().bytes)) return choice;
  }
  const bool same = TakeSameLists(options.maker.planner.draw, options.reader.planner.draw);
  const std::uint64_t needed =
      edges * (kListBytesOfEdge * (same ? 1 : 2) + kLayOutBytesOfEdge) + rows * kBytesOfRow;
  if (needed > options.memory_bytes) {
    if (!options.rule) return choice;
    return Fail(Status::OutOfMemory(
        fmt::format("ordering rows by {} needs {} MiB of memory, but {} MiB are left; raise "
                    "`memory_bytes`, or use `layout=stored`",
                    RowRuleName(*options.rule), (needed >> 20) + 1, options.memory_bytes >> 20)));
  }
  Counting counting(options);
  RHIZOME_RETURN_IF_ERROR(counting.Draw(graph, control));
  const std::uint64_t block_rows = RoundUpToTiles(options.reader.block_rows);
  if (options.rule) {
    choice.rule = *options.rule;
    choice.order = Place(counting.reader(), choice.rule, block_rows);
    return choice;
  }
  std::uint64_t best = choice.costs.front().bytes;
  for (const RowRule rule : kCounted) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    if (is_enough(best)) break;
    RowOrder order = Place(counting.reader(), rule, block_rows);
    RHIZOME_ASSIGN_OR_RETURN(const OrderCost cost, counting.Count(rule, order));
    choice.costs.push_back(cost);
    if (choice.costs.back().bytes >= best) break;
    best = choice.costs.back().bytes;
    choice.rule = rule;
    choice.order = std::move(order);
    choice.maker.reset();
    choice.reader.reset();
  }
  return choice;
}

}  // namespace internal
}  // namespace rhizome
