#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "rhizome/job_control.h"
#include "rhizome/status.h"
#include "storage/io/io_queue.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

/// `bench topology`: size of the partition files, time to load them, the edge-type index compared
/// with one byte per edge, and the rate of reading lists that are left on disk.
struct BenchTopologyOptions {
  BenchGraphOptions graph;
  /// a store of the same graph in the other codec, which is also sampled
  std::optional<Path> other;
  std::uint32_t depth = 128;  ///< requests in flight
  IoMaker maker = IoMaker::kAuto;
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;  ///< size of the neighbour cache
  std::uint32_t batches = 10;                           ///< minibatches per sampling round
  std::uint32_t rounds = 5;
  double seconds = 2;  ///< per contestant with random reads and round
};
Result<nlohmann::ordered_json> BenchTopology(const BenchTopologyOptions& options,
                                             const JobControl& control);

}  // namespace rhizome
