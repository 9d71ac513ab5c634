#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// Which rows of other ranks a rank keeps in its pool, and when they are fetched.
///
/// With kBelady one schedule has the whole pool, for rows of its own disk and of other ranks, by
/// what each costs. The others are policies of other systems, to compare with: they have a part of
/// the pool for rows of other ranks; the schedule has the rest, for the rank's own.
enum class Prefetch : std::uint8_t {
  kBelady,

  /// MassiveGNN ("Prefetching for Distributed-Memory GNN Training", Algorithms 1 and 2): the
  /// neighbours of own rows that have the highest degree. At the end of a superbatch, which is its
  /// interval Delta, its scores decide which of them are replaced.
  kScored,

  /// SALIENT++ (MLSys 2023): for ever those that a minibatch most likely asks for, by
  /// vertex-inclusion probability.
  kVip,

  /// RapidGNN (arXiv 2505.10806): in each epoch those that it asks for most often. A superbatch is
  /// an epoch.
  kEpoch,
  kStatic,  ///< for ever the neighbours of own rows that have the highest degree
  kLru,     ///< those that were used last
  kNone,    ///< none: each is fetched when a minibatch asks for it, as DistDGL does
};

struct PrefetchOptions {
  Prefetch policy = Prefetch::kBelady;

  /// Bytes of the pool for rows of other ranks; absent: half of the pool. Not with kBelady, nor
  /// kNone.
  std::optional<std::uint64_t> remote_bytes = {};
  double gamma = 0.995;  ///< with kScored: the decay of its eviction score, in (0, 1)
};

std::vector<Prefetch> AllPrefetches();
std::string_view PrefetchName(Prefetch policy);

/// Returns whether a policy knows the lists of all rows, which have to be in memory.
bool NeedsLists(Prefetch policy);

/// `superbatch`: the length that was asked for; 0: none was. Errors: kInvalidArgument, an option
/// that the policy does not take, or that is out of range.
Status CheckPrefetch(const PrefetchOptions& options, std::uint64_t superbatch = 0);

}  // namespace rhizome
