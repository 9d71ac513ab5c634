#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rhizome/cache/counted_sequence.h"
#include "rhizome/cache/full_graph_plan.h"
#include "rhizome/cache/pass_search.h"
#include "rhizome/cache/spill_policy.h"

namespace rhizome::inline internal {

/// A counted sequence with a choice of blocks for each pass, and the memory that all have.
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

/// Makes the policies of a sequence. `passes.sequence` must outlive them.
std::unique_ptr<SpillPolicy> MakeStreamAll(const ChosenPasses& passes);
std::unique_ptr<SpillPolicy> MakeLruSpill(const ChosenPasses& passes, bool live);

/// The chunk that is needed last leaves first, among all of the epoch. A chunk that has to be
/// written when it leaves, and read again, counts as if it were needed `dirty_nearness` times
/// sooner than it is: 1 is Belady's rule, which is the best where writing is free; more serves
/// where it is not.
std::unique_ptr<SpillPolicy> MakeBeladySpill(const ChosenPasses& passes,
                                             std::uint32_t dirty_nearness = 1);

/// `resident` [passes][arrays]: the first chunks that stay.
std::unique_ptr<SpillPolicy> MakePrefixSpill(const ChosenPasses& passes,
                                             std::vector<std::vector<std::uint32_t>> resident);

/// The bytes that move in each pass, and the most that is in memory, sums included.
struct SpillCounts {
  struct Pass {
    std::vector<ArrayBytes> reads;
    std::vector<ArrayBytes> writes;
    std::vector<ArrayBytes> resident;  ///< in memory when it begins to read
  };
  std::vector<Pass> passes;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t beside_bytes = 0;  ///< BlockChoice::beside_bytes, of all passes
  std::uint64_t peak_bytes = 0;
  std::uint64_t bytes() const { return read_bytes + written_bytes + beside_bytes; }
};

/// Counts what a policy moves.
SpillCounts CountSpill(const ChosenPasses& passes, SpillPolicy& policy);

}  // namespace rhizome::inline internal
