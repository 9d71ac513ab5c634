#include "cache/full_graph/planned_spill.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cache/full_graph/counted_sequence.h"
#include "cache/full_graph/spill_candidate.h"

namespace rhizome {
inline namespace internal {

struct PlannedSpill::Impl {
  explicit Impl(const PassSequence& sequence) : counter(sequence) {}
  SequenceCounter counter;  // owns the gathers that `sequence` points to
  CountedSequence sequence;
  Candidate candidate;  // refers to `sequence`
  std::uint32_t parts = 1;
};

PlannedSpill::PlannedSpill(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PlannedSpill::~PlannedSpill() = default;

Result<std::unique_ptr<PlannedSpill>> PlannedSpill::Create(const PassSequence& sequence,
                                                           const FullGraphPlan& plan) {
  RHIZOME_RETURN_IF_ERROR(CheckSequence(sequence));
  if (plan.passes.size() != sequence.passes.size())
    return Fail(
        Status::InvalidArgument("the plan belongs to a sequence with another number of passes"));
  auto impl = std::make_unique<Impl>(sequence);
  RHIZOME_ASSIGN_OR_RETURN(impl->sequence,
                           impl->counter.Count(plan.stored_sums, plan.capacity_bytes));
  impl->parts = plan.parts;
  Candidate& candidate = impl->candidate;
  candidate.kind = plan.spill;
  candidate.dirty_nearness = plan.dirty_nearness;
  candidate.passes = {
      .sequence = &impl->sequence, .choices = {}, .capacity_bytes = plan.capacity_bytes};
  for (std::size_t p = 0; p < plan.passes.size(); ++p) {
    auto& choices = impl->sequence.passes[p].choices;
    const auto chosen = std::find_if(choices.begin(), choices.end(), [&](const CountedChoice& c) {
      return c.blocks.blocks == plan.passes[p].blocks;
    });
    if (chosen == choices.end()) {
      return Fail(Status::InvalidArgument(fmt::format("pass {} cannot be divided into {} blocks",
                                                      plan.passes[p].name, plan.passes[p].blocks)));
    }
    choices = {CountedChoice(*chosen)};
    candidate.passes.choices.push_back(0);
    PassDecision decision{.choice = 0,
                          .resident = std::vector<std::uint8_t>(sequence.arrays.size(), 0)};
    for (const FullGraphPlan::Parts& kept : plan.passes[p].parts)
      decision.resident[kept.array] = static_cast<std::uint8_t>(kept.parts);
    candidate.decisions.push_back(std::move(decision));
  }
  impl->counter.KeepOnly(impl->sequence);
  return std::unique_ptr<PlannedSpill>(new PlannedSpill(std::move(impl)));
}

std::vector<ChunkAccess> PlannedSpill::Accesses(std::size_t pass) const {
  return AccessesOf(impl_->sequence, pass, impl_->candidate.passes.choice(pass));
}

bool PlannedSpill::NeededAfter(ArrayId array, std::size_t pass) const {
  return impl_->sequence.NeededAfter(array, pass);
}

std::unique_ptr<SpillPolicy> PlannedSpill::NewPolicy() const {
  return MakePolicyOf(impl_->candidate, impl_->parts);
}

}  // namespace internal
}  // namespace rhizome
