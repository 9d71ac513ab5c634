#include "rhizome/gnn/pass_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "rhizome/cache/pass_cost.h"
#include "rhizome/gnn/block_plan.h"
#include "rhizome/index/rank_bitmap.h"

namespace rhizome {
namespace {

/// What is laid out and counted beside the stored order: those that were best on some graph.
constexpr std::array<RowRule, 3> kCounted = {RowRule::kBlocks, RowRule::kReferences, RowRule::kBfs};

/// Laying one of them out and counting it walks all lists some times, which takes about as long as
/// to read and decode so many bytes of chunks for each edge.
constexpr std::uint64_t kCountingBytesOfEdge = 24;

/// Memory of counting: lists and the blocks that read each row; numbers, orders and degrees.
constexpr std::uint64_t kListBytesOfEdge = 4;
constexpr std::uint64_t kLayOutBytesOfEdge = 4;
constexpr std::uint64_t kBytesOfRow = 64;

/// The order that a rule gives rows, all of which are targets in stored order.
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

/// Chunks that a pass reads below the cache; as BlockPlanner cuts it. `lists` are those of all
/// rows.
std::uint64_t CountPass(const PassLists& lists, const PassReads& pass, const RowOrder& targets,
                        const RowOrder& source) {
  const std::uint64_t rows = lists.rows.size();
  const std::uint64_t chunks = ChunksOf(rows, pass.source_chunk_rows);
  RankBitmap read(rows);
  std::vector<std::uint64_t> seen_in(chunks, 0);  // the last window that read it, from 1
  std::vector<CacheKey> step;
  Trace trace;
  const auto end_window = [&] {
    std::sort(step.begin(), step.end());
    trace.AddStep(step);
    step.clear();
  };
  const std::vector<bool> none_done(ChunksOf(rows, pass.output_chunk_rows), false);
  const BlockEdges edges{.most = pass.block_edges, .of = [&](std::uint64_t place) {
                           return std::uint64_t{lists.ReadsOf(targets.RowAt(place)).size()};
                         }};
  for (const Block& block :
       MakeBlocks(rows, pass.output_chunk_rows, pass.block_rows, none_done, edges)) {
    for (Row place = block.begin; place < block.end; ++place) {
      const auto row = static_cast<std::size_t>(targets.RowAt(static_cast<std::uint64_t>(place)));
      read.Set(row);
      for (const LocalRow neighbor : lists.ReadsOf(row)) read.Set(neighbor);
    }
    std::uint64_t number = 0;
    read.ForEach([&](std::uint64_t row) {
      if (number > 0 && number % pass.stage_rows == 0) end_window();
      ++number;
      read.Clear(row);
      const std::uint64_t chunk = source.PlaceOf(static_cast<Row>(row)) / pass.source_chunk_rows;
      if (seen_in[chunk] == trace.steps() + 1) return;
      seen_in[chunk] = trace.steps() + 1;
      step.push_back(static_cast<CacheKey>(chunk));
    });
    end_window();
  }
  return CountReads(pass.cached_first ? trace : InArrivalOrder(trace), chunks, pass.policy,
                    pass.cache_chunks);
}

std::uint64_t ExpectedEdges(const Graph& graph, const PassDrawOptions& draw) {
  if (draw.no_edges) return 0;
  if (draw.fanout == kAllNeighbors) return graph.edge_count();
  return std::min(graph.edge_count(),
                  graph.vertex_count() * static_cast<std::uint64_t>(draw.fanout));
}

/// Lists of both passes; they are the same where all neighbours are taken.
class Counting {
 public:
  explicit Counting(const OrderOptions& options) : options_(options) {}

  Status Draw(const Graph& graph, const JobControl& control) {
    std::vector<Row> targets(graph.vertex_count());
    std::iota(targets.begin(), targets.end(), Row{0});
    RHIZOME_ASSIGN_OR_RETURN(reader_, DrawPassLists(graph, targets, options_.reader.draw, control));
    same_ = options_.reader.draw.no_edges || (options_.reader.draw.fanout == kAllNeighbors &&
                                              options_.maker.draw.fanout == kAllNeighbors);
    if (same_) return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(maker_, DrawPassLists(graph, targets, options_.maker.draw, control));
    return Status::Ok();
  }

  const PassLists& reader() const { return reader_; }

  OrderCost Count(RowRule rule, const RowOrder& order) const {
    const RowOrder stored;
    const RowOrder& source =
        options_.maker.source_order == nullptr ? stored : *options_.maker.source_order;
    OrderCost cost{.rule = rule};
    cost.maker_reads = CountPass(same_ ? reader_ : maker_, options_.maker, order, source);
    cost.reader_reads = CountPass(reader_, options_.reader, stored, order);
    cost.bytes = cost.maker_reads * options_.maker.source_chunk_bytes +
                 cost.reader_reads * options_.reader.source_chunk_bytes;
    return cost;
  }

 private:
  const OrderOptions& options_;
  PassLists reader_;
  PassLists maker_;
  bool same_ = false;
};

/// Every chunk of both sources once.
std::uint64_t LeastBytes(const Graph& graph, const OrderOptions& options) {
  const auto all = [&](const PassReads& pass) {
    return ChunksOf(graph.vertex_count(), pass.source_chunk_rows) * pass.source_chunk_bytes;
  };
  return all(options.maker) + all(options.reader);
}

}  // namespace

std::string RowRuleName(RowRule rule) {
  const std::string name = LayoutName({.rows = rule, .targets = TargetOrder::kStored});
  return name.substr(0, name.find('/'));
}

Result<OrderChoice> ChooseOrder(const Graph& graph, const OrderOptions& options,
                                const JobControl& control) {
  OrderChoice choice;
  if (options.rule == RowRule::kStored) return choice;
  const auto fits = [&](const PassReads& pass) {
    return ChunksOf(graph.vertex_count(), pass.source_chunk_rows) <= pass.cache_chunks;
  };
  // Where the cache holds the arrays every chunk is read once, wherever rows stand.
  if (!options.rule && fits(options.maker) && fits(options.reader)) return choice;
  if (graph.vertex_count() >= std::numeric_limits<LocalRow>::max()) return choice;
  const std::uint64_t edges =
      std::max(ExpectedEdges(graph, options.maker.draw), ExpectedEdges(graph, options.reader.draw));
  const bool same = options.maker.draw.fanout == options.reader.draw.fanout &&
                    options.reader.draw.fanout == kAllNeighbors;
  const std::uint64_t needed = edges * (kListBytesOfEdge * (same ? 1 : 2) + kLayOutBytesOfEdge) +
                               graph.vertex_count() * kBytesOfRow;
  if (needed > options.memory_bytes) {
    if (!options.rule) return choice;
    return Fail(Status::OutOfMemory(
        fmt::format("laying rows out by {} takes {} MiB, {} MiB are left; give more --memory, or "
                    "--layout stored",
                    RowRuleName(*options.rule), (needed >> 20) + 1, options.memory_bytes >> 20)));
  }
  RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "layout", .done = 0, .total = 1}));
  Counting counting(options);
  RHIZOME_RETURN_IF_ERROR(counting.Draw(graph, control));
  const std::uint64_t block_rows = RoundUpToTiles(options.reader.block_rows);
  if (options.rule) {
    choice.rule = *options.rule;
    choice.order = Place(counting.reader(), choice.rule, block_rows);
    return choice;
  }
  choice.costs.push_back(counting.Count(RowRule::kStored, {}));
  for (const RowRule rule : kCounted) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const std::uint64_t best =
        std::min_element(choice.costs.begin(), choice.costs.end(),
                         [](const auto& a, const auto& b) { return a.bytes < b.bytes; })
            ->bytes;
    const std::uint64_t least = LeastBytes(graph, options);
    if (best < least + edges * kCountingBytesOfEdge) break;
    RowOrder order = Place(counting.reader(), rule, block_rows);
    choice.costs.push_back(counting.Count(rule, order));
    if (choice.costs.back().bytes >= best) continue;
    choice.rule = rule;
    choice.order = std::move(order);
  }
  return choice;
}

}  // namespace rhizome
