#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cache/full_graph/counted_sequence.h"
#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/pass_search.h"
#include "cache/full_graph/spill_count.h"
#include "cache/full_graph/spill_policy.h"
#include "cache/full_graph/tensor_plan.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// The plan of one policy, before FullGraphPlan describes it.
struct Candidate {
  SpillKind kind = SpillKind::kNone;
  std::uint64_t stored_sums = 0;
  ChosenPasses passes;
  std::uint32_t dirty_nearness = 1;     // for kBelady
  std::vector<PassDecision> decisions;  // for kDp and kDpTensor
  SpillCounts counts;
  bool optimal = false;
  std::uint64_t states = 0;
};

/// Creates the policy of a candidate, whose arrays are divided into `parts`. The sequence of
/// `candidate.passes` must outlive it.
std::unique_ptr<SpillPolicy> MakePolicyOf(const Candidate& candidate, std::uint32_t parts);

/// Computes the plans for one choice of stored sums.
/// Ownership: borrows `sequence` and `options`.
class CandidatePlanner {
 public:
  CandidatePlanner(const CountedSequence& sequence, std::uint64_t stored_sums,
                   std::uint64_t capacity_bytes, const FullGraphPlanOptions& options)
      : sequence_(sequence),
        stored_sums_(stored_sums),
        capacity_bytes_(capacity_bytes),
        options_(options) {}

  /// Searches for a plan (kDp) below `below` bytes. `optimal` is set if no plan below it is better
  /// than the one found.
  Candidate ByParts(std::optional<std::uint64_t> below) const;

  /// Returns the best plan of a policy over the shares of memory for sums, and over the block
  /// choices of another plan, if given. For kBelady, other block choices are then tried pass by
  /// pass.
  Candidate ByChunks(SpillKind kind, const std::vector<std::uint32_t>& choices) const;

  /// Plans whole arrays (kDpTensor). Errors: any error of PlanTensors.
  Result<Candidate> ByTensors() const;

 private:
  Candidate Make(SpillKind kind) const;
  void Count(Candidate& made) const;
  void Offer(Candidate made, std::optional<Candidate>& best) const;
  void TryOtherBlocks(std::optional<Candidate>& best) const;
  OpGraph::Op OpOf(const CountedPass& pass, Candidate& made) const;

  const CountedSequence& sequence_;
  std::uint64_t stored_sums_;
  std::uint64_t capacity_bytes_;
  const FullGraphPlanOptions& options_;
};

}  // namespace internal
}  // namespace rhizome
