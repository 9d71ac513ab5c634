#include "cache/full_graph/gather_reads.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "cache/job/compute_threads.h"
#include "index/delta/graph_parts.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Maximum number of rows whose lists are read at once.
constexpr std::uint64_t kWalkedRows = 4096;

/// The neighbour lists of rows [first, first + offsets.size() - 1), as row numbers.
struct WalkedLists {
  std::uint64_t first = 0;
  std::vector<std::uint64_t> offsets;
  std::vector<std::uint32_t> neighbors;

  std::uint64_t end() const { return first + offsets.size() - 1; }
};

/// Reads the lists of all rows once, in row order.
class ListWalk {
 public:
  /// Creates a walk. Errors: any error of Sampler::Create.
  static Result<ListWalk> Create(const GraphSnapshot& graph, const BlockPlannerOptions& options) {
    ListWalk walk(graph, options);
    if (options.draw.no_edges) return walk;
    RHIZOME_ASSIGN_OR_RETURN(
        walk.sampler_, Sampler::Create(graph, PassSampling(options.draw), options.draw.neighbors));
    return walk;
  }

  /// Reads the next lists. Errors: any error of the sampler.
  Status Next(WalkedLists& lists) {
    lists.first = next_;
    lists.offsets.assign(1, 0);
    lists.neighbors.clear();
    const auto parts = graph_->parts();
    seeds_.clear();
    std::uint64_t edges = 0;
    for (; next_ < graph_->vertex_count() && seeds_.size() < kWalkedRows; ++next_) {
      edges += EdgesOfRow(options_, static_cast<Row>(next_));
      if (edges > kSampledEdges && !seeds_.empty()) break;
      seeds_.push_back(parts->VertexAt(static_cast<Row>(next_)));
    }
    if (sampler_ == nullptr) {
      lists.offsets.resize(seeds_.size() + 1, 0);
      return Status::Ok();
    }
    RHIZOME_RETURN_IF_ERROR(sampler_->SampleInto(seeds_, {}, options_.draw.layer, drawn_));
    for (std::size_t t = 0; t < seeds_.size(); ++t)
      lists.offsets.push_back(static_cast<std::uint64_t>(drawn_.offsets[t + 1]));
    for (const std::int64_t local : drawn_.neighbors)
      lists.neighbors.push_back(
          static_cast<std::uint32_t>(drawn_.rows[static_cast<std::size_t>(local)]));
    return Status::Ok();
  }

  bool done() const { return next_ == graph_->vertex_count(); }

 private:
  ListWalk(const GraphSnapshot& graph, const BlockPlannerOptions& options)
      : graph_(&graph), options_(options) {}

  const GraphSnapshot* graph_;
  BlockPlannerOptions options_;
  std::unique_ptr<Sampler> sampler_;  // null if there are no edges
  std::uint64_t next_ = 0;            // next row
  std::vector<VertexId> seeds_;
  SampledSubgraph drawn_;
};

/// Marks the rows that the blocks of a gather read, one block after another, and collects their
/// chunks.
class BlockMarks {
 public:
  BlockMarks(const CountedGather& of, std::uint64_t rows)
      : of_(of), rows_(rows), words_((rows + 63) / 64, 0) {
    RHIZOME_CHECK(of.planner.source_order == nullptr && of.planner.target_order == nullptr);
  }

  void Take(const WalkedLists& lists) {
    for (std::uint64_t row = lists.first; row < lists.end();) {
      const Block& block = of_.blocks[reads_.block_ends.size()];
      const std::uint64_t end = std::min(lists.end(), static_cast<std::uint64_t>(block.end));
      for (std::uint64_t e = lists.offsets[row - lists.first]; e < lists.offsets[end - lists.first];
           ++e)
        words_[lists.neighbors[e] / 64] |= std::uint64_t{1} << (lists.neighbors[e] % 64);
      row = end;
      if (row == static_cast<std::uint64_t>(block.end)) Close(block);
    }
  }

  GatherReads Reads() && { return std::move(reads_); }

 private:
  /// Adds the chunks that a block requests (BlockLists), and advances to the next block.
  void Close(const Block& block) {
    const auto begin = static_cast<std::uint64_t>(block.begin);
    const auto end = static_cast<std::uint64_t>(block.end);
    const std::uint64_t stage = std::max<std::uint64_t>(of_.planner.stage_rows, 1);
    if (CountMembers() + block.rows() - Members(begin, end) <= stage) {
      for (std::uint64_t row = begin; row < end; ++row)
        words_[row / 64] |= std::uint64_t{1} << (row % 64);
      CountMembers();
      AddMembers(stage);
    } else {
      if (of_.planner.own.before) AddOwn(begin, end, stage);
      AddMembers(stage);
      if (of_.planner.own.after) AddOwn(begin, end, stage);
    }
    reads_.block_ends.push_back(reads_.chunks.size());
    std::fill(words_.begin(), words_.end(), 0);
  }

  /// Adds windows of consecutive rows.
  void AddOwn(std::uint64_t begin, std::uint64_t end, std::uint64_t stage) {
    for (std::uint64_t first = begin; first < end; first += stage) {
      const std::uint64_t last = std::min(first + stage, end) - 1;
      for (std::uint64_t chunk = first / chunk_rows(); chunk <= last / chunk_rows(); ++chunk)
        reads_.chunks.push_back(static_cast<std::uint32_t>(chunk));
    }
  }

  /// Counts the marked rows of each chunk. Returns their total.
  std::uint64_t CountMembers() {
    std::uint64_t all = 0;
    in_chunk_.clear();
    for (std::uint64_t first = 0; first < rows_; first += chunk_rows()) {
      in_chunk_.push_back(Members(first, std::min(first + chunk_rows(), rows_)));
      all += in_chunk_.back();
    }
    return all;
  }

  /// Adds windows of marked rows, which must have been counted. A window that starts within a chunk
  /// reads that chunk again.
  void AddMembers(std::uint64_t stage) {
    std::uint64_t before = 0;  // marked rows of earlier chunks
    for (std::uint64_t chunk = 0; chunk < in_chunk_.size(); ++chunk) {
      const std::uint64_t count = in_chunk_[chunk];
      if (count == 0) continue;
      const std::uint64_t windows = (before + count - 1) / stage - before / stage + 1;
      reads_.chunks.insert(reads_.chunks.end(), windows, static_cast<std::uint32_t>(chunk));
      before += count;
    }
  }

  /// Returns the number of marked rows in [begin, end).
  std::uint64_t Members(std::uint64_t begin, std::uint64_t end) const {
    if (begin == end) return 0;
    const std::uint64_t first = begin / 64, last = (end - 1) / 64;
    const std::uint64_t from = ~std::uint64_t{0} << (begin % 64);
    const std::uint64_t to = ~std::uint64_t{0} >> (63 - (end - 1) % 64);
    // Portable population count: the oldest processors have no instruction for it, and a library
    // call per word costs more.
    const auto count = [](std::uint64_t word) {
      constexpr std::uint64_t kTwos = 0x5555555555555555, kFours = 0x3333333333333333,
                              kBytes = 0x0F0F0F0F0F0F0F0F, kEach = 0x0101010101010101;
      word -= word >> 1 & kTwos;
      word = (word & kFours) + (word >> 2 & kFours);
      return ((word + (word >> 4)) & kBytes) * kEach >> 56;
    };
    if (first == last) return count(words_[first] & from & to);
    std::uint64_t sum = count(words_[first] & from) + count(words_[last] & to);
    for (std::uint64_t w = first + 1; w < last; ++w) sum += count(words_[w]);
    return sum;
  }

  std::uint64_t chunk_rows() const { return of_.planner.source_chunk_rows; }

  const CountedGather& of_;
  const std::uint64_t rows_;
  std::vector<std::uint64_t> words_;     // one bit per row: the block reads it
  std::vector<std::uint64_t> in_chunk_;  // marked rows of each chunk
  GatherReads reads_;
};

/// Returns whether two gathers over the same lists read the same chunks.
bool ReadTheSame(const CountedGather& a, const CountedGather& b) {
  const BlockPlannerOptions &p = a.planner, &q = b.planner;
  return p.source_chunk_rows == q.source_chunk_rows && p.stage_rows == q.stage_rows &&
         p.own.before == q.own.before && p.own.after == q.own.after &&
         std::equal(
             a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
             [](const Block& x, const Block& y) { return x.begin == y.begin && x.end == y.end; });
}

/// Counts gathers that read the same lists, in one walk over these lists.
Status CountAlike(const GraphSnapshot& graph, std::span<const CountedGather* const> gathers,
                  const std::vector<GatherReads*>& out, const JobControl& control) {
  std::vector<BlockMarks> marks;
  for (const CountedGather* const gather : gathers)
    marks.emplace_back(*gather, graph.vertex_count());
  RHIZOME_ASSIGN_OR_RETURN(ListWalk walk, ListWalk::Create(graph, gathers.front()->planner));
  WalkedLists lists;
  while (!walk.done()) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_RETURN_IF_ERROR(walk.Next(lists));
    ComputeFor(marks.size(), [&](std::size_t i) { marks[i].Take(lists); });
  }
  for (std::size_t i = 0; i < marks.size(); ++i) *out[i] = std::move(marks[i]).Reads();
  return Status::Ok();
}

}  // namespace

// Counts gathers: (1) groups those that read the same lists, as many as fit in memory; (2) within a
// group, gathers with the same blocks and windows are counted once; (3) walks over the lists of
// each group; (4) copies the results to the duplicates.
Result<std::vector<GatherReads>> CountGathers(const GraphSnapshot& graph,
                                              std::span<const CountedGather> gathers,
                                              std::uint64_t memory_bytes,
                                              const JobControl& control) {
  std::vector<GatherReads> reads(gathers.size());
  std::vector<bool> counted(gathers.size(), false);
  std::vector<std::pair<std::size_t, std::size_t>> same;  // a duplicate gather, and its counted one
  const std::uint64_t most =
      std::max<std::uint64_t>(memory_bytes / (graph.vertex_count() / 8 + 1), 1);
  for (std::size_t i = 0; i < gathers.size(); ++i) {
    if (counted[i]) continue;
    std::vector<const CountedGather*> alike;
    std::vector<GatherReads*> out;
    for (std::size_t j = i; j < gathers.size() && alike.size() < most; ++j) {
      if (counted[j] ||
          (j != i && !TakeSameLists(gathers[i].planner.draw, gathers[j].planner.draw)))
        continue;
      counted[j] = true;
      const auto other = std::find_if(alike.begin(), alike.end(), [&](const CountedGather* gather) {
        return ReadTheSame(*gather, gathers[j]);
      });
      if (other != alike.end()) {
        same.emplace_back(j, *other - gathers.data());
        continue;
      }
      alike.push_back(&gathers[j]);
      out.push_back(&reads[j]);
    }
    RHIZOME_RETURN_IF_ERROR(CountAlike(graph, alike, out, control));
  }
  for (const auto& [gather, other] : same) reads[gather] = reads[other];
  return reads;
}

Result<GatherReads> CountGather(const GraphSnapshot& graph, const BlockPlannerOptions& planner,
                                std::span<const Block> blocks, const JobControl& control) {
  const CountedGather gather{.planner = planner, .blocks = {blocks.begin(), blocks.end()}};
  RHIZOME_ASSIGN_OR_RETURN(std::vector<GatherReads> reads,
                           CountGathers(graph, {&gather, 1}, 0, control));
  return std::move(reads.front());
}

}  // namespace internal
}  // namespace rhizome
