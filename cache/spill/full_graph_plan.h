#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/pass_sequence.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The rule that decides which chunks of arrays stay in memory from pass to pass.
enum class SpillKind : std::uint8_t {
  kAuto,      ///< the plan that moves the fewest bytes, of all below
  kNone,      ///< nothing stays
  kLru,       ///< chunks that were used last, and what was written is written out
  kLruLive,   ///< the same, but arrays that no pass reads any more leave for nothing
  kBelady,    ///< chunks that are needed soonest, among those of the whole epoch
  kDp,        ///< parts of arrays, by dynamic programming over the passes (pass_search.h)
  kDpTensor,  ///< whole arrays, by dynamic programming over operators (tensor_plan.h; ROC)
};
std::string_view SpillName(SpillKind kind);
std::optional<SpillKind> ParseSpill(std::string_view name);

/// The fate of sums that a pass may store for a later one.
enum class SumsRule : std::uint8_t { kAuto, kStore, kRecompute };
std::string_view SumsRuleName(SumsRule rule);
std::optional<SumsRule> ParseSumsRule(std::string_view name);

struct FullGraphOptions {
  SpillKind spill = SpillKind::kAuto;
  SumsRule sums = SumsRule::kAuto;
  std::uint32_t parts = 8;               ///< of an array that kDp divides; at most 15
  std::size_t most_states = 200'000;     ///< of one pass; beyond that, kDp is a bound
  std::uint64_t most_tried = 2'000'000;  ///< choices of kDp in all; beyond that, likewise
  bool contest = true;                   ///< also count the other policies

  /// Not by `sums`, but these are stored, as FullGraphPlan::stored_sums has them.
  std::optional<std::uint64_t> stored_sums = {};
};

/// The bytes of one array.
struct ArrayBytes {
  ArrayId array = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const ArrayBytes&, const ArrayBytes&) = default;
};

/// A plan for an epoch: what each pass reads from the slow tier and writes to it, to the byte.
struct FullGraphPlan {
  enum class Sums : std::uint8_t { kNone, kStored, kRecomputed };

  /// The first chunks of an array that are in memory while a pass runs.
  struct Parts {
    ArrayId array = 0;
    std::uint32_t parts = 0;  ///< the first `parts` of FullGraphPlan::parts equal parts
    std::uint32_t chunks = 0;
  };
  struct Pass {
    std::string name;
    std::vector<ArrayBytes> reads;
    std::vector<ArrayBytes> writes;  ///< also of other arrays, as they leave memory
    std::uint32_t blocks = 1;
    std::uint64_t sum_bytes = 0;       ///< memory of the sums of a block
    std::uint64_t beside_bytes = 0;    ///< BlockChoice::beside_bytes
    Sums sums = Sums::kNone;           ///< where the sums that it works on come from
    std::vector<ArrayBytes> resident;  ///< in memory when it begins to read
    std::vector<Parts> parts;          ///< by kDp and kDpTensor; others decide by chunk
  };

  /// A policy at its best: no memory is divided between sums and chunks with fewer bytes.
  struct Contestant {
    std::string name;  ///< of a SpillKind, or "recompute" (kDp, all sums computed again)
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t beside_bytes = 0;
    std::uint64_t bytes() const { return read_bytes + written_bytes + beside_bytes; }
  };

  SpillKind spill = SpillKind::kDp;  ///< never kAuto
  std::vector<Pass> passes;
  std::uint64_t stored_sums = 0;  ///< bit i: the i-th array (ascending) that is a pass's sums
  std::uint32_t parts = 8;
  std::uint32_t dirty_nearness = 1;  ///< of kBelady, see MakeBeladySpill (spill_count.h)
  std::uint64_t capacity_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t beside_bytes = 0;  ///< read beside the arrays
  std::uint64_t peak_bytes = 0;    ///< of sums and of chunks that stay
  bool optimal = false;            ///< for kDp: no plan in parts moves fewer bytes; else a bound
  std::uint64_t states = 0;        ///< of the search, the most of one pass
  std::uint64_t lower_bound_bytes = 0;  ///< of any policy; see rest_bound.h
  std::vector<Contestant> policies;

  std::uint64_t bytes() const { return read_bytes + written_bytes + beside_bytes; }

  /// Returns the seconds that the slow tier takes to move the bytes.
  double Seconds(const Tier& slow) const {
    return static_cast<double>(read_bytes + beside_bytes) / slow.read_bytes_per_second +
           static_cast<double>(written_bytes) / slow.write_bytes_per_second;
  }
};

/// Plans an epoch. `capacity_bytes` is for chunks that stay and for sums; what a pass works on
/// beside them is not the planner's. Memory starts empty, and what is in it at the end is dropped.
///
/// Of policies other than kDp the number of blocks is a choice too: of memory, shares of 0/8 to 8/8
/// are tried for sums, and the best counts. Where more than 4 sums may be stored or not, only all
/// and none are tried, and the plan is not called optimal.
/// Errors: those of CheckSequence; those of the counter; kInvalidArgument, `parts` out of range or
/// more than 64 sums; kOutOfMemory, a pass's sums, or for kDpTensor the arrays of a pass, do not
/// fit: the message names the pass and the least.
Result<FullGraphPlan> PlanFullGraph(const PassSequence& sequence, std::uint64_t capacity_bytes,
                                    const FullGraphOptions& options);

}  // namespace internal
}  // namespace rhizome
