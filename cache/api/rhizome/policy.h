#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/resource_options.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {
class ScheduleHistory;
}  // namespace internal
}  // namespace rhizome

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

/// Returns every kind of policy, the default first. Their names are the values of `--cache`.
std::vector<PolicyKind> AllPolicies();
std::string_view PolicyName(PolicyKind kind);
std::optional<PolicyKind> ParsePolicy(std::string_view name);

/// Returns whether a policy of this kind is built for one trace and cannot run any other.
bool KnowsTheFuture(PolicyKind kind);

/// Returns whether a policy of this kind uses a history of earlier traces.
bool TakesPrior(PolicyKind kind);

/// Returns the memory of a policy in bytes per key in [0, key_count), in addition to its memory per
/// frame and access.
std::uint64_t PolicyBytesPerKey(PolicyKind kind);

/// Parameters of a policy besides its trace.
struct PolicyOptions {
  PolicyKind kind = PolicyKind::kBelady;
  std::uint32_t frame_count = 0;
  std::uint64_t key_count = 0;
  std::uint64_t unit_bytes = 1;  ///< bytes of a row, for kCost
  ReadCost cost = {};            ///< for kCost

  /// Superbatches that precede the trace, for kinds for which TakesPrior is true. The policy starts
  /// with the pool contents that they left, and the trace is added to the history. If null, the
  /// pool starts empty, and keys that the trace does not request again are worth nothing.
  ScheduleHistory* history = nullptr;
};

/// Creates the policy of that kind for one trace; without frames, kNone. Policies that do not know
/// the future use only the steps passed to them. Errors: for policies that know the future, any
/// error of MakeBeladySchedule; kInvalidArgument, there is no such kind; kOutOfMemory.
Result<std::unique_ptr<Policy>> MakePolicy(const PolicyOptions& options, const Trace& trace);

}  // namespace rhizome
