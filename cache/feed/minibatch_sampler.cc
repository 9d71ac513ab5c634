#include "cache/feed/minibatch_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "cache/feed/row_degrees.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMaxLocal = std::numeric_limits<std::uint32_t>::max();

/// Returns a subgraph that consists of the seeds, without edges.
Result<Minibatch> SeedsOnly(const GraphSnapshot& graph, const SeedBatch& seeds) {
  Minibatch minibatch;
  for (const VertexId vertex : seeds.vertices) {
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph.RowOf(vertex));
    minibatch.rows.push_back(row);
  }
  minibatch.hop_offsets = {0, minibatch.rows.size()};
  minibatch.offsets.assign(minibatch.rows.size() + 1, 0);
  return minibatch;
}

/// Returns whether the hops cover all rows in order, the lists cover all edges, and every edge
/// refers to a row.
bool IsWhole(const Minibatch& m) {
  const std::vector<std::uint32_t>& offsets = m.offsets;
  return m.hop_offsets.size() >= 2 && m.hop_offsets.front() == 0 &&
         std::is_sorted(m.hop_offsets.begin(), m.hop_offsets.end()) &&
         m.hop_offsets.back() == m.rows.size() &&
         (!m.hop_lists.empty() || offsets.size() <= m.rows.size() + 1) && !offsets.empty() &&
         offsets.front() == 0 && offsets.back() == m.neighbors.size() &&
         std::is_sorted(offsets.begin(), offsets.end()) &&
         std::all_of(m.neighbors.begin(), m.neighbors.end(),
                     [&](std::uint32_t local) { return local < m.rows.size(); });
}

}  // namespace

Result<Minibatch> MinibatchSampler::FromSubgraph(const SeedBatch& seeds,
                                                 SampledSubgraph subgraph) const {
  if (subgraph.neighbors.size() > kMaxLocal) {
    return Fail(Status::InvalidArgument(
        fmt::format("a minibatch has {} edges, which is too many; use a smaller batch or fanout",
                    subgraph.neighbors.size())));
  }
  Minibatch minibatch;
  minibatch.rows = std::move(subgraph.rows);
  minibatch.hop_offsets = std::move(subgraph.hop_offsets);
  minibatch.offsets.assign(subgraph.offsets.begin(), subgraph.offsets.end());
  minibatch.neighbors.assign(subgraph.neighbors.begin(), subgraph.neighbors.end());
  minibatch.edges = std::move(subgraph.edges);
  minibatch.seed_of = std::move(subgraph.seed_of);
  if (options_.sampler.frontier == Frontier::kAgain)
    minibatch.hop_lists = std::move(subgraph.hop_lists);
  if (options_.edge_types) minibatch.types = std::move(subgraph.types);
  if (options_.edge_weights) minibatch.weights = std::move(subgraph.weights);
  RHIZOME_RETURN_IF_ERROR(Complete(seeds, minibatch));
  return minibatch;
}

DistinctRows DistinctRowsOf(std::span<const Row> rows) {
  DistinctRows distinct;
  std::unordered_map<Row, std::uint32_t> known;
  for (const Row row : rows) {
    const auto [at, is_new] =
        known.try_emplace(row, static_cast<std::uint32_t>(distinct.rows.size()));
    if (is_new) distinct.rows.push_back(row);
    distinct.row_of.push_back(at->second);
  }
  return distinct;
}

void AddStep(const Minibatch& minibatch, Trace& trace) {
  if (minibatch.seed_of.empty()) return trace.AddStep(minibatch.rows);
  trace.AddStep(DistinctRowsOf(minibatch.rows).rows);
}

Result<MinibatchSampler> MinibatchSampler::Create(const GraphSnapshot& graph,
                                                  const MinibatchSamplerOptions& options,
                                                  std::shared_ptr<const NeighborSource> neighbors) {
  MinibatchSampler made(graph, options);
  if (options.no_edges) return made;
  RHIZOME_ASSIGN_OR_RETURN(made.sampler_, Sampler::Create(graph, options.sampler, neighbors));
  if (options.valid_sampler) {
    RHIZOME_ASSIGN_OR_RETURN(made.valid_sampler_,
                             Sampler::Create(graph, *options.valid_sampler, neighbors));
  }
  if (options.weighted_degrees) {
    RHIZOME_ASSIGN_OR_RETURN(made.weighted_degrees_,
                             WeightedDegrees(graph, options.sampler.direction));
  }
  made.neighbors_ = std::move(neighbors);
  return made;
}

Result<Minibatch> MinibatchSampler::Sample(const SeedBatch& seeds) const {
  std::optional<Minibatch> sampled;
  RHIZOME_RETURN_IF_ERROR(SampleTogether({&seeds, 1}, [&sampled](Minibatch& minibatch) {
    sampled = std::move(minibatch);
    return Status::Ok();
  }));
  return *std::move(sampled);
}

Status MinibatchSampler::SampleTogether(std::span<const SeedBatch> batches,
                                        const std::function<Status(Minibatch&)>& sink) const {
  // Batches of training and of validation may have different samplers.
  for (std::size_t begin = 0; begin < batches.size();) {
    std::size_t end = begin + 1;
    while (end < batches.size() && batches[end].is_valid == batches[begin].is_valid) ++end;
    RHIZOME_RETURN_IF_ERROR(SampleRun(batches.subspan(begin, end - begin), sink));
    begin = end;
  }
  return Status::Ok();
}

// Steps: (1) draw the subgraphs with the sampler of the batches (training or validation), or use
// the seeds alone without edges; (2) convert each to 32-bit numbers, with the requested edge
// attributes; (3) fill the requested types and degrees of all vertices (Complete).
Status MinibatchSampler::SampleRun(std::span<const SeedBatch> batches,
                                   const std::function<Status(Minibatch&)>& sink) const {
  if (sampler_ == nullptr) {
    for (const SeedBatch& seeds : batches) {
      RHIZOME_ASSIGN_OR_RETURN(Minibatch minibatch, SeedsOnly(*graph_, seeds));
      RHIZOME_RETURN_IF_ERROR(Complete(seeds, minibatch));
      RHIZOME_RETURN_IF_ERROR(sink(minibatch));
    }
    return Status::Ok();
  }
  std::vector<std::vector<std::int64_t>> times(batches.size());
  std::vector<std::vector<VertexPair>> left_out(batches.size());
  std::vector<SampleRequest> requests;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const SeedBatch& seeds = batches[i];
    RHIZOME_ASSIGN_OR_RETURN(times[i], TimesOf(seeds));
    for (const MinibatchPair& pair : seeds.pairs)
      if (seeds.leave_out)
        left_out[i].push_back({seeds.vertices[pair.src], seeds.vertices[pair.dst]});
    requests.push_back({.seeds = seeds.vertices,
                        .seed_times = times[i],
                        .batch = seeds.key,
                        .left_out = left_out[i]});
  }
  return SamplerOf(batches.front())
      .SampleTogether(requests, [&](std::size_t i, SampledSubgraph& subgraph) -> Status {
        RHIZOME_ASSIGN_OR_RETURN(Minibatch minibatch,
                                 FromSubgraph(batches[i], std::move(subgraph)));
        return sink(minibatch);
      });
}

/// Fills in everything that does not depend on edges.
Status MinibatchSampler::Complete(const SeedBatch& seeds, Minibatch& minibatch) const {
  RHIZOME_DCHECK(IsWhole(minibatch));
  minibatch.tag = seeds.tag;
  minibatch.seed_count = minibatch.hop_offsets[1];
  minibatch.pairs = seeds.pairs;
  minibatch.negatives = seeds.negatives;
  // The numbers of pairs and negatives are local numbers only if no seed is repeated.
  RHIZOME_DCHECK(seeds.pairs.empty() || minibatch.seed_count == seeds.vertices.size());
  if (options_.vertex_types) row_types_.Fill(minibatch);
  if (options_.degrees) RHIZOME_RETURN_IF_ERROR(FillDegrees(minibatch));
  if (options_.weighted_degrees) FillWeightedDegrees(minibatch);
  if (seeds.leave_out) RHIZOME_RETURN_IF_ERROR(LeaveOutOfDegrees(minibatch));
  return Status::Ok();
}

/// Returns the times of the seeds; empty unless the sampler is temporal.
Result<std::vector<std::int64_t>> MinibatchSampler::TimesOf(const SeedBatch& seeds) const {
  std::vector<std::int64_t> times;
  if (options_.seed_times == nullptr) return times;
  for (const VertexId vertex : seeds.vertices) {
    RHIZOME_ASSIGN_OR_RETURN(const Row row, graph_->RowOf(vertex));
    times.push_back((*options_.seed_times)[static_cast<std::size_t>(row)]);
  }
  return times;
}

void MinibatchSampler::FillWeightedDegrees(Minibatch& minibatch) const {
  minibatch.weighted_degrees.assign(minibatch.rows.size(), 0.0F);
  if (sampler_ == nullptr) return;  // without edges every sum is 0
  for (std::size_t i = 0; i < minibatch.rows.size(); ++i)
    minibatch.weighted_degrees[i] =
        weighted_degrees_[RHIZOME_MUTANT("degrees belong to other rows")
                              ? i
                              : static_cast<std::size_t>(minibatch.rows[i])];
}

Status MinibatchSampler::FillDegrees(Minibatch& minibatch) const {
  minibatch.degrees.assign(minibatch.rows.size(), 0);
  if (sampler_ == nullptr) return Status::Ok();  // without edges every degree is 0
  for (std::size_t i = 0; i < minibatch.rows.size(); ++i) {
    RHIZOME_ASSIGN_OR_RETURN(minibatch.degrees[i],
                             DegreeOfRow(*graph_, minibatch.rows[i], options_.sampler.direction));
  }
  return Status::Ok();
}

Status MinibatchSampler::LeaveOutOfDegrees(Minibatch& minibatch) const {
  if (sampler_ == nullptr || (minibatch.degrees.empty() && minibatch.weighted_degrees.empty()))
    return Status::Ok();
  if (left_out_degrees_ == nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(left_out_degrees_,
                             LeftOutDegrees::Create(*graph_, options_.sampler, neighbors_));
  }
  return left_out_degrees_->Correct(minibatch);
}

}  // namespace internal
}  // namespace rhizome
