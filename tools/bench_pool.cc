#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "bench_common.h"
#include "bench_pool_disk.h"
#include "rhizome/cache/cost_schedule.h"
#include "rhizome/cache/policy.h"

namespace rhizome {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The rows of one superbatch: a step for each minibatch.
Result<Trace> SampleTrace(const BenchPoolOptions& options, const Graph& graph,
                          const JobControl& control) {
  SamplerOptions sampling;
  sampling.fanouts = options.graph.fanouts;
  sampling.seed = options.graph.seed;
  sampling.threads = options.graph.threads;
  RHIZOME_ASSIGN_OR_RETURN(const auto sampler, Sampler::Create(graph, sampling));
  Trace trace;
  for (std::uint32_t b = 0; b < options.superbatch; ++b) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "sample", .done = b, .total = options.superbatch}));
    const std::vector<VertexId> seeds =
        DrawSeeds(graph.vertex_count(), options.graph.batch_size, options.graph.seed, b);
    RHIZOME_ASSIGN_OR_RETURN(const SampledSubgraph subgraph, sampler->Sample(seeds, b));
    trace.AddStep(subgraph.rows);
  }
  return trace;
}

constexpr std::array kContestants = {PolicyKind::kBelady, PolicyKind::kCost,  PolicyKind::kLru,
                                     PolicyKind::kFifo,   PolicyKind::kClock, PolicyKind::kS3Fifo,
                                     PolicyKind::kStatic};

nlohmann::ordered_json CountsJson(const ReplayCounts& counts) {
  const double requests = static_cast<double>(std::max<std::uint64_t>(counts.requests, 1));
  return {{"reads", counts.reads()},
          {"prefill", counts.prefill},
          {"hits", counts.hits},
          {"saved_share", 1 - static_cast<double>(counts.reads()) / requests}};
}

/// The same with what the reads would take on a disk that reads as `cost` says.
nlohmann::ordered_json PolicyJson(Policy& counted, Policy& timed, const Trace& trace,
                                  const BenchPoolOptions& options) {
  nlohmann::ordered_json json = CountsJson(Replay(counted, trace));
  const ReplayTime time = ReplayReads(timed, trace, options.row_bytes, options.cost);
  json["disk_reads"] = time.reads;
  json["bytes_per_useful"] =
      static_cast<double>(time.bytes) /
      static_cast<double>(std::max<std::uint64_t>(trace.keys.size() * options.row_bytes, 1));
  json["disk_seconds"] = time.seconds;
  return json;
}

/// One size of the pool: the same trace through every policy.
nlohmann::ordered_json ComparePolicies(const Trace& trace, std::uint64_t row_count, double share,
                                       const BenchPoolOptions& options,
                                       std::vector<double>& schedule_rates,
                                       std::vector<double>& cost_rates) {
  const auto frames = static_cast<std::uint32_t>(share * static_cast<double>(row_count));
  const auto make = [&](PolicyKind kind) {
    return MakePolicy({.kind = kind,
                       .frame_count = frames,
                       .key_count = row_count,
                       .unit_bytes = options.row_bytes,
                       .cost = options.cost},
                      trace);
  };
  nlohmann::ordered_json pool = {{"share", share}, {"frames", frames}};
  for (const PolicyKind kind : kContestants) {
    const auto start = Clock::now();
    const auto counted = make(kind);
    const double rate = static_cast<double>(trace.keys.size()) / SecondsSince(start);
    if (kind == PolicyKind::kBelady) schedule_rates.push_back(rate);
    if (kind == PolicyKind::kCost) cost_rates.push_back(rate);
    pool[std::string(PolicyName(kind))] = PolicyJson(*counted, *make(kind), trace, options);
  }
  pool["cost_over_belady"] = pool["belady"]["disk_seconds"].get<double>() /
                             std::max(pool["cost"]["disk_seconds"].get<double>(), 1e-12);
  return pool;
}

Status CheckOptions(const BenchPoolOptions& options) {
  for (const double share : options.shares) {
    if (!(share > 0 && share <= 1)) {
      return Status::InvalidArgument("bench pool: a share of the rows lies above 0 and up to 1");
    }
  }
  if (options.shares.empty() || options.superbatch == 0) {
    return Status::InvalidArgument("bench pool needs at least one share and one minibatch");
  }
  return Status::Ok();
}

}  // namespace

Result<nlohmann::ordered_json> BenchPool(const BenchPoolOptions& options,
                                         const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckOptions(options));
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph opened, OpenBenchGraph(options.graph, control));
  const std::uint64_t row_count = opened.graph->vertex_count();
  RHIZOME_ASSIGN_OR_RETURN(const Trace trace, SampleTrace(options, *opened.graph, control));

  auto pools = nlohmann::ordered_json::array();
  std::vector<double> schedule_rates;
  std::vector<double> cost_rates;
  std::uint64_t belady_reads = 0;
  std::uint64_t lru_reads = 0;
  for (const double share : options.shares) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "replay", .done = pools.size(), .total = options.shares.size()}));
    pools.push_back(ComparePolicies(trace, row_count, share, options, schedule_rates, cost_rates));
    belady_reads += pools.back()["belady"]["reads"].get<std::uint64_t>();
    lru_reads += pools.back()["lru"]["reads"].get<std::uint64_t>();
  }

  nlohmann::ordered_json json = {
      {"workload", "pool"},
      {"figure", belady_reads},
      {"unit", "reads of Belady over all pools"},
      {"reference", lru_reads},
      {"reference_name", "reads of LRU over all pools"},
      {"ratio", static_cast<double>(belady_reads) /
                    static_cast<double>(std::max<std::uint64_t>(lru_reads, 1))}};
  json.update(DescribeGraph(options.graph, *opened.graph));
  json["fanouts"] = options.graph.fanouts;
  json["batch_size"] = options.graph.batch_size;
  json["superbatch"] = options.superbatch;
  json["requests"] = trace.keys.size();
  json["schedule_accesses_per_second"] = std::round(Median(schedule_rates));
  json["cost_schedule_accesses_per_second"] = std::round(Median(cost_rates));
  json["row_bytes"] = options.row_bytes;
  json["seconds_per_read"] = options.cost.seconds_per_read;
  json["bytes_per_second"] = options.cost.bytes_per_second;
  json["pools"] = std::move(pools);
  if (!options.array.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(json["disk"], BenchPoolOnDisk(options, *opened.store, trace, control));
  }
  json["machine"] = DescribeMachine(opened.store->path());
  return json;
}

}  // namespace rhizome
