#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench.h"
#include "rhizome/cache/policy.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/read_cost.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// The seeds of a minibatch: drawn from all vertices, or from those of one owner, the owners taking
/// turns.
enum class BenchSeeds : std::uint8_t { kShuffled, kGrouped };

/// `bench pool`: exact reads of the policies on the trace of one superbatch, with pools of several
/// shares of the graph's rows, and how fast the schedule is built; with an array, also the time
/// that its rows take, read from the disk. With `reorder` also what the policies read of the same
/// minibatches in the order that MatchOrder gives windows of so many.
struct BenchPoolOptions {
  BenchGraphOptions graph;
  std::uint32_t superbatch = 100;                       ///< minibatches of the trace
  std::vector<double> shares = {0.01, 0.05, 0.1, 0.2};  ///< may be empty beside device_shares

  /// Also reads of shorter superbatches that follow each other, with each prior; of at most
  /// `superbatch` minibatches.
  std::vector<std::uint32_t> superbatches;
  std::vector<double> device_shares;  ///< pools on a device, whose bytes over the bus are counted
  BenchSeeds seeds = BenchSeeds::kShuffled;
  std::uint32_t reorder = 0;  ///< window; 0: as they come
  std::uint64_t row_bytes = 1024;
  ReadCost cost;

  /// File for the requests, .npy [requests, 2] of minibatch and vertex; empty: not written.
  std::string trace_out;

  // On the disk.
  std::string array;  ///< of the store, in layout row; empty: nothing is read
  std::vector<std::uint64_t> pool_bytes = {std::uint64_t{384} << 20};
  std::vector<PolicyKind> policies = {PolicyKind::kBelady, PolicyKind::kCost, PolicyKind::kS3Fifo,
                                      PolicyKind::kNone};
  std::uint32_t rounds = 5;
  double step_seconds = 0;       ///< of a step's computation, in which nothing is done
  double reference_seconds = 1;  ///< of fio, in one round
  bool mapped = false;           ///< also rows out of mapped files
};
Result<nlohmann::ordered_json> BenchPool(const BenchPoolOptions& options,
                                         const JobControl& control);

}  // namespace rhizome
