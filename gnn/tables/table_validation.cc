#include "gnn/tables/table_validation.h"

#include <algorithm>
#include <utility>

#include "gnn/tables/sampled_ranks.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kMaxBlockEdges = 4096;

/// Number of edges whose ends are at most the rows of a step.
std::size_t BlockEdgesOf(const TableJob& job) {
  return std::clamp<std::uint64_t>(job.batches->max_rows() / 2, 1, kMaxBlockEdges);
}

std::size_t CandidatesOf(const TableJob& job) {
  std::size_t count = 0;
  for (const ValidCandidates& of_type : job.valid.candidates) count += of_type.vertices.size();
  return count;
}

}  // namespace

TableValidation::TableValidation(const TableJob& job) : job_(job), block_edges_(BlockEdgesOf(job)) {
  const TableOrder& order = job.batches->table_order();
  const auto row_of = [&](VertexId vertex) { return order.RowOf(vertex); };
  for (const ValidCandidates& of_type : job.valid.candidates)
    std::ranges::transform(of_type.vertices, std::back_inserter(candidate_rows_), row_of);
  std::ranges::sort(candidate_rows_);
  for (const ValidCandidates& of_type : job.valid.candidates) {
    std::vector<std::uint32_t>& places = candidates_.emplace_back();
    for (const VertexId vertex : of_type.vertices) {
      const auto at = std::ranges::lower_bound(candidate_rows_, row_of(vertex));
      places.push_back(static_cast<std::uint32_t>(at - candidate_rows_.begin()));
    }
  }
}

std::uint64_t TableValidation::Bytes(const TableJob& job, std::uint32_t threads) {
  if (job.valid.edges.empty()) return 0;
  const std::size_t candidates = CandidatesOf(job);
  const std::uint64_t rows = candidates + 2 * BlockEdgesOf(job);
  return rows * job.dim() * sizeof(float) + candidates * 16 +
         BlockEdgesOf(job) * sizeof(MinibatchPair) +
         SampledRanks::Bytes(candidates, job.dim(), threads);
}

// Measures: (1) reads the candidates; (2) starts a superbatch of blocks in the cache; (3) ranks one
// block after another, and continues with (2).
Result<double> TableValidation::Measure(TableCache& cache, std::span<const float> relations,
                                        std::uint64_t lookahead, TaskArena& arena,
                                        const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(ReadCandidates(cache));
  const std::span<const VertexPair> edges = job_.valid.edges;
  const auto block_at = [&](std::size_t first) {
    return edges.subspan(first, std::min(block_edges_, edges.size() - first));
  };
  double sum = 0;
  TableRows rows;
  for (std::size_t first = 0; first < edges.size();) {
    Trace trace;
    for (std::size_t next = first; next < edges.size() && trace.steps() < lookahead;
         next += block_edges_)
      trace.AddStep(KeysOf(block_at(next)));
    const std::size_t steps = trace.steps();
    RHIZOME_RETURN_IF_ERROR(cache.Start(std::move(trace)));
    for (std::size_t step = 0; step < steps; ++step, first += block_edges_) {
      RHIZOME_RETURN_IF_ERROR(
          control.Report({.phase = "valid", .done = first, .total = edges.size()}));
      RHIZOME_RETURN_IF_ERROR(cache.Acquire(rows));
      arena.execute([&] { sum += RankBlock(block_at(first), rows, relations); });
      RHIZOME_RETURN_IF_ERROR(cache.Release());
    }
  }
  return sum / (2 * static_cast<double>(edges.size()));
}

/// Copies the rows of the candidates to the front of values_.
Status TableValidation::ReadCandidates(TableCache& cache) {
  const std::size_t dim = job_.dim();
  const std::size_t most = job_.batches->max_rows();
  values_.resize((candidate_rows_.size() + 2 * block_edges_) * dim);
  Trace trace;
  for (std::size_t first = 0; first < candidate_rows_.size(); first += most)
    trace.AddStep(
        std::span(candidate_rows_).subspan(first, std::min(most, candidate_rows_.size() - first)));
  RHIZOME_RETURN_IF_ERROR(cache.Start(std::move(trace)));
  TableRows rows;
  for (std::size_t first = 0; first < candidate_rows_.size(); first += rows.size()) {
    RHIZOME_RETURN_IF_ERROR(cache.Acquire(rows));
    rows.CopyValues(dim, std::span(values_).subspan(first * dim, rows.size() * dim));
    RHIZOME_RETURN_IF_ERROR(cache.Release());
    if (rows.size() == 0) break;
  }
  return Status::Ok();
}

/// Returns the rows of the ends of edges, without candidates.
std::vector<CacheKey> TableValidation::KeysOf(std::span<const VertexPair> edges) const {
  std::vector<CacheKey> keys;
  for (const VertexPair& edge : edges) {
    for (const VertexId end : {edge.src, edge.dst}) {
      const CacheKey row = job_.batches->table_order().RowOf(end);
      if (!std::ranges::binary_search(candidate_rows_, row)) keys.push_back(row);
    }
  }
  std::ranges::sort(keys);
  const auto repeated = std::ranges::unique(keys);
  keys.erase(repeated.begin(), repeated.end());
  return keys;
}

/// Returns the place of a candidate, or of a row of a block, in values_.
std::uint32_t TableValidation::PlaceOf(VertexId vertex, const TableRows& rows) const {
  const CacheKey row = job_.batches->table_order().RowOf(vertex);
  const auto candidate = std::ranges::lower_bound(candidate_rows_, row);
  if (candidate != candidate_rows_.end() && *candidate == row)
    return static_cast<std::uint32_t>(candidate - candidate_rows_.begin());
  const auto at = std::ranges::lower_bound(rows.keys(), row);
  return static_cast<std::uint32_t>(candidate_rows_.size() +
                                    static_cast<std::size_t>(at - rows.keys().begin()));
}

/// Returns the sum of 1 / rank of both ends of a block of edges.
double TableValidation::RankBlock(std::span<const VertexPair> edges, const TableRows& rows,
                                  std::span<const float> relations) {
  const std::size_t dim = job_.dim();
  rows.CopyValues(dim, std::span(values_).subspan(candidate_rows_.size() * dim, rows.size() * dim));
  const SampledRanks ranks{.decoder = *job_.decoder,
                           .step = job_.step,
                           .dim = dim,
                           .rows = values_.data(),
                           .relations = relations.data()};
  double sum = 0;
  for (const EdgeEnd open : {EdgeEnd::kDst, EdgeEnd::kSrc}) {
    for (std::size_t set = 0; set < candidates_.size(); ++set) {
      std::vector<MinibatchPair> pairs;
      for (const VertexPair& edge : edges) {
        const VertexId truth = open == EdgeEnd::kDst ? edge.dst : edge.src;
        if (*job_.graph->TypeOf(truth) == job_.valid.candidates[set].type)
          pairs.push_back(
              {.src = PlaceOf(edge.src, rows), .dst = PlaceOf(edge.dst, rows), .type = edge.type});
      }
      sum += ranks.ReciprocalSum(pairs, open, candidates_[set]);
    }
  }
  return sum;
}

}  // namespace internal
}  // namespace rhizome
