#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rhizome/policy.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Counts of the remote rows that a rank requested and fetched.
struct RemoteCounts {
  std::uint64_t requests = 0;
  std::uint64_t misses = 0;    ///< fetched when a minibatch requests them
  std::uint64_t prefill = 0;   ///< fetched before a minibatch requests them, initially and later
  std::uint64_t replaced = 0;  ///< fetched to replace evicted rows
  std::uint64_t halo_requests = 0, halo_misses = 0;  ///< for rows of the halo

  std::uint64_t fetched() const { return misses + prefill + replaced; }
  RemoteCounts& operator+=(const RemoteCounts& more);
};

/// Parameters of MassiveGNN's buffer, in the paper's terms.
struct ScoredOptions {
  double gamma = 0.995;      ///< decay of S_E, in (0, 1)
  std::uint64_t delta = 64;  ///< steps between eviction rounds, min 1
  bool as_coded = false;     ///< like the authors' program; see ScoredBuffer
};

/// MassiveGNN's buffer of halo rows with scores ("Prefetching for Distributed-Memory GNN Training",
/// Algorithms 1 and 2, sections 3.1 and 3.2).
///
/// Initially, the buffer contains the `frame_count` rows of the halo with the highest degree. Their
/// scores are S_E = 1 and S_A = -1; other rows of the halo have S_A = 0. In every step, S_E of each
/// row in the buffer that is not requested is multiplied by gamma, and S_A of each missed halo row
/// increases by 1. In every step whose number is a multiple of delta, rows with S_E <= alpha =
/// gamma^delta (equation 1 with the initial S_E, 1) are replaced by equally many rows outside the
/// buffer with the highest S_A; ties are broken by higher degree. S_A of an evicted row becomes its
/// S_E, and S_E of an inserted row becomes its S_A. Misses of such a step do not increase S_A
/// (Algorithm 2 returns in line 19, before line 21). Rows outside the halo always miss.
///
/// One rule differs from the paper: Algorithm 2 (line 27) evicts if S_E < alpha, this class if S_E
/// <= alpha, because a row that was not used for exactly delta steps has S_E = alpha. The paper
/// leaves two choices open: here, only rows with S_A > 0 are inserted, and equally many rows are
/// evicted, in row order.
///
/// `as_coded` follows pnnl/MassiveGNN (prefetch_efficient.py, commit 78302fb) instead: alpha is
/// rounded to three decimals, so that it is 0 and no row is evicted if gamma^delta is below .0005;
/// S_E must be below alpha; ties of S_A are broken by row number (NumPy's sort does not define
/// their order); misses are excluded from S_A only if some row could be evicted.
///
/// Time O(requests) per step, O(halo) per eviction round. Memory: 44 bytes per halo row, 4 per key.
/// Threads: one at a time.
class ScoredBuffer {
 public:
  /// `halo`: by descending degree. Keys must be in [0, key_count).
  ScoredBuffer(std::span<const Row> halo, std::uint64_t frame_count, std::uint64_t key_count,
               const ScoredOptions& options);

  /// Plays a minibatch that requests these distinct remote rows.
  void Step(std::span<const CacheKey> rows) { Step(rows, (step_ + 1) % options_.delta == 0); }

  /// As above; the caller decides whether this step has an eviction round.
  void Step(std::span<const CacheKey> rows, bool is_round);

  /// Returns the rows in the buffer, ascending.
  std::vector<CacheKey> Held() const;

  /// Returns the counts so far, including the initial fill.
  const RemoteCounts& counts() const { return counts_; }

 private:
  using HaloId = std::uint32_t;  // index into the halo, by row number
  static constexpr HaloId kOutside = std::numeric_limits<HaloId>::max();

  struct Scored {
    double score = 0;  // S_A; for a row in the buffer, S_E at step `since`
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
  std::vector<std::uint32_t> by_degree_;  // by place: its position by descending degree
  std::vector<Scored> halo_;              // by place
  std::vector<HaloId> missed_;
  std::uint64_t step_ = 0;
  RemoteCounts counts_;
};

}  // namespace internal
}  // namespace rhizome
