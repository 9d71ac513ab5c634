#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

/// Kinds of sampling that `bench sample` measures.
enum class BenchSampleKind : std::uint8_t { kUniform, kReplace, kWeighted, kTyped, kDisjoint };
const char* NameOf(BenchSampleKind kind);

/// `bench sample`: edges sampled per second, in memory; the median over `rounds`.
struct BenchSampleOptions {
  BenchGraphOptions graph;
  std::uint32_t batches = 20;  ///< batches per round
  std::uint32_t rounds = 5;
  BenchSampleKind kind = BenchSampleKind::kUniform;
  bool again = false;  ///< use Frontier::kAgain, like DGL and GraphBolt
  /// concurrent batches, each on one thread; 1: one batch at a time on all threads
  std::uint32_t callers = 1;
  std::optional<double> reference;  ///< edges/s of another system, measured in the same run
  double delta = 0;      ///< also sample with a delta that contains this share of the edges
  bool balance = false;  ///< also measure the work of each partition
  std::optional<Path> vertex_parts;  ///< .npy, int32 [vertices]: an edge cut for comparison
};
Result<nlohmann::ordered_json> BenchSample(const BenchSampleOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
