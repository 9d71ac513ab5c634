#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/cache/pass_sequence.h"

namespace rhizome::inline internal {

/// A read of a pass whose number of blocks is known. `gather` is null where chunks go by in order.
struct CountedRead {
  ArrayId array = 0;
  const GatherReads* gather = nullptr;
};

/// A number of blocks, with what is read then.
struct CountedChoice {
  BlockChoice blocks;
  std::vector<CountedRead> reads;

  bool Gathers(ArrayId array) const;
  bool Reads(ArrayId array) const;
};

struct CountedPass {
  std::string name;
  std::vector<ArrayId> writes;  ///< without sums that are not stored
  std::vector<CountedChoice> choices;
  bool recomputes = false;

  bool Writes(ArrayId array) const;
};

/// A sequence in which it is decided which sums are stored, with all its reads counted.
struct CountedSequence {
  static constexpr std::int32_t kNever = -1;
  std::span<const SpillArray> arrays;
  std::vector<CountedPass> passes;
  std::vector<std::int32_t> written;    ///< [arrays] the pass that writes each, or kNever
  std::vector<std::int32_t> last_read;  ///< [arrays] the last pass that reads each, or kNever

  bool NeededAfter(ArrayId array, std::size_t pass) const {
    return last_read[array] > static_cast<std::int32_t>(pass);
  }

  /// Does pass `pass` read the array in order, for the last time that it is read?
  bool EndsInOrder(ArrayId array, std::size_t pass, const CountedChoice& choice) const {
    return last_read[array] == static_cast<std::int32_t>(pass) && choice.Reads(array) &&
           !choice.Gathers(array);
  }
};

/// Counts each gather of a sequence once, whichever sums are stored.
/// Ownership: `sequence` must outlive it, and it the sequences that it makes.
class SequenceCounter {
 public:
  explicit SequenceCounter(const PassSequence& sequence);

  /// The sums that may be stored or not, ascending.
  std::span<const ArrayId> sums() const { return sums_; }

  /// Returns the sequence where those sums are stored whose bit is set in `stored_sums`, with the
  /// choices that fit into `capacity_bytes`. Errors: those of the counter; kInvalidArgument, a
  /// gather asks for chunks that its array does not have; kOutOfMemory, a pass fits with no number
  /// of blocks: the message names it and the least memory.
  Result<CountedSequence> Count(std::uint64_t stored_sums, std::uint64_t capacity_bytes);

  /// Forgets what `sequence`, the only one of those it made that is still used, does not read.
  void KeepOnly(const CountedSequence& sequence);

 private:
  Result<CountedPass> CountPass(const SpillPass& pass, const std::vector<bool>& left_out,
                                std::uint64_t capacity_bytes);
  Result<const GatherReads*> Gather(const PassRead& read, std::uint32_t blocks);

  const PassSequence& sequence_;
  std::vector<ArrayId> sums_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, GatherReads> gathers_;
};

/// Returns what a pass does to chunks, in order. At the same place of the rows a chunk that is
/// complete is written first, then blocks gather, then chunks are read.
std::vector<ChunkAccess> AccessesOf(const CountedSequence& sequence, std::size_t pass,
                                    const CountedChoice& choice);

}  // namespace rhizome::inline internal
