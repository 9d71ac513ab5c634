#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/feed_options.h"
#include "rhizome/file_system.h"
#include "rhizome/policy.h"
#include "rhizome/prefetch.h"

namespace RHIZOME_API rhizome {

class Transport;

/// Model of the network between ranks.
struct LinkModel {
  double bits_per_second = 1e10;   ///< per rank, in each direction
  double latency_seconds = 50e-6;  ///< one way
};

/// Training over ranks: processes or threads that make the same call and compute one model.
/// MinibatchOptions::batch_size is then the average number of seeds per home and step, and
/// FeedOptions::superbatch counts steps. The row cache is managed by `prefetch`, so
/// FeedOptions::cache must be kBelady.
struct RankOptions {
  Transport* transport = nullptr;  ///< connection to the other ranks; borrowed
  LinkModel link = {};             ///< cost of remote rows relative to rows on disk
  PrefetchOptions prefetch = {};
};

/// Training on the first CUDA device, which also caches feature rows.
struct DeviceOptions {
  /// Device memory for cached rows, in bytes; default: half of the free memory.
  std::optional<std::uint64_t> memory_bytes = {};
  PolicyKind cache = PolicyKind::kBelady;  ///< kBelady, kStatic, kMatch or kNone
};

/// Training on minibatches of sampled neighbourhoods.
struct MinibatchOptions {
  std::uint64_t batch_size = 1000;

  /// Number of neighbours drawn in each layer, starting at the seeds. kAllNeighbors: all.
  std::vector<std::int64_t> fanouts = {10, 10};

  /// Fanouts for measuring the validation set, one per layer. kAllNeighbors in every layer uses all
  /// neighbours of the edge types that training uses. Empty: as in training.
  std::vector<std::int64_t> eval_fanouts = {};
  std::uint64_t steps = 0;  ///< maximum training minibatches per epoch; 0: all
  FeedOptions feed = {};
  Path trace = {};                           ///< Chrome trace of the stages; empty: not written
  std::optional<DeviceOptions> device = {};  ///< absent: the CPU computes
  std::optional<RankOptions> ranks = {};     ///< absent: this process trains alone
};

}  // namespace rhizome
