#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"

namespace rhizome {

struct PoolCounters {
  std::uint64_t requests = 0;
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t prefill = 0;  ///< frames filled before a first step
  std::uint64_t kept = 0;     ///< prefill that was in the pool already, from the trace before
  std::uint64_t reads() const { return prefill + misses; }
};

/// A fixed piece of memory divided into frames of one unit (a row, or a decoded chunk), and the
/// policy that says what they hold. It moves no bytes from disk itself: a caller plans a step,
/// reads the misses, then fills the inserts.
///
/// Policies name frames as if every trace began with an empty pool. What the pool still holds of a
/// new policy's prefill stays where it lies: the frame that the policy names is that one (Prefill).
///
/// Threads: SetPolicy, Prefill and Forget alone; Plan by one thread and frame and Fill by another
/// at the same time.
class BufferPool {
 public:
  /// Allocates frame_count * frame_bytes, aligned for direct reads, and 12 bytes a frame.
  /// Errors: kOutOfMemory.
  static Result<BufferPool> Create(std::size_t frame_bytes, std::uint32_t frame_count);

  /// Starts a new trace (the next superbatch, the next layer).
  void SetPolicy(std::unique_ptr<Policy> policy);

  /// What must be read into which frame before the first step, and is taken to be there from now
  /// on. Call once after SetPolicy.
  std::vector<std::pair<CacheKey, FrameId>> Prefill();

  /// Plans the next step.
  void Plan(std::span<const CacheKey> keys, StepPlan& plan);

  /// The memory of a frame that a plan names.
  std::span<std::byte> frame(FrameId frame) const;

  /// The frame, to be filled with what belongs to `key`.
  std::span<std::byte> Fill(CacheKey key, FrameId frame);

  /// What frames hold is not known any more, as a read failed.
  void Forget();

  std::size_t frame_bytes() const { return frame_bytes_; }
  std::uint32_t frame_count() const { return frame_count_; }
  const PoolCounters& counters() const { return counters_; }

 private:
  BufferPool() = default;
  std::size_t frame_bytes_ = 0;
  std::uint32_t frame_count_ = 0;
  AlignedBuffer memory_;
  std::vector<FrameId> place_;   // by the policy's frame: where it lies; a permutation
  std::vector<CacheKey> holds_;  // by place: whose bytes are there, or kNothing
  std::unique_ptr<Policy> policy_;
  PoolCounters counters_;
};

}  // namespace rhizome
