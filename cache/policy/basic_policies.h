#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/policy.h"
#include "rhizome/status.h"

namespace rhizome {

/// A key_count that admits every key.
inline constexpr std::uint64_t kAnyKey = std::uint64_t{1} << 63;

/// Checks that the offsets of `trace` divide its keys into consecutive steps and that all keys are
/// in [0, key_count). Errors: kInvalidArgument, naming the violation. Does not check that keys are
/// distinct within a step; callers that depend on it must do so.
Status CheckTrace(const Trace& trace, std::uint64_t key_count = kAnyKey);

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
