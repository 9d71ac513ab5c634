#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace RHIZOME_API rhizome {

/// The key of a cached unit: a row or a chunk.
using CacheKey = std::int64_t;

/// The index of a frame, a place for one unit in the pool.
using FrameId = std::uint32_t;

/// A key to read before the first step, and the frame that it is read into.
using PrefillEntry = std::pair<CacheKey, FrameId>;

/// The changes of the pool in one step of a trace. A step asks for distinct keys, all at once (the
/// rows of a minibatch, or one chunk). `hits` are served from the frames as they were when the step
/// began, and `misses` are read. Afterwards `inserts` puts keys of this step into frames and evicts
/// the keys that were there. Then no later step asks for what the frames in `done` hold; policies
/// that do not know the future leave `done` empty.
struct StepPlan {
  struct Place {
    std::uint32_t request;  ///< index into the step's keys
    FrameId frame;
    friend bool operator==(const Place&, const Place&) = default;
  };
  std::vector<Place> hits;
  std::vector<std::uint32_t> misses;  ///< indexes into the step's keys
  std::vector<Place> inserts;
  std::vector<FrameId> done;

  void Clear() {
    hits.clear();
    misses.clear();
    inserts.clear();
    done.clear();
  }
};

enum class PolicyKind : std::uint8_t {
  kNone,
  kLru,
  kFifo,
  kClock,
  kS3Fifo,
  kStatic,
  kBelady,  ///< fewest rows read
  kCost,    ///< least time of the disk
  kMatch,   ///< the last step's keys
};

/// A sequence of steps over keys in [0, key_count). Step s asks for keys[offsets[s] ..
/// offsets[s+1]), which are distinct.
struct Trace {
  std::vector<CacheKey> keys;
  std::vector<std::uint64_t> offsets = {0};

  std::size_t steps() const { return offsets.size() - 1; }
  std::span<const CacheKey> step(std::size_t s) const {
    return std::span(keys).subspan(offsets[s], offsets[s + 1] - offsets[s]);
  }
  void AddStep(std::span<const CacheKey> step_keys) {
    keys.insert(keys.end(), step_keys.begin(), step_keys.end());
    offsets.push_back(keys.size());
  }
};

/// More keys than any trace has.
inline constexpr std::uint64_t kAnyKey = std::uint64_t{1} << 63;

/// Are the steps of `trace` those of its keys, one after another, and all keys in [0, key_count)?
/// Errors: kInvalidArgument, naming what is not. That keys are distinct within a step is left to
/// whom it matters.
Status CheckTrace(const Trace& trace, std::uint64_t key_count = kAnyKey);

/// Decides which keys stay in memory. A policy is pure (no I/O, no clock), so that replaying a
/// trace gives exact counts.
/// Threads: one at a time.
class Policy {
 public:
  virtual ~Policy() = default;

  /// Returns the keys to read before the first step, each with its frame, sorted by key. Prefill
  /// reads count as reads.
  virtual std::span<const PrefillEntry> Prefill() const { return {}; }

  /// Returns which keys of Prefill are to be read, sorted, where that was decided when the policy
  /// was made: the frames hold the others, and the pool reads these whatever else it may hold.
  /// Nothing: the pool reads those that it does not hold, and which these are depends on time.
  virtual std::optional<std::span<const CacheKey>> PrefillReads() const { return std::nullopt; }

  /// Decides one step; `plan` is cleared first. An offline policy must be given exactly the steps
  /// that it was built from, in order. Errors: kInvalidArgument, another step than that; a key out
  /// of range, or twice in the step. The policy is then as it was before the call, `plan` is not.
  virtual Status Step(std::span<const CacheKey> keys, StepPlan& plan) = 0;

  /// Returns, between two steps, the largest number of frames that will hold, at any later time,
  /// something that a later step asks for. A policy that does not know returns the maximum.
  virtual std::uint32_t frames_needed() const { return std::numeric_limits<std::uint32_t>::max(); }
};

/// Makes a policy that keeps the most recently used (LRU) or the most recently inserted (FIFO)
/// keys, or nothing (None), with `frame_count` frames over keys in [0, key_count). LRU and FIFO
/// never bypass, except that only the last keys of a step stay if the step is larger than the pool.
///
/// Precisely: hits are judged against the pool as it was when the step began. Then the keys pass
/// one by one, in the step's order, through a queue of frame_count keys. LRU moves a hit to the
/// young end, FIFO leaves it where it is; a miss enters at the young end. O(1) an access.
std::unique_ptr<Policy> MakeLruPolicy(std::uint32_t frame_count, std::uint64_t key_count);
std::unique_ptr<Policy> MakeFifoPolicy(std::uint32_t frame_count, std::uint64_t key_count);
std::unique_ptr<Policy> MakeNonePolicy();

/// These too take a step's keys one by one. CLOCK evicts the oldest key unless it was used since it
/// was last the oldest. S3-FIFO is that of Yang et al., "FIFO queues are all you need for cache
/// eviction" (SOSP 2023), with a tenth of the frames for the small queue.
std::unique_ptr<Policy> MakeClockPolicy(std::uint32_t frame_count, std::uint64_t key_count);
std::unique_ptr<Policy> MakeS3FifoPolicy(std::uint32_t frame_count, std::uint64_t key_count);

/// Makes a policy that keeps exactly the keys of the last step, or the first frame_count of them,
/// and evicts all others even where their frames are not needed (the Match process of FastGL,
/// section 4.1). A sampler lists first the vertices that it finds first, which mostly have high
/// degree. O(1) an access.
std::unique_ptr<Policy> MakeMatchPolicy(std::uint32_t frame_count, std::uint64_t key_count);

/// Keeps a fixed set for ever, prefilled: the first frame_count of `ranking`, best first.
/// Errors: kInvalidArgument, a key of the ranking is out of range; kOutOfMemory.
Result<std::unique_ptr<Policy>> MakeStaticPolicy(std::uint32_t frame_count, std::uint64_t key_count,
                                                 std::span<const CacheKey> ranking);

/// The keys of a trace by how often it asks for them, most often first (ties: by key): the
/// strongest static set, and the baseline that `bench pool` shows. Errors: those of CheckTrace;
/// kOutOfMemory.
Result<std::vector<CacheKey>> RankByUse(const Trace& trace, std::uint64_t key_count);

/// The counts of a replayed trace. reads = prefill + misses.
struct ReplayCounts {
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t prefill = 0;
  std::uint64_t misses = 0;
  std::uint64_t reads() const { return prefill + misses; }
};

/// Replays a whole trace and counts. Errors: those of CheckTrace and of Policy::Step; kOutOfMemory.
Result<ReplayCounts> Replay(Policy& policy, const Trace& trace);

}  // namespace rhizome
