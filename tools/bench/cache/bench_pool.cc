#include "tools/bench/cache/bench_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "cache/policy/basic_policies.h"
#include "cache/policy/match_order.h"
#include "cache/policy/replay.h"
#include "rhizome/policy.h"
#include "storage/base/stopwatch.h"
#include "tools/bench/cache/bench_pool_device.h"
#include "tools/bench/cache/bench_pool_disk.h"
#include "tools/bench/cache/bench_pool_trace.h"
#include "tools/bench/harness/bench_common.h"

namespace rhizome {
namespace {

constexpr std::array kContestants = {PolicyKind::kBelady, PolicyKind::kCost,  PolicyKind::kLru,
                                     PolicyKind::kFifo,   PolicyKind::kClock, PolicyKind::kS3Fifo,
                                     PolicyKind::kStatic, PolicyKind::kMatch};

/// The trace of one superbatch, in its original order and as reordered by MatchOrder.
struct Traces {
  Trace given;
  std::optional<Trace> reordered;
  double reorder_seconds = 0;
};

Result<Traces> MakeTraces(Trace given, std::uint64_t row_count, std::uint32_t window) {
  Traces traces{.given = std::move(given), .reordered = {}};
  if (window == 0) return traces;
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> order,
                           MatchOrder(traces.given, row_count, window));
  traces.reorder_seconds = watch.seconds();
  RHIZOME_ASSIGN_OR_RETURN(traces.reordered, Reordered(traces.given, order));
  return traces;
}

nlohmann::ordered_json CountsJson(const ReplayCounts& counts) {
  const double requests = static_cast<double>(std::max<std::uint64_t>(counts.requests, 1));
  return {{"reads", counts.reads()},
          {"prefill", counts.prefill},
          {"hits", counts.hits},
          {"saved_share", 1 - static_cast<double>(counts.reads()) / requests}};
}

/// Replays a trace and returns its counts, and the time that the reads would take on a disk with
/// the parameters `cost`.
Result<nlohmann::ordered_json> PolicyJson(Policy& counted, Policy& timed, const Trace& trace,
                                          const BenchPoolOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(const ReplayCounts counts, Replay(counted, trace));
  nlohmann::ordered_json json = CountsJson(counts);
  RHIZOME_ASSIGN_OR_RETURN(const ReplayTime time,
                           ReplayReads(timed, trace, options.row_bytes, options.cost));
  json["disk_reads"] = time.reads;
  json["bytes_per_useful"] =
      static_cast<double>(time.bytes) /
      static_cast<double>(std::max<std::uint64_t>(trace.keys.size() * options.row_bytes, 1));
  json["disk_seconds"] = time.seconds;
  return json;
}

/// Returns the reads of the reordered trace, and the share of reads that reordering saves (negative
/// if it adds reads).
Result<nlohmann::ordered_json> ReorderedJson(Policy& counted, Policy& timed, const Trace& reordered,
                                             const BenchPoolOptions& options,
                                             const nlohmann::ordered_json& given) {
  RHIZOME_ASSIGN_OR_RETURN(nlohmann::ordered_json json,
                           PolicyJson(counted, timed, reordered, options));
  json["reads_saved"] =
      1 - json["reads"].get<double>() / std::max(given["reads"].get<double>(), 1.0);
  json["seconds_saved"] =
      1 - json["disk_seconds"].get<double>() / std::max(given["disk_seconds"].get<double>(), 1e-12);
  return json;
}

/// Replays the trace in consecutive superbatches with each prior. Counts the rows that are read,
/// including those that fill the pool at first, and the time per minibatch on a disk.
Result<nlohmann::ordered_json> ComparePriors(const Trace& trace, const PolicyOptions& policy,
                                             const std::vector<std::uint32_t>& superbatches) {
  auto compared = nlohmann::ordered_json::array();
  for (const std::uint32_t superbatch : superbatches) {
    nlohmann::ordered_json json = {{"superbatch", superbatch}};
    for (const PolicyKind kind : {PolicyKind::kBelady, PolicyKind::kCost}) {
      PolicyOptions one = policy;
      one.kind = kind;
      RHIZOME_ASSIGN_OR_RETURN(const SuperbatchReplay none,
                               ReplaySuperbatches(trace, superbatch, one, Prior::kNone));
      RHIZOME_ASSIGN_OR_RETURN(const SuperbatchReplay uses,
                               ReplaySuperbatches(trace, superbatch, one, Prior::kUses));
      const auto reads = [](std::uint64_t rows) {
        return static_cast<double>(std::max<std::uint64_t>(rows, 1));
      };
      const std::string name(PolicyName(kind));
      json[name + "_reads"] = none.rows;
      json[name + "_reads_with_prior"] = uses.rows;
      json[name + "_saved_share"] = 1 - reads(uses.rows) / reads(none.rows);
      json[name + "_seconds"] = none.step_seconds;
      json[name + "_seconds_with_prior"] = uses.step_seconds;
    }
    compared.push_back(std::move(json));
  }
  return compared;
}

/// Accesses per second in building schedules.
struct ScheduleRates {
  std::vector<double> belady;
  std::vector<double> cost;
};

/// Replays the trace through every policy with a pool that holds `share` of the rows.
Result<nlohmann::ordered_json> ComparePolicies(const Traces& traces, std::uint64_t row_count,
                                               double share, const BenchPoolOptions& options,
                                               ScheduleRates& rates) {
  const auto frames = static_cast<std::uint32_t>(share * static_cast<double>(row_count));
  const auto make = [&](PolicyKind kind, const Trace& trace) {
    return MakePolicy({.kind = kind,
                       .frame_count = frames,
                       .key_count = row_count,
                       .unit_bytes = options.row_bytes,
                       .cost = options.cost},
                      trace);
  };
  nlohmann::ordered_json pool = {{"share", share}, {"frames", frames}};
  for (const PolicyKind kind : kContestants) {
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(const auto counted, make(kind, traces.given));
    const double rate = static_cast<double>(traces.given.keys.size()) / watch.seconds();
    if (kind == PolicyKind::kBelady) rates.belady.push_back(rate);
    if (kind == PolicyKind::kCost) rates.cost.push_back(rate);
    nlohmann::ordered_json& json = pool[std::string(PolicyName(kind))];
    RHIZOME_ASSIGN_OR_RETURN(const auto timed, make(kind, traces.given));
    RHIZOME_ASSIGN_OR_RETURN(json, PolicyJson(*counted, *timed, traces.given, options));
    if (!traces.reordered) continue;
    RHIZOME_ASSIGN_OR_RETURN(const auto counted_again, make(kind, *traces.reordered));
    RHIZOME_ASSIGN_OR_RETURN(const auto timed_again, make(kind, *traces.reordered));
    RHIZOME_ASSIGN_OR_RETURN(json["reordered"], ReorderedJson(*counted_again, *timed_again,
                                                              *traces.reordered, options, json));
  }
  if (!options.superbatches.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(pool["superbatches"], ComparePriors(traces.given,
                                                                 {.frame_count = frames,
                                                                  .key_count = row_count,
                                                                  .unit_bytes = options.row_bytes,
                                                                  .cost = options.cost},
                                                                 options.superbatches));
  }
  pool["cost_over_belady"] = pool["belady"]["disk_seconds"].get<double>() /
                             std::max(pool["cost"]["disk_seconds"].get<double>(), 1e-12);
  return pool;
}

/// Adds the figure of a run that only counts device pools.
void SummarizeDevicePools(nlohmann::ordered_json& json) {
  double belady = 0;
  double fixed = 0;
  for (const auto& pool : json["device_pools"]) {
    belady += pool["belady_bytes"].get<double>();
    fixed += pool["gnnlab_static_bytes"].get<double>();
  }
  json["figure"] = belady;
  json["unit"] = "bytes over the bus a minibatch with Belady, all device pools added up";
  json["reference"] = fixed;
  json["reference_name"] = "the same with a static set that was sampled before";
  json["ratio"] = belady / std::max(fixed, 1.0);
}

Status CheckPoolOptions(const BenchPoolOptions& options) {
  for (const auto& shares : {options.shares, options.device_shares}) {
    for (const double share : shares) {
      if (!(share > 0 && share <= 1)) {
        return Status::InvalidArgument(
            "bench pool: a share of the rows must be above 0 and at most 1");
      }
    }
  }
  if ((options.shares.empty() && options.device_shares.empty()) || options.superbatch == 0) {
    return Status::InvalidArgument("bench pool needs at least one share and one minibatch");
  }
  for (const std::uint32_t superbatch : options.superbatches) {
    if (superbatch == 0 || superbatch > options.superbatch) {
      return Status::InvalidArgument(
          fmt::format("--superbatches: {} is not between 1 and the {} minibatches of the trace",
                      superbatch, options.superbatch));
    }
  }
  return Status::Ok();
}

}  // namespace

// Compares cache policies: (1) samples the trace of a superbatch, and reorders it if requested; (2)
// replays it through each policy for each pool size; (3) counts the uploads of device pools; (4)
// with an array, reads the rows from disk (BenchPoolOnDisk).
Result<nlohmann::ordered_json> BenchPool(const BenchPoolOptions& options,
                                         const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckPoolOptions(options));
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph opened, OpenBenchGraph(options.graph, control));
  const std::uint64_t row_count = opened.graph->vertex_count();
  RHIZOME_ASSIGN_OR_RETURN(Trace sampled, SampleTrace(options, *opened.graph, control));
  if (!options.trace_out.empty())
    RHIZOME_RETURN_IF_ERROR(WriteTrace(sampled, *opened.graph, options.trace_out));
  RHIZOME_ASSIGN_OR_RETURN(const Traces traces,
                           MakeTraces(std::move(sampled), row_count, options.reorder));
  const Trace& trace = traces.given;

  auto pools = nlohmann::ordered_json::array();
  ScheduleRates rates;
  std::uint64_t belady_reads = 0;
  std::uint64_t lru_reads = 0;
  for (const double share : options.shares) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "replay", .done = pools.size(), .total = options.shares.size()}));
    RHIZOME_ASSIGN_OR_RETURN(nlohmann::ordered_json pool,
                             ComparePolicies(traces, row_count, share, options, rates));
    pools.push_back(std::move(pool));
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
  json["seeds"] = options.seeds == BenchSeeds::kGrouped ? "grouped" : "shuffled";
  json["reorder"] = options.reorder;
  if (options.reorder > 0) json["reorder_seconds"] = traces.reorder_seconds;
  json["requests"] = trace.keys.size();
  if (!options.shares.empty()) {
    json["schedule_accesses_per_second"] = std::round(Median(rates.belady));
    json["cost_schedule_accesses_per_second"] = std::round(Median(rates.cost));
  }
  json["row_bytes"] = options.row_bytes;
  json["seconds_per_read"] = options.cost.seconds_per_read;
  json["bytes_per_second"] = options.cost.bytes_per_second;
  json["pools"] = std::move(pools);
  if (!options.device_shares.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(const Trace before,
                             SampleTrace(options, *opened.graph, control, options.superbatch));
    RHIZOME_ASSIGN_OR_RETURN(json["device_pools"],
                             CountDeviceBytes(options, trace, before, row_count));
    if (options.shares.empty()) SummarizeDevicePools(json);
  }
  if (!options.array.empty()) {
    RHIZOME_ASSIGN_OR_RETURN(json["disk"], BenchPoolOnDisk(options, *opened.store, trace, control));
  }
  json["machine"] = DescribeMachine(opened.store->path());
  return json;
}

}  // namespace rhizome
