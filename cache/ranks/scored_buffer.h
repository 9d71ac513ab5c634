#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// How many remote rows a rank asked for and fetched.
struct RemoteCounts {
  std::uint64_t requests = 0;
  std::uint64_t misses = 0;    ///< fetched when a minibatch asks for them
  std::uint64_t prefill = 0;   ///< fetched before a minibatch asks: initial fill and later ones
  std::uint64_t replaced = 0;  ///< fetched in place of rows that are evicted
  std::uint64_t halo_requests = 0, halo_misses = 0;  ///< of those of the halo

  std::uint64_t fetched() const { return misses + prefill + replaced; }
  RemoteCounts& operator+=(const RemoteCounts& more);
};

/// The parameters of MassiveGNN's buffer, in the paper's terms.
struct ScoredOptions {
  double gamma = 0.995;      ///< decay of S_E, in (0, 1)
  std::uint64_t delta = 64;  ///< steps from one eviction round to the next, at least 1
  bool as_coded = false;     ///< as the authors' program has it; see ScoredBuffer
};

/// MassiveGNN's buffer of rows of the halo, with scores ("Prefetching for Distributed-Memory GNN
/// Training", Algorithms 1 and 2, sections 3.1 and 3.2).
///
/// It begins with the `frame_count` rows of the halo that have the highest degree: S_E = 1 and S_A
/// = -1 for them, S_A = 0 for others of the halo. In every step S_E of each row of the buffer that
/// is not asked for is multiplied by gamma, and S_A of each row of the halo that is missed grows
/// by 1. In every step whose number delta divides, rows with S_E at most alpha = gamma^delta
/// (equation 1 with the initial S_E, 1) are replaced by as many rows outside with the highest S_A,
/// those first that have the higher degree; S_A of the row that leaves becomes its S_E, S_E of the
/// row that enters becomes its S_A. Misses of that step do not count into S_A (Algorithm 2 returns
/// in line 19, before line 21). Rows outside the halo are always missed.
///
/// One rule differs from the paper: Algorithm 2 (line 27) evicts where S_E is below alpha, here it
/// is at most alpha, since a row that was not used for exactly delta steps has exactly alpha. Two
/// are left open there: only rows with S_A above 0 enter, and as many leave, in the order of their
/// numbers.
///
/// `as_coded` differs as pnnl/MassiveGNN (prefetch_efficient.py, commit 78302fb) does: alpha is
/// rounded to three places, so that it is 0 and nothing leaves where gamma^delta is below .0005;
/// S_E must be below it; equal S_A are taken in the order of row numbers (NumPy's sort there leaves
/// their order open); misses are left out of S_A only where some row could leave.
///
/// O(requests) a step, O(halo) an eviction round. Memory: 44 bytes a row of the halo, 4 a key.
/// Threads: one at a time.
class ScoredBuffer {
 public:
  /// `halo`: by descending degree. Keys are in [0, key_count).
  ScoredBuffer(std::span<const Row> halo, std::uint64_t frame_count, std::uint64_t key_count,
               const ScoredOptions& options);

  /// Plays a minibatch, which asks for these distinct remote rows.
  void Step(std::span<const CacheKey> rows) { Step(rows, (step_ + 1) % options_.delta == 0); }

  /// The same where the caller says whether there is an eviction round in this step.
  void Step(std::span<const CacheKey> rows, bool is_round);

  /// The rows of the buffer, ascending.
  std::vector<CacheKey> Held() const;

  /// The counts so far, the initial fill included.
  const RemoteCounts& counts() const { return counts_; }

 private:
  using HaloId = std::uint32_t;  // place in the halo, by row number
  static constexpr HaloId kOutside = std::numeric_limits<HaloId>::max();

  struct Scored {
    double score = 0;  // S_A, or of a row of the buffer S_E when `since` was
    std::uint64_t used = 0;
    std::uint64_t since = 0;
    bool is_held = false;
  };
  double EvictionScore(const Scored& row) const;
  bool Evict();

  ScoredOptions options_;
  double threshold_;
  std::vector<HaloId> place_of_;          // by key
  std::vector<Row> row_at_;               // by place
  std::vector<std::uint32_t> by_degree_;  // by place: its position in the order of degrees
  std::vector<Scored> halo_;              // by place
  std::vector<HaloId> missed_;
  std::uint64_t step_ = 0;
  RemoteCounts counts_;
};

}  // namespace rhizome::inline internal
