#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/full_graph/pass_sequence.h"
#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Policy that decides which chunks of arrays remain in memory from pass to pass.
enum class SpillKind : std::uint8_t {
  kAuto,      ///< the plan that moves the fewest bytes among all below
  kNone,      ///< keeps nothing
  kLru,       ///< keeps the most recently used chunks; written data is written out
  kLruLive,   ///< as kLru, but arrays that no later pass reads are dropped unwritten
  kBelady,    ///< keeps the chunks needed soonest in the epoch
  kDp,        ///< keeps parts of arrays, by dynamic programming over passes (pass_search.h)
  kDpTensor,  ///< keeps whole arrays, by dynamic programming over operators (tensor_plan.h; ROC)
};
std::string_view SpillName(SpillKind kind);
std::optional<SpillKind> ParseSpill(std::string_view name);

/// Treatment of sums that a pass may store for a later one.
enum class SumsRule : std::uint8_t { kAuto, kStore, kRecompute };
std::string_view SumsRuleName(SumsRule rule);
std::optional<SumsRule> ParseSumsRule(std::string_view name);

struct FullGraphPlanOptions {
  SpillKind spill = SpillKind::kAuto;
  SumsRule sums = SumsRule::kAuto;
  std::uint32_t parts = 8;              ///< equal parts into which kDp divides an array; at most 15
  std::size_t max_states = 200'000;     ///< of one pass; if exceeded, kDp is only an upper bound
  std::uint64_t max_tried = 2'000'000;  ///< choices of kDp in total; if exceeded, likewise
  bool contest = true;                  ///< also count the other policies

  /// If set, exactly these sums are stored, in the format of FullGraphPlan::stored_sums; replaces
  /// `sums`.
  std::optional<std::uint64_t> stored_sums = {};
};

/// Number of bytes of one array.
struct ArrayBytes {
  ArrayId array = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const ArrayBytes&, const ArrayBytes&) = default;
};

/// A plan for an epoch: the bytes that each pass reads from the slow tier and writes to it,
/// exactly.
struct FullGraphPlan {
  enum class Sums : std::uint8_t { kNone, kStored, kRecomputed };

  /// The first chunks of an array, which are in memory while a pass runs.
  struct Parts {
    ArrayId array = 0;
    std::uint32_t parts = 0;  ///< the first `parts` of FullGraphPlan::parts equal parts
    std::uint32_t chunks = 0;
  };
  struct Pass {
    std::string name;
    std::vector<ArrayBytes> reads;
    std::vector<ArrayBytes> writes;  ///< includes writes of other arrays as they leave memory
    std::uint32_t blocks = 1;
    std::uint64_t sum_bytes = 0;       ///< memory for the sums of a block
    std::uint64_t beside_bytes = 0;    ///< BlockChoice::beside_bytes
    Sums sums = Sums::kNone;           ///< where the sums that it uses come from
    std::vector<ArrayBytes> resident;  ///< in memory when it starts to read
    std::vector<Parts> parts;          ///< for kDp and kDpTensor; other policies decide by chunk
  };

  /// Result of one policy, with the division of memory between sums and chunks that moves the
  /// fewest bytes.
  struct Contestant {
    std::string name;  ///< name of a SpillKind, or "recompute" (kDp with all sums recomputed)
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t beside_bytes = 0;
    std::uint64_t bytes() const { return read_bytes + written_bytes + beside_bytes; }
  };

  SpillKind spill = SpillKind::kDp;  ///< never kAuto
  std::vector<Pass> passes;
  /// bit i: the i-th array (ascending) that holds the sums of a pass
  std::uint64_t stored_sums = 0;
  std::uint32_t parts = 8;
  std::uint32_t dirty_nearness = 1;  ///< parameter of kBelady, see MakeBeladySpill (spill_count.h)
  std::uint64_t capacity_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t beside_bytes = 0;  ///< read in addition to the arrays
  std::uint64_t peak_bytes = 0;    ///< sums and chunks that remain in memory
  bool optimal = false;      ///< for kDp: no plan in parts moves fewer bytes; else an upper bound
  std::uint64_t states = 0;  ///< of the search, maximum over passes
  std::uint64_t lower_bound_bytes = 0;  ///< for any policy; see remaining_bytes_bound.h
  std::vector<Contestant> policies;

  std::uint64_t bytes() const { return read_bytes + written_bytes + beside_bytes; }

  /// Returns the seconds that the slow tier needs to move the bytes.
  double Seconds(const Tier& slow) const {
    return static_cast<double>(read_bytes + beside_bytes) / slow.read_bytes_per_second +
           static_cast<double>(written_bytes) / slow.write_bytes_per_second;
  }
};

/// Plans an epoch. `capacity_bytes` is the memory for retained chunks and for sums; the other
/// working memory of a pass is not part of the plan. Memory starts empty, and its contents at the
/// end are dropped.
///
/// For policies other than kDp the number of blocks is a choice too: shares of 0/8 to 8/8 of the
/// memory are tried for sums, and the best one is used. If there are more than 4 optional sums,
/// only storing all or none is tried, and the plan is not marked optimal.
/// Errors: any error of CheckSequence or of the gather counter; kInvalidArgument, `parts` is out of
/// range or there are more than 64 sums; kOutOfMemory, the sums of a pass, or for kDpTensor its
/// arrays, do not fit: the message names the pass and the minimum.
Result<FullGraphPlan> PlanFullGraph(const PassSequence& sequence, std::uint64_t capacity_bytes,
                                    const FullGraphPlanOptions& options);

}  // namespace internal
}  // namespace rhizome
