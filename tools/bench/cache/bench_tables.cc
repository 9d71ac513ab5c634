#include "tools/bench/cache/bench_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "cache/policy/belady_schedule.h"
#include "cache/policy/offline_schedule.h"
#include "cache/policy/sweep.h"
#include "cache/tables/link_batches.h"
#include "index/topology/adjacency.h"
#include "tools/bench/cache/bench_table_disk.h"
#include "tools/bench/harness/bench_common.h"

// Steps: (1) make the batches of some epochs, and from them a trace of table rows for each epoch;
// (2) for each share of the rows in memory, make the Belady schedule of each trace, which begins
// with the rows that the previous one left, and count its reads; (3) count the rows that BETA's
// swaps read, for the best number of parts; (4) if rows have a size, measure
// both on disk (bench_table_disk.h).

namespace rhizome {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint32_t kMinParts = 8;
constexpr std::uint32_t kMaxParts = 512;

struct Beta {
  double reads = std::numeric_limits<double>::infinity();  // rows read over rows
  std::uint32_t parts = 0;
};

/// Returns the number of parts with the fewest rows read in an epoch. A buffer of one part could
/// not hold two parts.
Beta BestBeta(double share) {
  Beta best;
  for (std::uint32_t parts = kMinParts; parts <= kMaxParts; parts *= 2) {
    const auto buffer = static_cast<std::uint32_t>(share * parts + 1e-9);
    if (buffer < 2 || buffer >= parts) continue;
    const double reads =
        static_cast<double>(buffer + BetaOrder(parts, buffer).size()) / static_cast<double>(parts);
    if (reads < best.reads) best = {reads, parts};
  }
  return best;
}

Result<std::vector<Trace>> MakeTraces(LinkBatches& batches, std::uint32_t epochs,
                                      const JobControl& control) {
  std::vector<Trace> traces(epochs);
  LinkBatch batch;
  for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::uint64_t b = 0; b < batches.batches(); ++b) {
      RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
      RHIZOME_RETURN_IF_ERROR(batches.Make(epoch, b, batch));
      traces[epoch].AddStep(batch.rows);
    }
  }
  return traces;
}

/// Returns the rows read by the epochs after the first one, per epoch.
Result<double> CountReads(const std::vector<Trace>& traces, std::uint32_t frame_count,
                          std::uint64_t rows) {
  FrameKeys frames(frame_count, kNoRow);
  std::uint64_t reads = 0;
  StepPlan plan;
  for (std::size_t epoch = 0; epoch < traces.size(); ++epoch) {
    RHIZOME_ASSIGN_OR_RETURN(const auto policy, MakeClassSchedule(traces[epoch], frame_count, rows,
                                                                  AccessCosts(), nullptr, &frames));
    std::uint64_t epoch_reads = policy->PrefillReads()->size();
    for (std::size_t s = 0; s < traces[epoch].steps(); ++s) {
      RHIZOME_RETURN_IF_ERROR(policy->Step(traces[epoch].step(s), plan));
      epoch_reads += plan.misses.size();
    }
    if (epoch > 0) reads += epoch_reads;
  }
  return static_cast<double>(reads) / static_cast<double>(traces.size() - 1);
}

/// Returns the rows that the epochs after the first one touch, per epoch: no cache reads fewer that
/// begins empty.
double CountTouched(const std::vector<Trace>& traces) {
  std::uint64_t touched = 0;
  for (std::size_t epoch = 1; epoch < traces.size(); ++epoch)
    touched += std::set<CacheKey>(traces[epoch].keys.begin(), traces[epoch].keys.end()).size();
  return static_cast<double>(touched) / static_cast<double>(traces.size() - 1);
}

}  // namespace

std::vector<BetaSwap> BetaOrder(std::uint32_t parts, std::uint32_t buffer) {
  std::vector<std::uint32_t> held(buffer);
  std::iota(held.begin(), held.end(), 0U);
  std::vector<std::uint32_t> left(parts - buffer);  // not yet together with all others
  std::iota(left.begin(), left.end(), buffer);
  std::vector<BetaSwap> swaps;
  const auto swap = [&](std::uint32_t& slot, std::uint32_t& other) {
    swaps.push_back({.out = slot, .in = other});
    std::swap(slot, other);
  };
  while (!left.empty()) {
    // All remaining parts pass through one slot, so that they meet the parts of the other slots;
    // those are then done, and the remaining parts take their place.
    for (std::uint32_t& part : left) swap(held.back(), part);
    const std::size_t replaced = std::min<std::size_t>(buffer - 1, left.size());
    for (std::size_t i = 0; i < replaced; ++i) swap(held[i], left[i]);
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(replaced));
  }
  return swaps;
}

Result<Json> BenchTables(const BenchTablesOptions& options, const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(const NegativeMixture mixture, ParseNegativeMixture(options.mixture));
  RHIZOME_ASSIGN_OR_RETURN(const BenchGraph bench, OpenBenchGraph(options.graph, control));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto batches,
      LinkBatches::Of(bench.graph->Snapshot(), {.batch_size = options.graph.batch_size,
                                                .seed = options.graph.seed,
                                                .negatives = options.negatives,
                                                .mixture = mixture}));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Trace> traces,
                           MakeTraces(*batches, options.epochs, control));
  const std::uint64_t rows = batches->table_order().size();
  const double touched = CountTouched(traces);
  std::uint64_t replicas = 0;
  for (std::uint32_t p = 0; p < bench.graph->partition_count(); ++p)
    replicas += bench.graph->partition(p).vertex_count();
  const auto over_rows = [&](double count) { return count / static_cast<double>(rows); };
  std::vector<std::uint32_t> beta_parts;
  Json shares = Json::array();
  for (const double share : options.shares) {
    const auto frames = static_cast<std::uint32_t>(share * static_cast<double>(rows));
    RHIZOME_ASSIGN_OR_RETURN(const double reads, CountReads(traces, frames, rows));
    const Beta beta = BestBeta(share);
    if (beta.parts == 0) {
      return Fail(Status::InvalidArgument(fmt::format(
          "--shares: with {} of {} parts BETA has no buffer of several parts", share, kMaxParts)));
    }
    beta_parts.push_back(beta.parts);
    shares.push_back({{"share", share},
                      {"rows_read", reads},
                      {"over_rows", over_rows(reads)},
                      {"over_touched", reads / touched},
                      {"beta_over_rows", beta.reads},
                      {"beta_parts", beta.parts},
                      {"over_beta", over_rows(reads) / beta.reads}});
  }
  Json disk = Json::array();
  if (options.dim > 0) {
    RHIZOME_ASSIGN_OR_RETURN(disk, MeasureTables({.dir = options.graph.dir,
                                                  .rows = rows,
                                                  .dim = options.dim,
                                                  .max_step_rows = batches->max_rows(),
                                                  .shares = options.shares},
                                                 traces, beta_parts, control));
  }
  return Json{{"workload", "tables"},
              {"graph", DescribeGraph(options.graph, *bench.graph)},
              {"partitions", bench.graph->partition_count()},
              {"replication", over_rows(static_cast<double>(replicas))},
              {"batches", batches->batches()},
              {"batch_size", options.graph.batch_size},
              {"negatives", options.negatives},
              {"mixture", options.mixture},
              {"rows_touched", touched},
              {"shares", std::move(shares)},
              {"disk", std::move(disk)}};
}

}  // namespace rhizome
