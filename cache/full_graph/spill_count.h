#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/full_graph/counted_sequence.h"
#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/pass_search.h"
#include "cache/full_graph/spill_policy.h"

namespace rhizome {
inline namespace internal {

/// A counted sequence with a block choice for each pass, and the memory capacity.
struct ChosenPasses {
  const CountedSequence* sequence = nullptr;
  std::vector<std::uint32_t> choices;  ///< [passes]
  std::uint64_t capacity_bytes = 0;

  const CountedChoice& choice(std::size_t pass) const {
    return sequence->passes[pass].choices[choices[pass]];
  }
  std::uint64_t room(std::size_t pass) const {
    return capacity_bytes - choice(pass).blocks.memory_bytes;
  }
};

/// Create the policies of a sequence. `passes.sequence` must outlive them.
std::unique_ptr<SpillPolicy> MakeStreamAll(const ChosenPasses& passes);
std::unique_ptr<SpillPolicy> MakeLruSpill(const ChosenPasses& passes, bool live);

/// Evicts the chunk whose next use in the epoch is last. A chunk that must be written when it
/// leaves, and read again, counts as needed `dirty_nearness` times sooner than it is. With 1 this
/// is Belady's rule, which is optimal if writes are free; larger values help if they are not.
std::unique_ptr<SpillPolicy> MakeBeladySpill(const ChosenPasses& passes,
                                             std::uint32_t dirty_nearness = 1);

/// Keeps the first `resident` [passes][arrays] chunks of each array in each pass.
std::unique_ptr<SpillPolicy> MakePrefixSpill(const ChosenPasses& passes,
                                             std::vector<std::vector<std::uint32_t>> resident);

/// Bytes that move in each pass, and peak memory including sums.
struct SpillCounts {
  struct Pass {
    std::vector<ArrayBytes> reads;
    std::vector<ArrayBytes> writes;
    std::vector<ArrayBytes> resident;  ///< in memory when it starts to read
  };
  std::vector<Pass> passes;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t beside_bytes = 0;  ///< BlockChoice::beside_bytes, sum over passes
  std::uint64_t peak_bytes = 0;
  std::uint64_t bytes() const { return read_bytes + written_bytes + beside_bytes; }
};

/// Counts the bytes that a policy moves.
SpillCounts CountSpill(const ChosenPasses& passes, SpillPolicy& policy);

}  // namespace internal
}  // namespace rhizome
