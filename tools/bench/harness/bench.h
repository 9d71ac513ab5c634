#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/read_cost.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench gather`: cold random rows through RowReader, and through a bare IoQueue, against fio with
/// the same block size, depth and files, contestants taking turns in one run.
struct BenchGatherOptions {
  std::optional<Path> store;  ///< of the array to read; absent: a temporary store is made
  std::string array;          ///< of `store`, in layout kRow
  Path dir = ".";             ///< where the temporary store goes; on the disk to be measured
  std::uint64_t bytes = std::uint64_t{4} << 30;  ///< size of the temporary array
  std::uint64_t row_bytes = 1024;                ///< of the temporary array; a multiple of 4
  std::uint32_t depth = 64;                      ///< requests in flight
  IoMaker maker = IoMaker::kAuto;
  bool direct = true;
  std::uint32_t rounds = 5;
  double seconds = 2;  ///< of one contestant in one round
  std::uint64_t seed = 1;
};
Result<nlohmann::ordered_json> BenchGather(const BenchGatherOptions& options,
                                           const JobControl& control);

/// The graph that `bench sample` and `bench pool` walk: a store, or an RMAT graph that is made for
/// the run.
struct BenchGraphOptions {
  std::optional<Path> store;
  Path dir = ".";                  ///< where the temporary store goes
  std::uint32_t scale = 18;        ///< RMAT: 2^scale vertices
  std::uint32_t edge_factor = 16;  ///< RMAT: edges a vertex
  bool undirected = false;         ///< RMAT: each pair in both directions, once
  std::uint32_t partitions = 4;
  std::vector<std::int64_t> fanouts = {10, 10, 10};
  std::uint32_t batch_size = 1000;
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
  std::uint64_t dim = 0;  ///< columns of an array `feat`, float32; 0: none
  bool labels = false;    ///< arrays `label` (32 classes) and `split` (a tenth trains), at random
};

/// The kinds of draws of `bench sample`.
enum class BenchSampleKind : std::uint8_t { kUniform, kReplace, kWeighted, kTyped, kDisjoint };
const char* NameOf(BenchSampleKind kind);

/// `bench sample`: edges sampled a second, in memory; the median of `rounds`.
struct BenchSampleOptions {
  BenchGraphOptions graph;
  std::uint32_t batches = 20;  ///< of one round
  std::uint32_t rounds = 5;
  BenchSampleKind kind = BenchSampleKind::kUniform;
  bool again = false;         ///< Frontier::kAgain, as DGL and GraphBolt
  std::uint32_t callers = 1;  ///< batches at once, each on one thread; 1: one batch on all threads
  std::optional<double> reference;   ///< edges/s of a peer, measured in the same run
  double delta = 0;                  ///< share of the edges to write: also sample with a delta
  bool balance = false;              ///< also the work of each partition
  std::optional<Path> vertex_parts;  ///< .npy, int32 [vertices]: an edge cut to compare with
};
Result<nlohmann::ordered_json> BenchSample(const BenchSampleOptions& options,
                                           const JobControl& control);

/// The seeds of a minibatch: drawn from all vertices, or from those of one owner, the owners taking
/// turns.
enum class BenchSeeds : std::uint8_t { kShuffled, kGrouped };

/// `bench pool`: exact reads of the policies on the trace of one superbatch, with pools of several
/// shares of the graph's rows, and how fast the schedule is built; with an array, also the time
/// that its rows take, read from the disk. With `reorder` also what the policies read of the same
/// minibatches in the order that MatchOrder gives windows of so many.
struct BenchPoolOptions {
  BenchGraphOptions graph;
  std::uint32_t superbatch = 100;  ///< minibatches of the trace
  std::vector<double> shares = {0.01, 0.05, 0.1, 0.2};
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
