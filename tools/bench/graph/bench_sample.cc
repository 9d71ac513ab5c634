#include "tools/bench/graph/bench_sample.h"

#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "rhizome/sampler.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/graph/bench_sample_balance.h"
#include "tools/bench/graph/bench_sample_delta.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

/// Result of one round of sampling, and its time.
struct SamplingTurn {
  std::uint64_t edges = 0;
  std::uint64_t vertices = 0;
  double seconds = 0;
  double cpu_seconds = 0;
};

using Batches = std::vector<std::vector<VertexId>>;

/// Samples the share of the batches that belongs to one of `callers` concurrent callers.
Status SampleShare(const Sampler& sampler, const Batches& seeds, std::uint64_t first_batch,
                   std::size_t caller, std::size_t callers, const JobControl& control,
                   SamplingTurn& round) {
  SampledSubgraph subgraph;
  for (std::size_t b = caller; b < seeds.size(); b += callers) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_RETURN_IF_ERROR(sampler.SampleInto(seeds[b], {}, first_batch + b, subgraph));
    round.edges += subgraph.neighbors.size();
    round.vertices += subgraph.rows.size();
  }
  return Status::Ok();
}

Result<SamplingTurn> SampleTurn(const Sampler& sampler, const Batches& seeds,
                                std::uint64_t first_batch, std::uint32_t callers,
                                const JobControl& control) {
  std::vector<SamplingTurn> shares(callers);
  std::vector<Status> statuses(callers);
  const Stopwatch watch;
  const double cpu_start = ProcessCpuSeconds();
  std::vector<std::thread> threads;
  for (std::uint32_t c = 1; c < callers; ++c) {
    threads.emplace_back([&, c] {
      statuses[c] = SampleShare(sampler, seeds, first_batch, c, callers, control, shares[c]);
    });
  }
  statuses[0] = SampleShare(sampler, seeds, first_batch, 0, callers, control, shares[0]);
  for (std::thread& thread : threads) thread.join();
  SamplingTurn round;
  round.cpu_seconds = ProcessCpuSeconds() - cpu_start;
  round.seconds = watch.seconds();
  for (std::uint32_t c = 0; c < callers; ++c) {
    RHIZOME_RETURN_IF_ERROR(std::move(statuses[c]));
    round.edges += shares[c].edges;
    round.vertices += shares[c].vertices;
  }
  return round;
}

SamplerOptions SamplingOf(const BenchSampleOptions& options, const GraphSnapshot& graph) {
  SamplerOptions sampling;
  sampling.fanouts = options.graph.fanouts;
  sampling.seed = options.graph.seed;
  sampling.threads = options.callers > 1 ? 1 : options.graph.threads;
  sampling.frontier = options.again ? Frontier::kAgain : Frontier::kOnce;
  switch (options.kind) {
    case BenchSampleKind::kUniform:
      break;
    case BenchSampleKind::kReplace:
      sampling.replace = true;
      break;
    case BenchSampleKind::kWeighted:
      sampling.weighted = true;
      break;
    case BenchSampleKind::kDisjoint:
      sampling.disjoint = true;
      break;
    case BenchSampleKind::kTyped:
      for (const std::int64_t fanout : sampling.fanouts) {
        sampling.typed_fanouts.emplace_back(graph.edge_types().size(), fanout);
      }
      sampling.fanouts.clear();
      break;
  }
  return sampling;
}

Status CheckSampleOptions(const BenchSampleOptions& options) {
  if (options.batches == 0 || options.rounds == 0 || options.graph.batch_size == 0 ||
      options.callers == 0) {
    return Status::InvalidArgument(
        "bench sample needs at least one round of one batch of one seed");
  }
  return Status::Ok();
}

}  // namespace

const char* NameOf(BenchSampleKind kind) {
  switch (kind) {
    case BenchSampleKind::kUniform:
      return "uniform";
    case BenchSampleKind::kReplace:
      return "replace";
    case BenchSampleKind::kWeighted:
      return "weighted";
    case BenchSampleKind::kTyped:
      return "typed";
    case BenchSampleKind::kDisjoint:
      return "disjoint";
  }
  return "unknown";
}

Result<nlohmann::ordered_json> BenchSample(const BenchSampleOptions& options,
                                           const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckSampleOptions(options));
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph opened, OpenBenchGraph(options.graph, control));
  const SamplerOptions sampling = SamplingOf(options, *opened.graph);
  RHIZOME_ASSIGN_OR_RETURN(const auto sampler, Sampler::Create(*opened.graph, sampling));

  Batches seeds;
  for (std::uint32_t b = 0; b < options.batches; ++b) {
    seeds.push_back(
        DrawSeeds(opened.graph->vertex_count(), options.graph.batch_size, options.graph.seed, b));
  }
  std::vector<double> rates;
  std::vector<double> cpu_rates;
  SamplingTurn last;
  // The first round warms the caches and is not counted.
  for (std::uint32_t r = 0; r <= options.rounds; ++r) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "sample", .done = r, .total = options.rounds}));
    RHIZOME_ASSIGN_OR_RETURN(
        last, SampleTurn(*sampler, seeds, r * seeds.size(), options.callers, control));
    if (r == 0) continue;
    const auto edges = static_cast<double>(last.edges);
    rates.push_back(std::round(edges / last.seconds));
    cpu_rates.push_back(std::round(edges / std::max(last.cpu_seconds, 1e-9)));
  }

  nlohmann::ordered_json json = {{"workload", "sample"}, {"figure", Median(rates)},
                                 {"unit", "edges/s"},    {"reference", nullptr},
                                 {"ratio", nullptr},     {"rounds", rates}};
  json["edges_per_cpu_second"] = Median(cpu_rates);
  json.update(DescribeGraph(options.graph, *opened.graph));
  json["kind"] = NameOf(options.kind);
  json["frontier"] = options.again ? "again" : "once";
  json["fanouts"] = options.graph.fanouts;
  json["batch_size"] = options.graph.batch_size;
  json["batches"] = options.batches;
  json["threads"] = sampling.threads;
  json["callers"] = options.callers;
  json["edges_per_batch"] = static_cast<double>(last.edges) / options.batches;
  json["vertices_per_batch"] = static_cast<double>(last.vertices) / options.batches;
  if (options.reference) {
    json["reference"] = *options.reference;
    json["ratio"] = Median(rates) / *options.reference;
  }
  if (options.delta > 0) {
    const SampleRate rate = [&](const Sampler& one, std::uint32_t round) -> Result<double> {
      RHIZOME_ASSIGN_OR_RETURN(const SamplingTurn done, SampleTurn(one, seeds, round * seeds.size(),
                                                                   options.callers, control));
      return static_cast<double>(done.edges) / std::max(done.cpu_seconds, 1e-9);
    };
    RHIZOME_ASSIGN_OR_RETURN(json["delta"],
                             SampleWithDelta(opened, *sampler, sampling, options, rate, control));
  }
  if (options.balance) {
    RHIZOME_ASSIGN_OR_RETURN(json["balance"],
                             SampleBalance(*opened.graph, sampling, options, control));
  }
  json["machine"] = DescribeMachine(opened.store->path());
  return json;
}

}  // namespace rhizome
