#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/full_graph/counted_sequence.h"
#include "cache/full_graph/pass_search.h"

namespace rhizome {
inline namespace internal {

inline constexpr std::uint32_t kMaxParts = 15;

/// Memory that arrays occupy at each stage of a pass, [parts].
using StageBytes = std::array<std::uint64_t, kMaxParts>;

/// Costs and memory of one array in a pass with a given block choice, for each number of resident
/// parts.
struct StepArray {
  ArrayId array = 0;
  PartState before;
  std::uint8_t most = 0;            ///< maximum number of resident parts
  bool needed = false;              ///< by a later pass
  bool regrows = false;             ///< its next pass reads it in order, but not for the last time
  std::vector<std::uint64_t> cost;  ///< [most + 1] bytes read and written; descending
  std::vector<StageBytes> holds;    ///< [most + 1]; ascending
  std::vector<PartState> after;     ///< [most + 1]
};

/// Computes the cost of a pass array by array. The costs of arrays are independent.
class StepMaker {
 public:
  StepMaker(const CountedSequence& sequence, std::uint32_t parts);

  /// Returns the arrays that matter in a pass that starts in state `before` [arrays], with the
  /// given block choice: arrays that it reads, arrays that it writes and a later pass needs, and
  /// other arrays in memory.
  std::vector<StepArray> Make(std::size_t pass, std::uint32_t choice,
                              std::span<const PartState> before) const;

  /// Returns the bytes of the first `part` parts of an array.
  std::uint64_t PrefixBytes(ArrayId array, std::uint32_t part) const {
    return prefix_[array * (parts_ + 1) + part];
  }

 private:
  struct Requests {
    ArrayId array = 0;
    bool in_order = false;              ///< read in order and by no gather
    std::vector<std::uint64_t> beyond;  ///< [parts + 1] bytes requested beyond the first parts
    std::vector<bool> whole;            ///< [parts] whether every chunk of the part is requested
  };
  void CountRequests(const CountedChoice& choice, std::vector<Requests>& counted) const;
  bool Regrows(ArrayId array, std::size_t pass) const;
  StepArray MakeRead(std::size_t pass, const Requests& requests, PartState before) const;
  StepArray MakeWritten(ArrayId array) const;
  StepArray MakeIdle(ArrayId array, PartState before) const;
  std::uint64_t EvictBytes(ArrayId array, PartState before, std::uint32_t to) const;
  std::uint64_t Reached(ArrayId array, std::uint32_t stage) const {
    return reached_[array * (parts_ + 1) + stage];
  }

  const CountedSequence& sequence_;
  std::uint32_t parts_;
  std::vector<std::uint64_t> prefix_;  // [arrays, parts + 1]
  // [arrays, parts + 1]: bytes passed in order when a stage begins
  std::vector<std::uint64_t> reached_;
  std::vector<std::vector<std::vector<Requests>>> requests_;  // [passes, choices]
};

}  // namespace internal
}  // namespace rhizome
