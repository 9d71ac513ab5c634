#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rhizome/job_control.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "storage/array/read_cost.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

/// Choice of the seeds of a minibatch: from all vertices, or from the vertices of one owner, with
/// owners alternating.
enum class BenchSeeds : std::uint8_t { kShuffled, kGrouped };

/// `bench pool`: exact numbers of reads of the cache policies on the trace of one superbatch, with
/// pools that hold several shares of the graph's rows, and the speed of building the schedule. With
/// an array, also measures the time to read its rows from disk. With `reorder`, also counts reads
/// after MatchOrder has reordered the minibatches in windows of that size.
struct BenchPoolOptions {
  BenchGraphOptions graph;
  std::uint32_t superbatch = 100;                       ///< minibatches of the trace
  std::vector<double> shares = {0.01, 0.05, 0.1, 0.2};  ///< may be empty if device_shares is given

  /// Also counts the reads of consecutive shorter superbatches, with each prior; each of at most
  /// `superbatch` minibatches.
  std::vector<std::uint32_t> superbatches;
  std::vector<double> device_shares;  ///< pools on a device, for which uploaded bytes are counted
  BenchSeeds seeds = BenchSeeds::kShuffled;
  std::uint32_t reorder = 0;  ///< window of minibatches; 0: original order
  std::uint64_t row_bytes = 1024;
  ReadCost cost;

  /// Output file for the requests, .npy [requests, 2] of minibatch and vertex; empty: none.
  std::string trace_out;

  // Parameters of the measurement on disk.
  std::string array;  ///< array of the store, in layout row; empty: not measured
  std::vector<std::uint64_t> pool_bytes = {std::uint64_t{384} << 20};
  std::vector<PolicyKind> policies = {PolicyKind::kBelady, PolicyKind::kCost, PolicyKind::kS3Fifo,
                                      PolicyKind::kNone};
  std::uint32_t rounds = 5;
  double step_seconds = 0;  ///< simulated computing time per step, during which the thread sleeps
  double reference_seconds = 1;  ///< duration of fio per round
  bool mapped = false;           ///< also reads rows from memory-mapped files
};
Result<nlohmann::ordered_json> BenchPool(const BenchPoolOptions& options,
                                         const JobControl& control);

}  // namespace rhizome
