#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/cache/remote_traces.h"
#include "rhizome/cache/scored_buffer.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// The worth that schedules of superbatches give to rows that the superbatch at hand does not ask
/// for again.
struct RemotePrior {
  bool uses = false;  ///< they are worth more, the more often they were asked for
  std::span<const double> chances = {};  ///< by row, instead: InclusionChances
};

/// Counts what one rank fetches from the others under a policy: a buffer of `frame_count` rows, the
/// trace of the remote rows that it asks for, and the halo for MassiveGNN's hit rate (its equation
/// 8, whose remote nodes are those of the halo).
/// Replays are pure: they neither read nor send anything, and begin with an empty buffer.
/// Threads: several at once. Ownership: the trace and the halo must outlive it.
class RemoteReplay {
 public:
  /// Keys of the trace are in [0, key_count).
  RemoteReplay(const RemoteTrace& trace, std::span<const Row> halo, std::uint64_t frame_count,
               std::uint64_t key_count);

  /// Nothing is kept.
  RemoteCounts None() const;

  /// The rows used last.
  Result<RemoteCounts> Lru() const;

  /// The first frame_count of `ranking` for ever, as SALIENT++ keeps those of the highest
  /// vertex-inclusion probability, or MassiveGNN's "prefetch without eviction" (section 5) those of
  /// the highest degree.
  Result<RemoteCounts> Static(std::span<const Row> ranking) const;

  /// In each epoch the rows that it asks for most often, all fetched before it unless the buffer
  /// has them of the epoch before; others when a minibatch asks for them. This is RapidGNN's hot
  /// set (arXiv 2505.10806, "deterministic sampling": the epoch's minibatches are drawn before it).
  /// Its rolling prefetch of the next minibatches changes when rows are fetched, not how many, and
  /// is therefore left out; so is the memory that it takes.
  Result<RemoteCounts> EpochHotSet() const;

  /// MassiveGNN (ScoredBuffer).
  RemoteCounts Scored(const ScoredOptions& options) const;

  /// Schedules of `superbatch` steps each, one after another in one buffer (MakeBeladySchedule).
  Result<RemoteCounts> Belady(std::size_t superbatch, const RemotePrior& prior) const;

  /// One schedule for the whole trace: exactly the fewest rows that any policy fetches, as each row
  /// costs the same and may be fetched before it is asked for, or used without being kept.
  Result<RemoteCounts> Optimum() const;

 private:
  class Buffer;

  const RemoteTrace& trace_;
  std::span<const Row> halo_;
  std::uint32_t frames_;
  std::uint64_t keys_;
  std::vector<bool> is_halo_;  // by row
};

}  // namespace rhizome::inline internal
