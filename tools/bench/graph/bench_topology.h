#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench topology`: what the partition files weigh, how fast they load, how the edge-type index
/// does against a byte an edge, and how fast lists are read that are left on disk.
struct BenchTopologyOptions {
  BenchGraphOptions graph;
  std::optional<Path> other;  ///< a store of the same graph in the other codec, to sample beside it
  std::uint32_t depth = 128;  ///< requests in flight
  IoMaker maker = IoMaker::kAuto;
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;  ///< size of the neighbour cache
  std::uint32_t batches = 10;                           ///< minibatches of a sampling round
  std::uint32_t rounds = 5;
  double seconds = 2;  ///< of one contestant that reads at random, in one round
};
Result<nlohmann::ordered_json> BenchTopology(const BenchTopologyOptions& options,
                                             const JobControl& control);

}  // namespace rhizome
