#include "tools/bench/graph/bench_sample_delta.h"

#include <cmath>
#include <random>

#include "rhizome/sampler.h"
#include "rhizome/write_batch.h"

namespace rhizome {
namespace {

// Operations per batch.
constexpr std::size_t kBatch = 20000;

struct Written {
  std::uint64_t puts = 0;
  std::uint64_t deletes = 0;
};

/// Writes the updates. A new edge connects the source of an existing edge with the target of
/// another one, so that the degree distribution is preserved.
Result<Written> WriteShare(Graph& graph, double share, std::uint64_t seed,
                           const JobControl& control) {
  const auto before = graph.Snapshot();
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> unit;
  Written written;
  WriteBatch batch;
  VertexId target = 0;
  const auto write = [&]() -> Status {
    if (batch.empty()) return Status::Ok();
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    const auto done = graph.Write(batch, {.sync = false});
    batch.Clear();
    return done ? Status::Ok() : done.error();
  };
  for (std::uint64_t v = 0; v < before->vertex_count(); ++v) {
    const auto vertex = static_cast<VertexId>(v);
    RHIZOME_ASSIGN_OR_RETURN(const auto list, before->Neighbors(vertex, Direction::kOut));
    for (const Neighbor& neighbor : list) {
      const double u = unit(random);
      if (u < share / 2) {
        batch.DeleteEdge(*before->ExternalIdOf(vertex), *before->ExternalIdOf(neighbor.vertex));
        ++written.deletes;
      } else if (u < share) {
        batch.PutEdge(*before->ExternalIdOf(vertex), *before->ExternalIdOf(target));
        ++written.puts;
      }
      if (unit(random) < 0.3) target = neighbor.vertex;
    }
    if (batch.size() >= kBatch) RHIZOME_RETURN_IF_ERROR(write());
  }
  RHIZOME_RETURN_IF_ERROR(write());
  return written;
}

}  // namespace

Result<nlohmann::ordered_json> SampleWithDelta(const BenchGraph& opened, const Sampler& plain,
                                               const SamplerOptions& sampling,
                                               const BenchSampleOptions& options,
                                               const SampleRate& rate, const JobControl& control) {
  if (opened.scratch == nullptr) {
    return Fail(
        Status::InvalidArgument("--delta writes to the graph, so it cannot be used with --store"));
  }
  // A separate handle, so that `plain` continues to read the unchanged store.
  RHIZOME_ASSIGN_OR_RETURN(
      const auto store, Store::Open(opened.store->fs(), opened.store->path(), Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store));
  RHIZOME_ASSIGN_OR_RETURN(const Written written,
                           WriteShare(*graph, options.delta, options.graph.seed, control));
  RHIZOME_ASSIGN_OR_RETURN(const auto merged, Sampler::Create(*graph, sampling));
  std::vector<double> with;
  std::vector<double> ratios;
  // The first round warms the caches and is not counted.
  for (std::uint32_t r = 0; r <= options.rounds; ++r) {
    RHIZOME_RETURN_IF_ERROR(control.Report(
        {.phase = "sample with a delta", .done = r, .total = options.rounds, .detail = {}}));
    const bool first = r % 2 == 0;
    RHIZOME_ASSIGN_OR_RETURN(const double a, rate(first ? plain : *merged, r));
    RHIZOME_ASSIGN_OR_RETURN(const double b, rate(first ? *merged : plain, r));
    if (r == 0) continue;
    with.push_back(std::round(first ? b : a));
    ratios.push_back(first ? b / a : a / b);
  }
  return nlohmann::ordered_json{{"share", options.delta},
                                {"puts", written.puts},
                                {"deletes", written.deletes},
                                {"edges_per_cpu_second", Median(with)},
                                {"of_plain", Median(ratios)}};
}

}  // namespace rhizome
