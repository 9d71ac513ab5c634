#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

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

}  // namespace rhizome
