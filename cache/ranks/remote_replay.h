#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/ranks/remote_traces.h"
#include "cache/ranks/scored_buffer.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Value that schedules of superbatches assign to rows that the superbatch does not request again.
struct RemotePrior {
  bool uses = false;                     ///< worth more, the more often they were requested
  std::span<const double> chances = {};  ///< if not empty, used instead: InclusionChances, by row
};

/// Counts what one rank fetches from other ranks under different policies. The inputs are a buffer
/// of `frame_count` rows, the trace of the remote rows that the rank requests, and the halo for
/// MassiveGNN's hit rate (its equation 8, where remote nodes are the halo). Replays perform no I/O
/// and start with an empty buffer.
/// Threads: several at once. Ownership: the trace and the halo must outlive it.
class RemoteReplay {
 public:
  /// Keys of the trace must be in [0, key_count).
  RemoteReplay(const RemoteTrace& trace, std::span<const Row> halo, std::uint64_t frame_count,
               std::uint64_t key_count);

  /// No cache.
  RemoteCounts None() const;

  /// Evicts the least recently used row.
  Result<RemoteCounts> Lru() const;

  /// Caches the first frame_count rows of `ranking` for the whole trace. SALIENT++ ranks by
  /// vertex-inclusion probability, and MassiveGNN's "prefetch without eviction" (section 5) by
  /// degree.
  Result<RemoteCounts> Static(std::span<const Row> ranking) const;

  /// Caches, in each epoch, the rows that the epoch requests most often. They are fetched before
  /// the epoch unless they are in the buffer from the previous epoch; other rows are fetched when a
  /// minibatch requests them. This is RapidGNN's hot set (arXiv 2505.10806, "deterministic
  /// sampling": the minibatches of an epoch are drawn before it). Its rolling prefetch of the next
  /// minibatches changes when rows are fetched, but not how many; neither the prefetch nor its
  /// memory is modelled.
  Result<RemoteCounts> EpochHotSet() const;

  /// MassiveGNN (ScoredBuffer).
  RemoteCounts Scored(const ScoredOptions& options) const;

  /// Schedules of `superbatch` steps each, in sequence on one buffer (MakeBeladySchedule).
  Result<RemoteCounts> Belady(std::size_t superbatch, const RemotePrior& prior) const;

  /// One schedule for the whole trace. This is exactly the minimum that any policy fetches, because
  /// all rows have the same cost and may be fetched before they are requested, or used without
  /// being cached.
  Result<RemoteCounts> Optimum() const;

 private:
  class Buffer;

  const RemoteTrace& trace_;
  std::span<const Row> halo_;
  std::uint32_t frames_;
  std::uint64_t keys_;
  std::vector<bool> is_halo_;  // by row
};

}  // namespace internal
}  // namespace rhizome
