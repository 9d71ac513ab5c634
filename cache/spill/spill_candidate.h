#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/cache/counted_sequence.h"
#include "rhizome/cache/full_graph_plan.h"
#include "rhizome/cache/pass_search.h"
#include "rhizome/cache/spill_count.h"
#include "rhizome/cache/spill_policy.h"
#include "rhizome/cache/tensor_plan.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// A plan by one policy, before it is described.
struct Candidate {
  SpillKind kind = SpillKind::kNone;
  std::uint64_t stored_sums = 0;
  ChosenPasses passes;
  std::uint32_t dirty_nearness = 1;     // of kBelady
  std::vector<PassDecision> decisions;  // of kDp and kDpTensor
  SpillCounts counts;
  bool optimal = false;
  std::uint64_t states = 0;
};

/// Makes the policy of a candidate, whose arrays are divided into `parts`. `candidate.passes`
/// refers to a sequence that must outlive it.
std::unique_ptr<SpillPolicy> MakePolicyOf(const Candidate& candidate, std::uint32_t parts);

/// Makes the plans of one way to store sums.
/// Ownership: borrows `sequence` and `options`.
class CandidatePlanner {
 public:
  CandidatePlanner(const CountedSequence& sequence, std::uint64_t stored_sums,
                   std::uint64_t capacity_bytes, const FullGraphOptions& options)
      : sequence_(sequence),
        stored_sums_(stored_sums),
        capacity_bytes_(capacity_bytes),
        options_(options) {}

  /// Searches a plan below `below` bytes. `optimal`: there is none below it but what was found.
  Candidate ByParts(std::optional<std::uint64_t> below) const;

  /// The best of a policy over the shares of memory that sums may take, and over the blocks of
  /// another plan, if one is given. Of kBelady other blocks are then tried pass by pass.
  Candidate ByChunks(SpillKind kind, const std::vector<std::uint32_t>& choices) const;

  /// Errors: those of PlanTensors.
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
  const FullGraphOptions& options_;
};

}  // namespace rhizome::inline internal
