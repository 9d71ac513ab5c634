#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/full_graph/pass_sequence.h"

namespace rhizome {
inline namespace internal {

/// A read of a pass whose number of blocks is known. `gather` is null if the chunks are read in
/// order.
struct CountedRead {
  ArrayId array = 0;
  const GatherReads* gather = nullptr;
};

/// A number of blocks, and the resulting reads.
struct CountedChoice {
  BlockChoice blocks;
  std::vector<CountedRead> reads;

  bool Gathers(ArrayId array) const;
  bool Reads(ArrayId array) const;
};

struct CountedPass {
  std::string name;
  std::vector<ArrayId> writes;  ///< excludes sums that are not stored
  std::vector<CountedChoice> choices;
  bool recomputes = false;

  bool Writes(ArrayId array) const;
};

/// A sequence for which the stored sums have been chosen and all reads counted.
struct CountedSequence {
  static constexpr std::int32_t kNever = -1;
  std::span<const SpillArray> arrays;
  std::vector<CountedPass> passes;
  std::vector<std::int32_t> written;    ///< [arrays] the pass that writes the array, or kNever
  std::vector<std::int32_t> last_read;  ///< [arrays] the last pass that reads the array, or kNever

  bool NeededAfter(ArrayId array, std::size_t pass) const {
    return last_read[array] > static_cast<std::int32_t>(pass);
  }

  /// Returns whether pass `pass` reads the array in order and is the last one to read it.
  bool EndsInOrder(ArrayId array, std::size_t pass, const CountedChoice& choice) const {
    return last_read[array] == static_cast<std::int32_t>(pass) && choice.Reads(array) &&
           !choice.Gathers(array);
  }
};

/// Counts the gathers of a sequence. Each gather is counted once, for all choices of stored sums.
/// Ownership: `sequence` must outlive this object, which must outlive the sequences that it
/// returns.
class SequenceCounter {
 public:
  explicit SequenceCounter(const PassSequence& sequence);

  /// Returns the arrays of sums that may be stored or recomputed, ascending.
  std::span<const ArrayId> sums() const { return sums_; }

  /// Returns the sequence that stores exactly the sums whose bit is set in `stored_sums`, with the
  /// block choices that fit in `capacity_bytes`. Errors: any error of the sequence's gather
  /// counter; kInvalidArgument, a gather requests chunks that its array does not have;
  /// kOutOfMemory, no block choice of a pass fits: the message names the pass and the minimum
  /// memory.
  Result<CountedSequence> Count(std::uint64_t stored_sums, std::uint64_t capacity_bytes);

  /// Frees the gathers that `sequence` does not read. No other sequence returned by Count may be
  /// used afterwards.
  void KeepOnly(const CountedSequence& sequence);

 private:
  Result<CountedPass> CountPass(const SpillPass& pass, const std::vector<bool>& left_out,
                                std::uint64_t capacity_bytes);
  Result<const GatherReads*> Gather(const PassRead& read, std::uint32_t blocks);

  const PassSequence& sequence_;
  std::vector<ArrayId> sums_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, GatherReads> gathers_;
};

/// Returns the chunk accesses of a pass, in order. At the same position in the rows, completed
/// chunks are written first, then blocks gather, then chunks are read.
std::vector<ChunkAccess> AccessesOf(const CountedSequence& sequence, std::size_t pass,
                                    const CountedChoice& choice);

}  // namespace internal
}  // namespace rhizome
