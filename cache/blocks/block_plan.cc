#include "cache/blocks/block_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "cache/job/compute_threads.h"
#include "cache/layout/pass_lists.h"
#include "index/delta/graph_parts.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Number of lists that one task sorts.
constexpr std::size_t kListsOfTask = 64;

/// Maximum number of targets that are sampled at once.
constexpr std::size_t kSampledTargets = 4096;

std::uint64_t PiecesOf(std::uint64_t count, std::uint64_t most) {
  return (count + most - 1) / most;
}

/// Cuts positions [first, last) into blocks.
void CutRun(std::uint64_t first, std::uint64_t last, std::uint64_t block_rows,
            const BlockEdges& edges, std::vector<Block>& blocks) {
  const std::uint64_t pieces = PiecesOf(last - first, RoundUpToTiles(block_rows));
  const std::uint64_t step = RoundUpToTiles(PiecesOf(last - first, pieces));
  for (std::uint64_t begin = first; begin < last;) {
    std::uint64_t end = std::min(begin + step, last);
    if (edges.of) {
      const std::uint64_t most_end = end;
      std::uint64_t sum = edges.of(begin);
      std::uint64_t groups = std::min<std::uint64_t>(sum, edges.relations);
      for (end = begin + 1; end < most_end; ++end) {
        const std::uint64_t of_target = edges.of(end);
        sum += of_target;
        groups += std::min<std::uint64_t>(of_target, edges.relations);
        if (sum > edges.most || groups > edges.most_groups) break;
      }
    }
    blocks.push_back({.begin = static_cast<Row>(begin), .end = static_cast<Row>(end)});
    begin = end;
  }
}

}  // namespace

std::vector<Block> MakeBlocks(std::uint64_t row_count, std::uint64_t chunk_rows,
                              std::uint64_t block_rows, const std::vector<bool>& done,
                              const BlockEdges& edges) {
  std::vector<Block> blocks;
  for (std::size_t chunk = 0; chunk < done.size(); ++chunk) {
    if (done[chunk]) continue;
    const std::uint64_t first = chunk * chunk_rows;
    while (chunk + 1 < done.size() && !done[chunk + 1]) ++chunk;
    const std::uint64_t last = std::min((chunk + 1) * chunk_rows, row_count);
    CutRun(first, last, std::max<std::uint64_t>(block_rows, 1), edges, blocks);
  }
  return blocks;
}

std::vector<Block> SplitAtChunks(Row begin, Row end, std::uint64_t chunk_rows) {
  std::vector<Block> parts;
  const auto step = static_cast<Row>(chunk_rows);
  while (begin < end) {
    const Row last = std::min(end, (begin / step + 1) * step);
    parts.push_back({.begin = begin, .end = last});
    begin = last;
  }
  return parts;
}

std::uint64_t EdgesOfRow(const BlockPlannerOptions& options, Row row) {
  if (options.draw.no_edges) return 0;
  return MostEdgesOf(options.draw, options.degrees[static_cast<std::size_t>(row)]);
}

Result<BlockPlanner> BlockPlanner::Create(const GraphSnapshot& graph,
                                          const BlockPlannerOptions& options) {
  if (graph.vertex_count() >= std::numeric_limits<std::uint32_t>::max()) {
    return Fail(Status::InvalidArgument("inference works on fewer than 2^32 - 1 vertices"));
  }
  BlockPlanner planner(graph, options);
  if (options.draw.no_edges) return planner;
  RHIZOME_ASSIGN_OR_RETURN(
      planner.sampler_, Sampler::Create(graph, PassSampling(options.draw), options.draw.neighbors));
  return planner;
}

// Plans a block: (1) Sample draws the neighbours of each target, as rows; (2) NumberRows numbers
// the distinct rows and decides whether one window holds all of them; (3) SortLists sorts each list
// and converts its rows to numbers, and FormGroups divides it by relation, unless edges keep their
// relations; (4) Stage groups the rows by window and chunk.
Result<BlockLists> BlockPlanner::Plan(const Block& block) {
  BlockLists lists;
  RHIZOME_RETURN_IF_ERROR(Sample(block, lists));
  NumberRows(lists);
  SortLists(lists);
  if (options_.edge_relations) {
    KeepRelations(lists);
  } else if (options_.draw.relations > 0) {
    FormGroups(lists);
  }
  Stage(lists);
  return lists;
}

Status BlockPlanner::PlanChunks(const Block& block, BlockReads& reads) {
  BlockLists lists;
  RHIZOME_RETURN_IF_ERROR(Sample(block, lists));
  NumberRows(lists);
  const bool one_window = !lists.numbers.empty();
  reads.rows += lists.rows.size();
  for (const Row row : lists.targets) {
    if (!one_window && !read_.Test(static_cast<std::uint64_t>(row))) ++reads.rows;
  }
  ++reads.blocks;
  Stage(lists);
  for (std::size_t window = 0; window < lists.windows(); ++window) {
    for (const BlockLists::Visit& visit : lists.VisitsOf(window)) {
      reads.trace.keys.push_back(static_cast<CacheKey>(visit.chunk));
    }
    reads.trace.offsets.push_back(reads.trace.keys.size());
  }
  return Status::Ok();
}

// Sets targets, offsets and neighbours; the neighbours are still rows, not numbers.
Status BlockPlanner::Sample(const Block& block, BlockLists& lists) {
  lists.stage_rows = std::max<std::uint64_t>(options_.stage_rows, 1);
  relations_.clear();
  lists.targets.reserve(block.rows());
  const RowOrder* const order = options_.target_order;
  for (Row place = block.begin; place < block.end; ++place) {
    lists.targets.push_back(order == nullptr ? place
                                             : order->RowAt(static_cast<std::uint64_t>(place)));
  }
  if (sampler_ == nullptr) {
    lists.offsets.assign(lists.targets.size() + 1, 0);
    return Status::Ok();
  }
  lists.offsets.reserve(lists.targets.size() + 1);
  lists.offsets.push_back(0);
  std::uint64_t edges = 0;
  for (const Row row : lists.targets) edges += EdgesOfRow(options_, row);
  lists.neighbors.reserve(edges);
  if (options_.draw.relations > 0) relations_.reserve(edges);
  if (options_.draw.weights && graph_->info().weighted) lists.weights.reserve(edges);
  for (std::span<const Row> left = lists.targets; !left.empty();) {
    const std::size_t part = PartOf(left);
    RHIZOME_RETURN_IF_ERROR(SamplePart(left.first(part), lists));
    left = left.subspan(part);
  }
  return Status::Ok();
}

/// Returns the number of targets to sample next.
std::size_t BlockPlanner::PartOf(std::span<const Row> targets) const {
  const std::size_t most = std::min(targets.size(), kSampledTargets);
  std::uint64_t edges = EdgesOfRow(options_, targets.front());
  std::size_t part = 1;
  for (; part < most; ++part) {
    edges += EdgesOfRow(options_, targets[part]);
    if (edges > kSampledEdges) break;
  }
  return part;
}

Status BlockPlanner::SamplePart(std::span<const Row> targets, BlockLists& lists) {
  seeds_.clear();
  const auto parts = graph_->parts();
  for (const Row row : targets) seeds_.push_back(parts->VertexAt(row));
  // The sampler's key is the layer, not the block, so that a vertex draws the same neighbours for
  // every block size.
  RHIZOME_RETURN_IF_ERROR(sampler_->SampleInto(seeds_, {}, options_.draw.layer, drawn_));
  const std::size_t before = lists.neighbors.size();
  if (before + drawn_.neighbors.size() > std::numeric_limits<std::uint32_t>::max()) {
    return Status::InvalidArgument(
        fmt::format("more than 2^32 edges end in {} vertices, the first of row {}; make the blocks "
                    "smaller",
                    lists.targets.size(), lists.targets.front()));
  }
  for (const std::int64_t local : drawn_.neighbors) {
    lists.neighbors.push_back(
        static_cast<std::uint32_t>(drawn_.rows[static_cast<std::size_t>(local)]));
  }
  if (options_.draw.weights)
    lists.weights.insert(lists.weights.end(), drawn_.weights.begin(), drawn_.weights.end());
  if (options_.draw.relations > 0) {
    const std::vector<TypeId>& relation_of = options_.draw.relation_of;
    for (const TypeId type : drawn_.types)
      relations_.push_back(relation_of.empty() ? type : relation_of[type]);
    relations_.resize(lists.neighbors.size(), relation_of.empty() ? TypeId{0} : relation_of[0]);
  }
  for (std::size_t t = 0; t < targets.size(); ++t) {
    lists.offsets.push_back(static_cast<std::uint32_t>(before + drawn_.offsets[t + 1]));
  }
  return Status::Ok();
}

void BlockPlanner::NumberRows(BlockLists& lists) {
  for (const std::uint32_t row : lists.neighbors) read_.Set(row);
  std::size_t beside = 0;
  for (const Row row : lists.targets) beside += read_.Test(static_cast<std::uint64_t>(row)) ? 0 : 1;
  std::size_t count = 0;
  read_.ForEach([&](std::uint64_t) { ++count; });
  const bool one_window = !options_.edge_relations && count + beside <= lists.stage_rows;
  if (one_window) {
    for (const Row row : lists.targets) read_.Set(static_cast<std::uint64_t>(row));
    count += beside;
  }
  read_.Seal();
  lists.rows.reserve(count);
  read_.ForEach([&](std::uint64_t row) { lists.rows.push_back(static_cast<std::uint32_t>(row)); });
  if (!one_window) return;
  lists.numbers.reserve(lists.targets.size());
  for (const Row row : lists.targets) {
    lists.numbers.push_back(
        static_cast<std::uint32_t>(read_.Rank(static_cast<std::uint64_t>(row))));
  }
}

// Sorts each list and converts its rows to numbers.
void BlockPlanner::SortLists(BlockLists& lists) {
  const std::size_t targets = lists.targets.size();
  ComputeFor(PiecesOf(targets, kListsOfTask), [&](std::size_t task) {
    const std::size_t last = std::min(targets, (task + 1) * kListsOfTask);
    if (options_.draw.relations > 0) return SortRelated(task * kListsOfTask, last, lists);
    if (!lists.weights.empty()) return SortWeighted(task * kListsOfTask, last, lists);
    for (std::size_t t = task * kListsOfTask; t < last; ++t) {
      const auto begin = lists.neighbors.begin() + lists.offsets[t];
      const auto end = lists.neighbors.begin() + lists.offsets[t + 1];
      if (!std::is_sorted(begin, end)) std::sort(begin, end);
      for (auto e = begin; e != end; ++e) *e = static_cast<std::uint32_t>(read_.Rank(*e));
    }
  });
}

/// As above, for the lists of targets [first, last) with their weights. Weights are not negative,
/// so their bit patterns have the order of their values.
void BlockPlanner::SortWeighted(std::size_t first, std::size_t last, BlockLists& lists) const {
  constexpr std::uint32_t kWeightBits = 32;
  std::vector<std::uint64_t> edges;
  for (std::size_t t = first; t < last; ++t) {
    edges.clear();
    for (std::size_t e = lists.offsets[t]; e < lists.offsets[t + 1]; ++e) {
      edges.push_back(std::uint64_t{lists.neighbors[e]} << kWeightBits |
                      std::bit_cast<std::uint32_t>(lists.weights[e]));
    }
    std::sort(edges.begin(), edges.end());
    std::size_t e = lists.offsets[t];
    for (const std::uint64_t edge : edges) {
      const auto row = static_cast<std::uint32_t>(edge >> kWeightBits);
      lists.neighbors[e] = static_cast<std::uint32_t>(read_.Rank(row));
      lists.weights[e++] = std::bit_cast<float>(static_cast<std::uint32_t>(edge));
    }
  }
}

/// As above, by (relation, row, weight), or with edge_relations by (row, relation, weight).
void BlockPlanner::SortRelated(std::size_t first, std::size_t last, BlockLists& lists) {
  struct Edge {
    std::uint64_t key;
    std::uint32_t row;
    std::uint32_t weight;
    std::uint16_t relation;
    bool operator<(const Edge& other) const {
      return key != other.key ? key < other.key : weight < other.weight;
    }
  };
  constexpr std::uint32_t kRowBits = 32, kRelationBits = 16;
  const bool weighted = !lists.weights.empty();
  std::vector<Edge> edges;
  for (std::size_t t = first; t < last; ++t) {
    edges.clear();
    for (std::size_t e = lists.offsets[t]; e < lists.offsets[t + 1]; ++e) {
      const std::uint32_t row = lists.neighbors[e];
      const std::uint16_t relation = relations_[e];
      edges.push_back({options_.edge_relations ? std::uint64_t{row} << kRelationBits | relation
                                               : std::uint64_t{relation} << kRowBits | row,
                       row, weighted ? std::bit_cast<std::uint32_t>(lists.weights[e]) : 0,
                       relation});
    }
    std::sort(edges.begin(), edges.end());
    std::size_t e = lists.offsets[t];
    for (const Edge& edge : edges) {
      relations_[e] = edge.relation;
      lists.neighbors[e] = static_cast<std::uint32_t>(read_.Rank(edge.row));
      if (weighted) lists.weights[e] = std::bit_cast<float>(edge.weight);
      ++e;
    }
  }
}

/// Divides the sorted lists into groups.
void BlockPlanner::FormGroups(BlockLists& lists) const {
  lists.group_begin.reserve(lists.targets.size() + 1);
  lists.group_begin.push_back(0);
  lists.group_offsets.push_back(0);
  for (std::size_t t = 0; t < lists.targets.size(); ++t) {
    for (std::uint32_t e = lists.offsets[t]; e < lists.offsets[t + 1]; ++e) {
      if (e == lists.offsets[t] || relations_[e] != relations_[e - 1]) {
        lists.relation.push_back(relations_[e]);
        lists.group_offsets.push_back(e);
      }
      lists.group_offsets.back() = e + 1;
    }
    lists.group_begin.push_back(static_cast<std::uint32_t>(lists.relation.size()));
  }
}

/// Gives the sorted lists the relations of their edges.
void BlockPlanner::KeepRelations(BlockLists& lists) {
  lists.relation = std::move(relations_);
  lists.linked_before.reserve(lists.offsets.size());
  lists.linked_before.push_back(0);
  for (std::size_t t = 0; t < lists.targets.size(); ++t)
    lists.linked_before.push_back(lists.linked_before.back() +
                                  (lists.offsets[t] < lists.offsets[t + 1] ? 1 : 0));
}

void BlockPlanner::Stage(BlockLists& lists) {
  for (const std::uint32_t row : lists.rows) read_.Clear(row);
  const bool one_window = !lists.numbers.empty();
  const std::size_t own = one_window ? 0 : std::size_t{options_.own.before} + options_.own.after;
  lists.staged.reserve(lists.rows.size() + own * lists.targets.size());
  lists.window_visits = {0};
  lists.own = options_.own;
  if (!one_window && lists.own.before) StageRows(std::span<const Row>(lists.targets), lists);
  lists.first_sum = lists.windows();
  StageRows(std::span<const std::uint32_t>(lists.rows), lists);
  if (!one_window && lists.own.after) StageRows(std::span<const Row>(lists.targets), lists);
  // A block has at least one window even if it reads no rows, because its user advances by windows.
  if (lists.windows() == 0) lists.window_visits.push_back(0);
}

/// Appends the windows that hold `rows`.
template <typename T>
void BlockPlanner::StageRows(std::span<const T> rows, BlockLists& lists) const {
  struct Place {
    std::uint32_t place;
    std::uint32_t slot;
  };
  const std::uint64_t chunk_rows = options_.source_chunk_rows;
  const RowOrder* const order = options_.source_order;
  std::vector<Place> places;
  for (std::uint64_t first = 0; first < rows.size(); first += lists.stage_rows) {
    places.clear();
    const std::uint64_t last = std::min<std::uint64_t>(first + lists.stage_rows, rows.size());
    for (std::uint64_t n = first; n < last; ++n) {
      const auto row = static_cast<Row>(rows[n]);
      places.push_back({static_cast<std::uint32_t>(order == nullptr ? row : order->PlaceOf(row)),
                        static_cast<std::uint32_t>(n - first)});
    }
    const auto by_place = [](const Place& a, const Place& b) { return a.place < b.place; };
    if (!std::is_sorted(places.begin(), places.end(), by_place)) {
      std::sort(places.begin(), places.end(), by_place);
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

Result<BlockReads> PlanReads(const GraphSnapshot& graph, const BlockPlannerOptions& options,
                             std::span<const Block> blocks, const JobControl& control) {
  BlockReads reads;
  RHIZOME_ASSIGN_OR_RETURN(BlockPlanner planner, BlockPlanner::Create(graph, options));
  for (const Block& block : blocks) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_RETURN_IF_ERROR(planner.PlanChunks(block, reads));
  }
  return reads;
}

}  // namespace internal
}  // namespace rhizome
