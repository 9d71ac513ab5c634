#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/result.h"

namespace RHIZOME_API rhizome {

/// Key of a cached unit: a row or a chunk.
using CacheKey = std::int64_t;

/// Index of a frame. A frame holds one unit of the pool.
using FrameId = std::uint32_t;

/// A key to read before the first step, and its frame.
using PrefillEntry = std::pair<CacheKey, FrameId>;

/// Changes to the pool in one step of a trace. A step requests distinct keys, all at once (the rows
/// of a minibatch, or one chunk). `hits` are served from the frames as they were when the step
/// began, and `misses` are read. Afterwards `inserts` puts keys of this step into frames and evicts
/// their previous keys. Frames in `done` then hold keys that no later step requests; policies that
/// do not know the future leave `done` empty.
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
  kCost,    ///< least disk time
  kMatch,   ///< keys of the last step
};

/// A sequence of steps over keys in [0, key_count). Step s requests keys[offsets[s] ..
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

/// A key_count that admits every key.
inline constexpr std::uint64_t kAnyKey = std::uint64_t{1} << 63;

/// Checks that the offsets of `trace` divide its keys into consecutive steps and that all keys are
/// in [0, key_count). Errors: kInvalidArgument, naming the violation. Does not check that keys are
/// distinct within a step; callers that depend on it must do so.
Status CheckTrace(const Trace& trace, std::uint64_t key_count = kAnyKey);

/// Decides which keys are kept in memory. A policy is pure (no I/O, no clock), so that replaying a
/// trace gives exact counts.
/// Threads: not thread-safe.
class Policy {
 public:
  virtual ~Policy() = default;

  /// Returns the keys to read before the first step, each with its frame, sorted by key. Prefill
  /// reads count as reads.
  virtual std::span<const PrefillEntry> Prefill() const { return {}; }

  /// Returns the keys of Prefill that must be read, sorted, if that was decided when the policy was
  /// created: the frames already hold the other keys, and the pool reads these even if it holds
  /// some of them. If nullopt, the pool reads the keys that it does not hold, which depends on
  /// timing.
  virtual std::optional<std::span<const CacheKey>> PrefillReads() const { return std::nullopt; }

  /// Decides one step; `plan` is cleared first. An offline policy must receive exactly the steps
  /// that it was built from, in order. Errors: kInvalidArgument, a different step; a key that is
  /// out of range or occurs twice in the step. On error the policy is unchanged, but `plan` is not.
  virtual Status Step(std::span<const CacheKey> keys, StepPlan& plan) = 0;

  /// Called between two steps. Returns an upper bound on the number of frames that hold a key
  /// needed by a later step, at any later time. A policy that does not know returns the maximum.
  virtual std::uint32_t frames_needed() const { return std::numeric_limits<std::uint32_t>::max(); }
};

/// Creates a policy that keeps the most recently used (LRU) or the most recently inserted (FIFO)
/// keys, or nothing (None), with `frame_count` frames over keys in [0, key_count). LRU and FIFO
/// never bypass, except that only the last keys of a step are kept if the step is larger than the
/// pool.
///
/// Precisely: hits are judged against the pool as it was when the step began. Then the keys pass
/// one by one, in the step's order, through a queue of frame_count keys. LRU moves a hit to the
/// young end, FIFO leaves it in place; a miss enters at the young end. O(1) per access.
std::unique_ptr<Policy> MakeLruPolicy(std::uint32_t frame_count, std::uint64_t key_count);
std::unique_ptr<Policy> MakeFifoPolicy(std::uint32_t frame_count, std::uint64_t key_count);
std::unique_ptr<Policy> MakeNonePolicy();

/// These policies also process a step's keys one by one. CLOCK evicts the oldest key unless it was
/// used since it was last the oldest. S3-FIFO follows Yang et al., "FIFO queues are all you need
/// for cache eviction" (SOSP 2023), with a tenth of the frames for the small queue.
std::unique_ptr<Policy> MakeClockPolicy(std::uint32_t frame_count, std::uint64_t key_count);
std::unique_ptr<Policy> MakeS3FifoPolicy(std::uint32_t frame_count, std::uint64_t key_count);

/// Creates a policy that keeps exactly the keys of the last step, or the first frame_count of them,
/// and evicts all others even if their frames are not needed (the Match process of FastGL, section
/// 4.1). A sampler lists first the vertices that it finds first, which usually have a high degree.
/// O(1) per access.
std::unique_ptr<Policy> MakeMatchPolicy(std::uint32_t frame_count, std::uint64_t key_count);

/// Creates a policy with a fixed, prefilled set that never changes: the first frame_count keys of
/// `ranking`, best first.
/// Errors: kInvalidArgument, a key of the ranking is out of range; kOutOfMemory.
Result<std::unique_ptr<Policy>> MakeStaticPolicy(std::uint32_t frame_count, std::uint64_t key_count,
                                                 std::span<const CacheKey> ranking);

/// Returns the keys of a trace by descending number of requests (ties: by key). This is the best
/// static set, and the baseline that `bench pool` shows. Errors: any error of CheckTrace;
/// kOutOfMemory.
Result<std::vector<CacheKey>> RankByUse(const Trace& trace, std::uint64_t key_count);

/// Counts of a replayed trace. reads = prefill + misses.
struct ReplayCounts {
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t prefill = 0;
  std::uint64_t misses = 0;
  std::uint64_t reads() const { return prefill + misses; }
};

/// Replays a whole trace and counts. Errors: any error of CheckTrace or Policy::Step; kOutOfMemory.
Result<ReplayCounts> Replay(Policy& policy, const Trace& trace);

}  // namespace rhizome
