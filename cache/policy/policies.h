#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "rhizome/cache/policy.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/read_cost.h"

namespace RHIZOME_API rhizome {

/// Every kind there is, the default one first: what `--cache` offers.
std::vector<PolicyKind> AllPolicies();
std::string_view PolicyName(PolicyKind kind);
std::optional<PolicyKind> ParsePolicy(std::string_view name);

/// Is a policy of that kind made for one trace (and no other)?
bool KnowsTheFuture(PolicyKind kind);

/// Memory of a policy for each key, in use or not, beside what its frames and accesses take.
std::uint64_t PolicyBytesPerKey(PolicyKind kind);

/// What policies are made from, besides the trace.
struct PolicyOptions {
  PolicyKind kind = PolicyKind::kBelady;
  std::uint32_t frame_count = 0;
  std::uint64_t key_count = 0;
  std::uint64_t unit_bytes = 1;  ///< of a frame, for kCost
  ReadCost cost = {};            ///< for kCost
};

/// The policy of that kind for one trace; kNone without frames. Those that do not know the future
/// look only at the steps that they are given. Errors: those of MakeBeladySchedule, for policies
/// that know the future; kInvalidArgument, there is no such kind; kOutOfMemory.
Result<std::unique_ptr<Policy>> MakePolicy(const PolicyOptions& options, const Trace& trace);

}  // namespace rhizome
