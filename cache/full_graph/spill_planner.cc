#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/full_graph/counted_sequence.h"
#include "cache/full_graph/full_graph_plan.h"
#include "cache/full_graph/pass_step.h"
#include "cache/full_graph/remaining_bytes_bound.h"
#include "cache/full_graph/spill_candidate.h"

namespace rhizome {
inline namespace internal {
namespace {

/// With more optional sums than this, not every set of them is tried.
constexpr std::size_t kMaxTriedSums = 4;

/// Returns a relaxation of the sequence without sums: a pass that has sums reads only the arrays
/// that both of its ways read, in one block without memory. No choice of stored sums moves fewer
/// bytes.
PassSequence WithoutSums(const PassSequence& sequence) {
  PassSequence relaxed = sequence;
  std::vector<bool> is_sums(sequence.arrays.size(), false);
  for (SpillPass& pass : relaxed.passes) {
    if (!pass.sums) continue;
    is_sums[*pass.sums] = true;
    std::erase_if(pass.way.reads, [&](const PassRead& read) {
      return std::none_of(pass.recompute.reads.begin(), pass.recompute.reads.end(),
                          [&](const PassRead& other) { return other.array == read.array; });
    });
    pass.way.choices = {{}};
    pass.sums.reset();
  }
  for (SpillPass& pass : relaxed.passes)
    std::erase_if(pass.writes, [&](ArrayId array) { return is_sums[array]; });
  return relaxed;
}

/// Plans all requested policies, over all sets of stored sums.
class SpillPlanner {
 public:
  SpillPlanner(const PassSequence& sequence, std::uint64_t capacity_bytes,
               const FullGraphPlanOptions& options)
      : sequence_(sequence),
        capacity_bytes_(capacity_bytes),
        options_(options),
        counter_(sequence) {}

  /// Plans an epoch: (1) counts the sequence for each set of stored sums; (2) plans by parts (kDp)
  /// over all sets; (3) plans the chunk policies with the first set and the best set of (2); (4)
  /// plans whole arrays (kDpTensor); (5) computes the lower bound; (6) describes the chosen plan.
  Result<FullGraphPlan> Run() {
    if (counter_.sums().size() > 64)
      return Fail(Status::InvalidArgument("a sequence with more than 64 sums cannot be planned"));
    RHIZOME_RETURN_IF_ERROR(CountSets());
    if (options_.spill == SpillKind::kAuto || options_.spill == SpillKind::kDp || options_.contest)
      PlanParts();
    for (const SpillKind kind :
         {SpillKind::kNone, SpillKind::kLru, SpillKind::kLruLive, SpillKind::kBelady}) {
      if (Wants(kind)) PlanChunks(kind);
    }
    if (Wants(SpillKind::kDpTensor)) RHIZOME_RETURN_IF_ERROR(PlanWholeArrays());
    RHIZOME_RETURN_IF_ERROR(Bound());
    return Describe(Chosen());
  }

 private:
  /// One choice of stored sums.
  struct SumsSet {
    std::uint64_t stored = 0;
    CountedSequence sequence;
  };

  bool Wants(SpillKind kind) const {
    return options_.contest || options_.spill == SpillKind::kAuto || options_.spill == kind;
  }

  Status CountSets() {
    const std::size_t count = counter_.sums().size();
    const std::uint64_t all = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    std::vector<std::uint64_t> stored;
    if (options_.sums != SumsRule::kRecompute || count == 0) stored.push_back(all);
    if (options_.sums != SumsRule::kStore && count > 0) stored.push_back(0);
    all_sets_ = options_.sums != SumsRule::kAuto || count <= kMaxTriedSums;
    if (options_.stored_sums) {
      stored = {*options_.stored_sums & all};
      all_sets_ = true;
    } else if (options_.sums == SumsRule::kAuto && count <= kMaxTriedSums) {
      for (std::uint64_t set = 1; set < all; ++set) stored.push_back(set);
    }
    Status failed;
    for (const std::uint64_t set : stored) {
      Result<CountedSequence> counted = counter_.Count(set, capacity_bytes_);
      if (counted) {
        sets_.push_back({.stored = set, .sequence = *std::move(counted)});
      } else if (counted.error().code() == StatusCode::kOutOfMemory) {
        failed = counted.error();
      } else {
        return counted.error();
      }
    }
    return sets_.empty() ? failed : Status::Ok();
  }

  CandidatePlanner PlannerOf(const SumsSet& set) const {
    return {set.sequence, set.stored, capacity_bytes_, options_};
  }

  void PlanParts() {
    std::optional<Candidate> best;
    std::uint64_t states = 0;
    bool optimal = all_sets_;
    for (const SumsSet& set : sets_) {
      Candidate found =
          PlannerOf(set).ByParts(best ? std::optional(best->counts.bytes()) : std::nullopt);
      optimal = optimal && found.optimal;
      states = std::max(states, found.states);
      if (found.decisions.empty()) continue;
      best_set_ = &set;
      if (set.stored == 0 && !counter_.sums().empty()) recomputed_ = found.counts;
      best = std::move(found);
    }
    if (!best) return;
    best->optimal = optimal;
    best->states = states;
    if (options_.contest && !recomputed_) PlanRecompute();
    candidates_.push_back(*std::move(best));
  }

  /// Plans with all sums recomputed, for the comparison. The main search abandoned that plan
  /// because it is not the best.
  void PlanRecompute() {
    for (const SumsSet& set : sets_) {
      if (set.stored == 0 && !counter_.sums().empty())
        recomputed_ = PlannerOf(set).ByParts(std::nullopt).counts;
    }
  }

  void PlanChunks(SpillKind kind) {
    std::vector<const SumsSet*> sets = {&sets_.front()};
    if (best_set_ != nullptr && best_set_ != sets.front()) sets.push_back(best_set_);
    std::optional<Candidate> best;
    for (const SumsSet* const set : sets) {
      const bool of_plan = set == best_set_ && !candidates_.empty();
      Candidate made = PlannerOf(*set).ByChunks(
          kind, of_plan ? candidates_.front().passes.choices : std::vector<std::uint32_t>());
      if (!best || made.counts.bytes() < best->counts.bytes()) best = std::move(made);
    }
    candidates_.push_back(*std::move(best));
  }

  /// Plans whole arrays. It is an error that they do not fit only if kDpTensor was requested.
  Status PlanWholeArrays() {
    Result<Candidate> made = PlannerOf(sets_.front()).ByTensors();
    if (made) {
      candidates_.push_back(*std::move(made));
    } else if (options_.spill == SpillKind::kDpTensor) {
      return made.error();
    }
    return Status::Ok();
  }

  Status Bound() {
    bound_bytes_ = std::numeric_limits<std::uint64_t>::max();
    if (all_sets_) {
      for (const SumsSet& set : sets_) bound_bytes_ = std::min(bound_bytes_, BoundOf(set.sequence));
      return Status::Ok();
    }
    const PassSequence relaxed = WithoutSums(sequence_);
    SequenceCounter counter(relaxed);
    RHIZOME_ASSIGN_OR_RETURN(const CountedSequence counted, counter.Count(0, capacity_bytes_));
    bound_bytes_ = BoundOf(counted);
    return Status::Ok();
  }

  std::uint64_t BoundOf(const CountedSequence& sequence) const {
    std::uint64_t bytes = RemainingBytesBound(sequence, capacity_bytes_).Of(0, {});
    for (const CountedPass& pass : sequence.passes) {
      std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
      for (const CountedChoice& choice : pass.choices)
        least = std::min(least, choice.blocks.beside_bytes);
      bytes += least;
    }
    return bytes;
  }

  /// Returns the requested candidate; for kAuto, the one with the fewest bytes, with kDp first
  /// among equals.
  const Candidate& Chosen() const {
    return *std::min_element(candidates_.begin(), candidates_.end(),
                             [&](const Candidate& a, const Candidate& b) {
                               const auto rank = [&](const Candidate& c) {
                                 return options_.spill == SpillKind::kAuto
                                            ? c.counts.bytes()
                                            : static_cast<std::uint64_t>(c.kind != options_.spill);
                               };
                               return rank(a) < rank(b);
                             });
  }

  FullGraphPlan Describe(const Candidate& chosen) const {
    FullGraphPlan plan;
    plan.spill = chosen.kind;
    plan.stored_sums = chosen.stored_sums;
    plan.parts = options_.parts;
    plan.dirty_nearness = chosen.dirty_nearness;
    plan.capacity_bytes = capacity_bytes_;
    plan.read_bytes = chosen.counts.read_bytes;
    plan.written_bytes = chosen.counts.written_bytes;
    plan.beside_bytes = chosen.counts.beside_bytes;
    plan.peak_bytes = chosen.counts.peak_bytes;
    plan.optimal = chosen.optimal;
    plan.states = chosen.states;
    plan.lower_bound_bytes = bound_bytes_;
    for (std::size_t p = 0; p < sequence_.passes.size(); ++p)
      plan.passes.push_back(DescribePass(chosen, p));
    for (const Candidate& candidate : candidates_) {
      plan.policies.push_back({.name = std::string(SpillName(candidate.kind)),
                               .read_bytes = candidate.counts.read_bytes,
                               .written_bytes = candidate.counts.written_bytes,
                               .beside_bytes = candidate.counts.beside_bytes});
    }
    if (recomputed_ && options_.contest) {
      plan.policies.push_back({.name = "recompute",
                               .read_bytes = recomputed_->read_bytes,
                               .written_bytes = recomputed_->written_bytes,
                               .beside_bytes = recomputed_->beside_bytes});
    }
    return plan;
  }

  FullGraphPlan::Pass DescribePass(const Candidate& chosen, std::size_t p) const {
    const CountedPass& counted = chosen.passes.sequence->passes[p];
    const BlockChoice& blocks = chosen.passes.choice(p).blocks;
    FullGraphPlan::Pass pass{.name = counted.name,
                             .reads = chosen.counts.passes[p].reads,
                             .writes = chosen.counts.passes[p].writes,
                             .blocks = blocks.blocks,
                             .sum_bytes = blocks.memory_bytes,
                             .beside_bytes = blocks.beside_bytes,
                             .sums = FullGraphPlan::Sums::kNone,
                             .resident = chosen.counts.passes[p].resident,
                             .parts = {}};
    if (sequence_.passes[p].sums) {
      pass.sums =
          counted.recomputes ? FullGraphPlan::Sums::kRecomputed : FullGraphPlan::Sums::kStored;
    }
    if (chosen.decisions.empty()) return pass;
    for (ArrayId a = 0; a < sequence_.arrays.size(); ++a) {
      const std::uint32_t parts = chosen.decisions[p].resident[a];
      if (parts == 0) continue;
      pass.parts.push_back({.array = a,
                            .parts = parts,
                            .chunks = sequence_.arrays[a].ChunksOfPart(parts, options_.parts)});
    }
    return pass;
  }

  const PassSequence& sequence_;
  std::uint64_t capacity_bytes_;
  FullGraphPlanOptions options_;
  SequenceCounter counter_;
  std::vector<SumsSet> sets_;
  bool all_sets_ = true;
  const SumsSet* best_set_ = nullptr;
  std::vector<Candidate> candidates_;
  std::optional<SpillCounts> recomputed_;
  std::uint64_t bound_bytes_ = 0;
};

}  // namespace

Result<FullGraphPlan> PlanFullGraph(const PassSequence& sequence, std::uint64_t capacity_bytes,
                                    const FullGraphPlanOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckSequence(sequence));
  if (options.parts == 0 || options.parts > kMaxParts || options.max_states == 0) {
    return Fail(Status::InvalidArgument(fmt::format(
        "arrays can be divided into 1 to {} parts, not {}, and at least one state must be kept",
        kMaxParts, options.parts)));
  }
  if (sequence.passes.empty()) return Fail(Status::InvalidArgument("the sequence has no passes"));
  return SpillPlanner(sequence, capacity_bytes, options).Run();
}

}  // namespace internal
}  // namespace rhizome
