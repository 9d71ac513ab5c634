#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/read_cost.h"

namespace rhizome::inline internal {
class ScheduleHistory;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

/// Returns every kind of policy, the default one first; these are the values of `--cache`.
std::vector<PolicyKind> AllPolicies();
std::string_view PolicyName(PolicyKind kind);
std::optional<PolicyKind> ParsePolicy(std::string_view name);

/// Returns whether a policy of this kind is made for one trace and can run no other.
bool KnowsTheFuture(PolicyKind kind);

/// Returns whether a policy of this kind makes use of a history of earlier traces.
bool TakesPrior(PolicyKind kind);

/// Returns the memory of a policy in bytes for each key in [0, key_count), in addition to what it
/// takes for its frames and accesses.
std::uint64_t PolicyBytesPerKey(PolicyKind kind);

/// The parameters of a policy besides its trace.
struct PolicyOptions {
  PolicyKind kind = PolicyKind::kBelady;
  std::uint32_t frame_count = 0;
  std::uint64_t key_count = 0;
  std::uint64_t unit_bytes = 1;  ///< bytes of a row, for kCost
  ReadCost cost = {};            ///< for kCost

  /// The superbatches before the trace, for kinds that TakesPrior says: it begins with what they
  /// left in the pool, and is added. Null: the pool begins empty, and what the trace does not ask
  /// for again is worth nothing.
  ScheduleHistory* history = nullptr;
};

/// The policy of that kind for one trace; kNone without frames. Those that do not know the future
/// look only at the steps that they are given. Errors: those of MakeBeladySchedule, for policies
/// that know the future; kInvalidArgument, there is no such kind; kOutOfMemory.
Result<std::unique_ptr<Policy>> MakePolicy(const PolicyOptions& options, const Trace& trace);

}  // namespace rhizome
