#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/counted_sequence.h"
#include "rhizome/cache/pass_search.h"

namespace rhizome::inline internal {

inline constexpr std::uint32_t kMostParts = 15;

/// The memory that arrays hold at each stage of a pass, [parts].
using StageBytes = std::array<std::uint64_t, kMostParts>;

/// An array in a pass with a certain choice: what each number of resident parts costs and holds.
struct StepArray {
  ArrayId array = 0;
  PartState before;
  std::uint8_t most = 0;            ///< parts that may be resident
  bool needed = false;              ///< by a later pass
  bool regrows = false;             ///< its next pass reads it in order, and not for the last time
  std::vector<std::uint64_t> cost;  ///< [most + 1] bytes that are read and written; descending
  std::vector<StageBytes> holds;    ///< [most + 1]; ascending
  std::vector<PartState> after;     ///< [most + 1]
};

/// Works out what a pass costs, array by array: no array's cost depends on another's.
class StepMaker {
 public:
  StepMaker(const CountedSequence& sequence, std::uint32_t parts);

  /// Makes the arrays of a pass that begins in `before` [arrays], with one of its choices: those
  /// that it reads, those that it writes and some later pass needs, and others that are in memory.
  std::vector<StepArray> Make(std::size_t pass, std::uint32_t choice,
                              std::span<const PartState> before) const;

  /// Returns the bytes of the first parts of an array.
  std::uint64_t PrefixBytes(ArrayId array, std::uint32_t part) const {
    return prefix_[array * (parts_ + 1) + part];
  }

 private:
  struct Requests {
    ArrayId array = 0;
    bool in_order = false;              ///< and by no gather
    std::vector<std::uint64_t> beyond;  ///< [parts + 1] bytes asked for beyond the first parts
    std::vector<bool> whole;            ///< [parts] is every chunk of the part asked for?
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
  std::vector<std::uint64_t> prefix_;   // [arrays, parts + 1]
  std::vector<std::uint64_t> reached_;  // the same, of what has gone by when a stage begins
  std::vector<std::vector<std::vector<Requests>>> requests_;  // [passes, choices]
};

}  // namespace rhizome::inline internal
