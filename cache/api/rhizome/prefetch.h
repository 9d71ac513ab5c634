#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// Policies for rows of other ranks: which of them a rank caches, and when they are fetched.
///
/// With kBelady, one schedule manages the whole pool, with rows from the local disk and from other
/// ranks, weighted by their costs. The other policies implement other systems for comparison. They
/// manage a part of the pool for rows of other ranks; the schedule manages the rest for the rank's
/// own rows.
enum class Prefetch : std::uint8_t {
  kBelady,

  /// MassiveGNN ("Prefetching for Distributed-Memory GNN Training", Algorithms 1 and 2): initially
  /// caches the neighbours of own rows with the highest degree. At the end of each superbatch,
  /// which is its interval Delta, scores determine which of them are replaced.
  kScored,

  /// SALIENT++ (MLSys 2023): caches, for the whole job, the rows that a minibatch most probably
  /// needs, by vertex-inclusion probability.
  kVip,

  /// RapidGNN (arXiv 2505.10806): caches, in each epoch, the rows that the epoch requests most
  /// often. A superbatch is an epoch.
  kEpoch,
  kStatic,  ///< for the whole job, the neighbours of own rows with the highest degree
  kLru,     ///< least recently used eviction
  kNone,    ///< no cache: rows are fetched when a minibatch requests them, as in DistDGL
};

struct PrefetchOptions {
  Prefetch policy = Prefetch::kBelady;

  /// Bytes of the pool for rows of other ranks; absent: half of the pool. Not with kBelady or
  /// kNone.
  std::optional<std::uint64_t> remote_bytes = {};
  double gamma = 0.995;  ///< decay of the eviction score of kScored, in (0, 1)
};

std::vector<Prefetch> AllPrefetches();
std::string_view PrefetchName(Prefetch policy);

/// Returns whether a policy needs the neighbour lists of all rows in memory.
bool NeedsLists(Prefetch policy);

/// Checks the options. `superbatch` is the requested length; 0: none. Errors: kInvalidArgument, an
/// option that the policy does not support, or that is out of range.
Status CheckPrefetch(const PrefetchOptions& options, std::uint64_t superbatch = 0);

}  // namespace rhizome
