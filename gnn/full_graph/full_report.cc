#include "gnn/full_graph/full_report.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

std::vector<FullGraphPass::Moved> MovedOf(const std::vector<ArrayBytes>& bytes,
                                          const PassSequence& sequence) {
  std::vector<FullGraphPass::Moved> moved;
  for (const ArrayBytes& of : bytes)
    moved.push_back({.array = sequence.arrays[of.array].name, .bytes = of.bytes});
  return moved;
}

/// Adds the arrays that a pass uses without moving any bytes of them.
void AddUnmoved(const std::vector<ArrayId>& arrays, const PassSequence& sequence,
                std::vector<FullGraphPass::Moved>& moved) {
  for (const ArrayId array : arrays) {
    const std::string& name = sequence.arrays[array].name;
    const bool known =
        std::any_of(moved.begin(), moved.end(), [&](const auto& one) { return one.array == name; });
    if (!known) moved.push_back({.array = name, .bytes = 0});
  }
}

std::string NameOfSums(FullGraphPlan::Sums sums) {
  if (sums == FullGraphPlan::Sums::kNone) return "";
  return sums == FullGraphPlan::Sums::kStored ? "stored" : "recomputed";
}

void AddPasses(const FullStepPlan& step, bool measures, FullGraphReport& report) {
  for (std::size_t p = 0; p < step.plan.passes.size(); ++p) {
    const FullGraphPlan::Pass& planned = step.plan.passes[p];
    const SpillPass& pass = step.sequence.passes[p];
    const bool again = planned.sums == FullGraphPlan::Sums::kRecomputed;
    FullGraphPass described{.name = planned.name,
                            .measures = measures,
                            .reads = MovedOf(planned.reads, step.sequence),
                            .feature_bytes = planned.beside_bytes,
                            .writes = MovedOf(planned.writes, step.sequence),
                            .blocks = planned.blocks,
                            .resident = MovedOf(planned.resident, step.sequence),
                            .sums = NameOfSums(planned.sums)};
    std::vector<ArrayId> reads;
    for (const PassRead& read : (again ? pass.recompute : pass.way).reads)
      reads.push_back(read.array);
    AddUnmoved(reads, step.sequence, described.reads);
    AddUnmoved(pass.writes, step.sequence, described.writes);
    report.passes.push_back(std::move(described));
  }
}

/// Returns the maximum bytes of files that exist at once. An array counts with the bytes written of
/// it, until no later pass needs it.
std::uint64_t DiskBytes(const FullStepPlan& step) {
  std::vector<std::uint64_t> written(step.sequence.arrays.size(), 0);
  std::uint64_t most = 0;
  for (std::size_t p = 0; p < step.plan.passes.size(); ++p) {
    for (const ArrayBytes& of : step.plan.passes[p].writes) written[of.array] += of.bytes;
    std::uint64_t now = 0;
    for (const std::uint64_t bytes : written) now += bytes;
    most = std::max(most, now);
    for (ArrayId a = 0; a < written.size(); ++a)
      if (!step.spill->NeededAfter(a, p)) written[a] = 0;
  }
  return most;
}

/// Adds the bytes of each policy in both steps. "recompute" of the training step is paired with
/// "dp" of the evaluation step. Policies that have no counterpart are left out.
void AddPolicies(const FullStepPlan& learn, const FullStepPlan* measure, FullGraphReport& report) {
  for (const FullGraphPlan::Contestant& policy : learn.plan.policies) {
    std::uint64_t bytes = policy.bytes();
    bool known = true;
    if (measure != nullptr) {
      const auto& others = measure->plan.policies;
      const std::string name = policy.name == "recompute" ? "dp" : policy.name;
      const auto found = std::find_if(others.begin(), others.end(),
                                      [&](const auto& other) { return other.name == name; });
      known = found != others.end();
      if (known) bytes += found->bytes();
    }
    if (known) report.policies.push_back({.name = policy.name, .bytes = bytes});
  }
}

bool IsOptimal(const FullGraphPlan& plan) {
  return plan.bytes() == plan.lower_bound_bytes ||
         ((plan.spill == SpillKind::kDp || plan.spill == SpillKind::kDpTensor) && plan.optimal);
}

}  // namespace

FullGraphReport DescribeSteps(const FullStepPlan& learn, const FullStepPlan& measure,
                              bool measured) {
  FullGraphReport report;
  AddPasses(learn, /*measures=*/false, report);
  AddPasses(measure, /*measures=*/true, report);
  for (const SpillArray& array : learn.sequence.arrays)
    report.arrays.push_back({.name = array.name, .bytes = array.bytes()});
  report.spill = SpillName(learn.plan.spill);
  report.measure_spill = SpillName(measure.plan.spill);
  report.optimal = IsOptimal(learn.plan) && (!measured || IsOptimal(measure.plan));
  report.planned_read_bytes = learn.plan.read_bytes + (measured ? measure.plan.read_bytes : 0);
  report.feature_bytes = learn.plan.beside_bytes + (measured ? measure.plan.beside_bytes : 0);
  report.planned_bytes =
      learn.plan.bytes() + (measured ? measure.plan.bytes() : 0) - report.feature_bytes;
  report.lower_bound_bytes =
      learn.plan.lower_bound_bytes + (measured ? measure.plan.lower_bound_bytes : 0);
  report.disk_bytes = std::max(DiskBytes(learn), DiskBytes(measure));
  AddPolicies(learn, measured ? &measure : nullptr, report);
  return report;
}

std::uint64_t PeakBytes(const FullStepPlan& learn, const FullStepPlan& measure) {
  std::uint64_t most = std::max(learn.plan.peak_bytes, measure.plan.peak_bytes);
  for (const FullStepPlan* const step : {&learn, &measure})
    for (const FullGraphPlan::Pass& pass : step->plan.passes) most = std::max(most, pass.sum_bytes);
  return most;
}

}  // namespace internal
}  // namespace rhizome
