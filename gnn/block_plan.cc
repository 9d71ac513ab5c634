#include "rhizome/gnn/block_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rhizome/cache/pass_lists.h"
#include "rhizome/gnn/compute_threads.h"

namespace rhizome {
namespace {

/// Lists that one task sorts.
constexpr std::size_t kListsOfTask = 64;

}  // namespace

std::vector<Block> MakeBlocks(std::uint64_t row_count, std::uint64_t chunk_rows,
                              std::uint64_t block_rows, const std::vector<bool>& done,
                              const BlockEdges& edges) {
  const std::uint64_t step = RoundUpToTiles(std::max<std::uint64_t>(block_rows, 1));
  std::vector<Block> blocks;
  for (std::uint64_t first = 0; first < row_count; first += chunk_rows) {
    const std::uint64_t chunk = first / chunk_rows;
    if (done[chunk]) continue;
    const std::uint64_t last = std::min(first + chunk_rows, row_count);
    for (std::uint64_t begin = first; begin < last;) {
      std::uint64_t end = std::min(begin + step, last);
      if (edges.of) {
        const std::uint64_t most_end = end;
        std::uint64_t sum = edges.of(begin);
        for (end = begin + 1; end < most_end; ++end) {
          sum += edges.of(end);
          if (sum > edges.most) break;
        }
      }
      blocks.push_back(
          {.begin = static_cast<Row>(begin), .end = static_cast<Row>(end), .output_chunk = chunk});
      begin = end;
    }
  }
  return blocks;
}

Result<BlockPlanner> BlockPlanner::Create(const Graph& graph, const BlockPlannerOptions& options) {
  if (graph.vertex_count() >= std::numeric_limits<std::uint32_t>::max()) {
    return Fail(Status::InvalidArgument("inference works on fewer than 2^32 - 1 vertices"));
  }
  BlockPlanner planner(graph, options);
  if (options.no_edges) return planner;
  RHIZOME_ASSIGN_OR_RETURN(
      planner.sampler_,
      Sampler::Create(graph, PassSampling(options.fanout, options.seed, options.threads),
                      options.neighbors));
  return planner;
}

Result<BlockLists> BlockPlanner::Plan(const Block& block) {
  BlockLists lists;
  RHIZOME_RETURN_IF_ERROR(Sample(block, lists));
  NumberRows(lists);
  SortLists(lists);
  CutWindows(lists);
  Stage(lists);
  return lists;
}

Status BlockPlanner::PlanChunks(const Block& block, Trace& trace) {
  BlockLists lists;
  RHIZOME_RETURN_IF_ERROR(Sample(block, lists));
  NumberRows(lists);
  Stage(lists);
  for (std::size_t window = 0; window < lists.windows(); ++window) {
    for (const BlockLists::Visit& visit : lists.VisitsOf(window)) {
      trace.keys.push_back(static_cast<CacheKey>(visit.chunk));
    }
    trace.offsets.push_back(trace.keys.size());
  }
  return Status::Ok();
}

Status BlockPlanner::Sample(const Block& block, BlockLists& lists) {
  lists.stage_rows = std::max<std::uint64_t>(options_.stage_rows, 1);
  lists.targets.reserve(block.rows());
  const RowOrder* const order = options_.target_order;
  for (Row place = block.begin; place < block.end; ++place) {
    lists.targets.push_back(order == nullptr ? place
                                             : order->RowAt(static_cast<std::uint64_t>(place)));
  }
  drawn_ = {};
  lists.offsets.assign(lists.targets.size() + 1, 0);
  if (sampler_ == nullptr) {
    drawn_.rows = lists.targets;
    return Status::Ok();
  }
  std::vector<VertexId> seeds;
  seeds.reserve(lists.targets.size());
  for (const Row row : lists.targets) seeds.push_back(graph_->VertexAt(row));
  // The key is the layer, not the block: a vertex draws the same neighbours in a block of any size.
  RHIZOME_RETURN_IF_ERROR(sampler_->SampleInto(seeds, {}, options_.layer, drawn_));
  if (drawn_.neighbors.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Status::InvalidArgument(
        fmt::format("{} edges end in {} vertices, the first of row {}; make the blocks smaller",
                    drawn_.neighbors.size(), lists.targets.size(), lists.targets.front()));
  }
  for (std::size_t t = 0; t < lists.targets.size(); ++t) {
    lists.offsets[t + 1] = static_cast<std::uint32_t>(drawn_.offsets[t + 1]);
  }
  return Status::Ok();
}

// The targets are the first of the rows that the sampler found.
void BlockPlanner::NumberRows(BlockLists& lists) {
  for (const Row row : drawn_.rows) read_.Set(static_cast<std::uint64_t>(row));
  read_.Seal();
  lists.rows.reserve(drawn_.rows.size());
  read_.ForEach([&](std::uint64_t row) { lists.rows.push_back(static_cast<std::uint32_t>(row)); });
  number_of_.resize(drawn_.rows.size());
  for (std::size_t i = 0; i < drawn_.rows.size(); ++i) {
    number_of_[i] =
        static_cast<std::uint32_t>(read_.Rank(static_cast<std::uint64_t>(drawn_.rows[i])));
  }
  for (const Row row : drawn_.rows) read_.Clear(static_cast<std::uint64_t>(row));
  lists.numbers.assign(number_of_.begin(),
                       number_of_.begin() + static_cast<std::ptrdiff_t>(lists.targets.size()));
}

void BlockPlanner::SortLists(BlockLists& lists) const {
  lists.neighbors.resize(lists.offsets.back());
  const std::size_t targets = lists.targets.size();
  ComputeFor((targets + kListsOfTask - 1) / kListsOfTask, [&](std::size_t task) {
    const std::size_t last = std::min(targets, (task + 1) * kListsOfTask);
    for (std::size_t e = lists.offsets[task * kListsOfTask]; e < lists.offsets[last]; ++e) {
      lists.neighbors[e] = number_of_[static_cast<std::size_t>(drawn_.neighbors[e])];
    }
    for (std::size_t t = task * kListsOfTask; t < last; ++t) {
      const auto begin = lists.neighbors.begin() + lists.offsets[t];
      const auto end = lists.neighbors.begin() + lists.offsets[t + 1];
      if (!std::is_sorted(begin, end)) std::sort(begin, end);
    }
  });
}

// Turns numbers into slots where there is more than one window.
void BlockPlanner::CutWindows(BlockLists& lists) const {
  const std::uint64_t windows = (lists.rows.size() + lists.stage_rows - 1) / lists.stage_rows;
  if (windows <= 1) return;
  const std::size_t targets = lists.targets.size();
  lists.cuts.resize((windows - 1) * targets);
  ComputeFor((targets + kListsOfTask - 1) / kListsOfTask, [&](std::size_t task) {
    const std::size_t last = std::min(targets, (task + 1) * kListsOfTask);
    for (std::size_t t = task * kListsOfTask; t < last; ++t) {
      auto at = lists.neighbors.begin() + lists.offsets[t];
      const auto end = lists.neighbors.begin() + lists.offsets[t + 1];
      for (std::uint64_t window = 0; window + 1 < windows; ++window) {
        at = std::lower_bound(at, end, (window + 1) * lists.stage_rows);
        lists.cuts[window * targets + t] = static_cast<std::uint32_t>(at - lists.neighbors.begin());
      }
      for (auto e = lists.neighbors.begin() + lists.offsets[t]; e != end; ++e) {
        *e = static_cast<std::uint32_t>(*e % lists.stage_rows);
      }
    }
  });
}

void BlockPlanner::Stage(BlockLists& lists) const {
  struct Place {
    std::uint32_t place;
    std::uint32_t slot;
  };
  const std::uint64_t chunk_rows = options_.source_chunk_rows;
  const RowOrder* const order = options_.source_order;
  const bool as_stored = order == nullptr || order->as_stored();
  std::vector<Place> places;
  lists.staged.reserve(lists.rows.size());
  lists.window_visits = {0};
  for (std::uint64_t first = 0; first < lists.rows.size(); first += lists.stage_rows) {
    places.clear();
    const std::uint64_t last = std::min<std::uint64_t>(first + lists.stage_rows, lists.rows.size());
    for (std::uint64_t n = first; n < last; ++n) {
      const std::uint32_t row = lists.rows[n];
      places.push_back({as_stored ? row : static_cast<std::uint32_t>(order->PlaceOf(row)),
                        static_cast<std::uint32_t>(n - first)});
    }
    if (!as_stored) {
      std::sort(places.begin(), places.end(),
                [](const Place& a, const Place& b) { return a.place < b.place; });
    }
    for (const Place& at : places) {
      const std::uint64_t chunk = at.place / chunk_rows;
      const bool same =
          lists.visits.size() > lists.window_visits.back() && lists.visits.back().chunk == chunk;
      const auto next = static_cast<std::uint32_t>(lists.staged.size());
      if (!same) lists.visits.push_back({.chunk = chunk, .first = next, .last = next});
      ++lists.visits.back().last;
      lists.staged.push_back(
          {.slot = at.slot, .in_chunk = static_cast<std::uint32_t>(at.place % chunk_rows)});
    }
    lists.window_visits.push_back(static_cast<std::uint32_t>(lists.visits.size()));
  }
}

Result<Trace> PlanTrace(const Graph& graph, const BlockPlannerOptions& options,
                        std::span<const Block> blocks, const JobControl& control) {
  Trace trace;
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner, BlockPlanner::Create(graph, options));
  for (const Block& block : blocks) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_RETURN_IF_ERROR(planner.PlanChunks(block, trace));
  }
  return trace;
}

}  // namespace rhizome
