#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/policy.h"
#include "rhizome/read_cost.h"

namespace rhizome {
inline namespace internal {
class ScheduleHistory;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

/// Returns every kind of policy, the default first. Their names are the values of `--cache`.
std::vector<PolicyKind> AllPolicies();
std::string_view PolicyName(PolicyKind kind);
std::optional<PolicyKind> ParsePolicy(std::string_view name);

/// Returns whether a policy of this kind is built for one trace and cannot run any other.
bool KnowsTheFuture(PolicyKind kind);

/// Returns whether a policy of this kind uses a history of earlier traces.
bool TakesPrior(PolicyKind kind);

/// Returns the memory of a policy in bytes per key in [0, key_count), in addition to its memory per
/// frame and access.
std::uint64_t PolicyBytesPerKey(PolicyKind kind);

/// Parameters of a policy besides its trace.
struct PolicyOptions {
  PolicyKind kind = PolicyKind::kBelady;
  std::uint32_t frame_count = 0;
  std::uint64_t key_count = 0;
  std::uint64_t unit_bytes = 1;  ///< bytes of a row, for kCost
  ReadCost cost = {};            ///< for kCost

  /// Superbatches that precede the trace, for kinds for which TakesPrior is true. The policy starts
  /// with the pool contents that they left, and the trace is added to the history. If null, the
  /// pool starts empty, and keys that the trace does not request again are worth nothing.
  ScheduleHistory* history = nullptr;
};

/// Creates the policy of that kind for one trace; without frames, kNone. Policies that do not know
/// the future use only the steps passed to them. Errors: for policies that know the future, any
/// error of MakeBeladySchedule; kInvalidArgument, there is no such kind; kOutOfMemory.
Result<std::unique_ptr<Policy>> MakePolicy(const PolicyOptions& options, const Trace& trace);

}  // namespace rhizome
