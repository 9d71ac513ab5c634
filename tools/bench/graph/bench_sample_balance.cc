#include "tools/bench/graph/bench_sample_balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "index/delta/delta.h"
#include "index/input/npy.h"
#include "index/sample/plain_neighbors.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "rhizome/sampler.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

/// Counts the entries looked up in each partition.
class CountingNeighbors final : public NeighborSource {
 public:
  CountingNeighbors(const GraphSnapshot& graph, Direction direction)
      : lists_(graph, direction), counts_(graph.partition_count()) {}

  Status LookUp(std::span<const EntryRef> entries, std::span<Row> rows) const override {
    for (const EntryRef& entry : entries) {
      counts_[entry.partition].fetch_add(1, std::memory_order_relaxed);
    }
    return lists_.LookUp(entries, rows);
  }

  /// Returns the counts since the last call, and resets them.
  std::vector<std::uint64_t> Take() const {
    std::vector<std::uint64_t> counts;
    for (std::atomic<std::uint64_t>& count : counts_) counts.push_back(count.exchange(0));
    return counts;
  }

 private:
  const PlainNeighbors lists_;
  mutable std::vector<std::atomic<std::uint64_t>> counts_;
};

/// An edge cut: the part of each vertex.
struct EdgeCut {
  std::string name;
  std::vector<std::int32_t> part_of;  ///< by vertex id
};

EdgeCut OwnersOf(const GraphSnapshot& graph) {
  EdgeCut cut{.name = "owner", .part_of = std::vector<std::int32_t>(graph.vertex_count())};
  for (std::uint64_t v = 0; v < graph.vertex_count(); ++v) {
    cut.part_of[v] = graph.order().OwnerOf(graph.order().RowOf(static_cast<VertexId>(v)));
  }
  return cut;
}

/// Reads an edge cut: int32 [vertices], by vertex id, each value in [0, parts).
Result<EdgeCut> ReadCut(const Path& path, std::uint64_t vertices, std::uint32_t parts) {
  RHIZOME_ASSIGN_OR_RETURN(const auto reader, NpyReader::Open(FileSystem::Posix(), path));
  const NpyHeader& header = reader->header();
  if (header.dtype != DataType::kInt32 || header.rows() != vertices || header.dim() != 1) {
    return Fail(Status::InvalidArgument(fmt::format(
        "{}: expected int32 [{}], the partition of each vertex", path.string(), vertices)));
  }
  EdgeCut cut{.name = path.filename().string(), .part_of = std::vector<std::int32_t>(vertices)};
  RHIZOME_RETURN_IF_ERROR(reader->Read(std::as_writable_bytes(std::span(cut.part_of))));
  for (const std::int32_t part : cut.part_of) {
    if (part >= 0 && static_cast<std::uint32_t>(part) < parts) continue;
    return Fail(Status::InvalidArgument(
        fmt::format("{}: partition {} does not exist; the store has {} partitions", path.string(),
                    part, parts)));
  }
  return cut;
}

nlohmann::ordered_json Describe(const std::string& cut, const std::string& seeds,
                                const std::vector<std::uint64_t>& work) {
  const double sum =
      static_cast<double>(std::accumulate(work.begin(), work.end(), std::uint64_t{0}));
  const double mean = sum / static_cast<double>(work.size());
  const auto most = static_cast<double>(*std::max_element(work.begin(), work.end()));
  return {{"cut", cut},
          {"seeds", seeds},
          {"max_over_mean", mean > 0 ? most / mean : 0.0},
          {"work", work}};
}

/// Adds the entries drawn for each vertex to the work of its part.
void AddWork(const GraphSnapshot& graph, const SampledSubgraph& sample, Frontier frontier,
             const EdgeCut& cut, std::vector<std::uint64_t>& work) {
  for (std::size_t hop = 0; hop + 1 < sample.hop_lists.size(); ++hop) {
    for (std::uint64_t list = sample.hop_lists[hop]; list < sample.hop_lists[hop + 1]; ++list) {
      const Row row = sample.rows[sample.VertexOfList(hop, list, frontier)];
      const auto part = cut.part_of[static_cast<std::size_t>(*graph.VertexAt(row))];
      work[static_cast<std::size_t>(part)] += sample.offsets[list + 1] - sample.offsets[list];
    }
  }
}

}  // namespace

// Samples with even seeds, then with all seeds in part 0 of each cut. Counts the work of the
// store's partitions and of the parts of each cut, which serve whole lists.
Result<nlohmann::ordered_json> SampleBalance(const GraphSnapshot& graph,
                                             const SamplerOptions& sampling,
                                             const BenchSampleOptions& options,
                                             const JobControl& control) {
  if (!graph.delta()->empty()) {
    return Fail(
        Status::InvalidArgument("--balance compares the work of a generation's partitions, but the "
                                "store has newer writes; compact it first"));
  }
  std::vector<EdgeCut> cuts = {OwnersOf(graph)};
  if (options.vertex_parts) {
    RHIZOME_ASSIGN_OR_RETURN(
        EdgeCut cut, ReadCut(*options.vertex_parts, graph.vertex_count(), graph.partition_count()));
    cuts.push_back(std::move(cut));
  }
  const auto source = std::make_shared<const CountingNeighbors>(graph, sampling.direction);
  RHIZOME_ASSIGN_OR_RETURN(const auto sampler, Sampler::Create(graph, sampling, source));
  auto answer = nlohmann::ordered_json::array();
  // Round 0 draws seeds from all vertices. Each further round is skewed: all seeds are in part 0 of
  // one of the cuts (the store's owners, or the given cut).
  for (std::size_t skew = 0; skew <= cuts.size(); ++skew) {
    const std::string seeds_name =
        skew == 0 ? "even" : fmt::format("all in part 0 of {}", cuts[skew - 1].name);
    std::vector<VertexId> candidates;
    for (std::size_t v = 0; v < graph.vertex_count(); ++v) {
      if (skew == 0 || cuts[skew - 1].part_of[v] == 0) {
        candidates.push_back(static_cast<VertexId>(v));
      }
    }
    if (candidates.empty()) continue;
    std::vector<std::vector<std::uint64_t>> work(
        cuts.size(), std::vector<std::uint64_t>(graph.partition_count()));
    source->Take();
    for (std::uint32_t b = 0; b < options.batches; ++b) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      std::vector<VertexId> seeds =
          DrawSeeds(candidates.size(), options.graph.batch_size, options.graph.seed, b);
      for (VertexId& seed : seeds) seed = candidates[static_cast<std::size_t>(seed)];
      RHIZOME_ASSIGN_OR_RETURN(const SampledSubgraph sample, sampler->Sample(seeds, b));
      for (std::size_t c = 0; c < cuts.size(); ++c) {
        AddWork(graph, sample, sampling.frontier, cuts[c], work[c]);
      }
    }
    answer.push_back(Describe("store", seeds_name, source->Take()));
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      answer.push_back(Describe(cuts[c].name, seeds_name, work[c]));
    }
  }
  return answer;
}

}  // namespace rhizome
