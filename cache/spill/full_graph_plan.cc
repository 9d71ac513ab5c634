#include "rhizome/cache/full_graph_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <span>
#include <utility>

#include "rhizome/cache/counted_sequence.h"
#include "rhizome/cache/pass_search.h"
#include "rhizome/cache/pass_step.h"
#include "rhizome/cache/rest_bound.h"
#include "rhizome/cache/spill_count.h"
#include "rhizome/cache/spill_policy.h"
#include "rhizome/cache/tensor_plan.h"
#include "rhizome/storage/name_table.h"

namespace rhizome::inline internal {
namespace {

constexpr NameTable<SpillKind, 7> kSpillNames = {{{SpillKind::kAuto, "auto"},
                                                  {SpillKind::kNone, "none"},
                                                  {SpillKind::kLru, "lru"},
                                                  {SpillKind::kLruLive, "lru-live"},
                                                  {SpillKind::kBelady, "belady"},
                                                  {SpillKind::kDp, "dp"},
                                                  {SpillKind::kDpTensor, "dp-tensor"}}};
constexpr NameTable<SumsRule, 3> kSumsNames = {
    {{SumsRule::kAuto, "auto"}, {SumsRule::kStore, "store"}, {SumsRule::kRecompute, "recompute"}}};

/// With more sums than this, not every set of them is tried.
constexpr std::size_t kMostTriedSums = 4;

/// Memory is divided between sums and chunks in so many shares.
constexpr std::uint32_t kShares = 8;

/// A plan by one policy, before it is described.
struct Candidate {
  SpillKind kind = SpillKind::kNone;
  std::uint64_t stored_sums = 0;
  ChosenPasses passes;
  std::vector<PassDecision> decisions;  // of kDp and kDpTensor
  SpillCounts counts;
  bool optimal = false;
  std::uint64_t states = 0;
};

std::vector<std::vector<std::uint32_t>> ResidentChunks(const CountedSequence& sequence,
                                                       std::span<const PassDecision> decisions,
                                                       std::uint32_t parts) {
  std::vector<std::vector<std::uint32_t>> resident;
  for (const PassDecision& decision : decisions) {
    auto& chunks = resident.emplace_back();
    for (ArrayId a = 0; a < sequence.arrays.size(); ++a)
      chunks.push_back(sequence.arrays[a].ChunksOfPart(decision.resident[a], parts));
  }
  return resident;
}

std::unique_ptr<SpillPolicy> MakePolicyOf(const Candidate& candidate, std::uint32_t parts) {
  switch (candidate.kind) {
    case SpillKind::kLru:
      return MakeLruSpill(candidate.passes, /*live=*/false);
    case SpillKind::kLruLive:
      return MakeLruSpill(candidate.passes, /*live=*/true);
    case SpillKind::kBelady:
      return MakeBeladySpill(candidate.passes);
    case SpillKind::kDp:
    case SpillKind::kDpTensor:
      return MakePrefixSpill(
          candidate.passes, ResidentChunks(*candidate.passes.sequence, candidate.decisions, parts));
    default:
      return MakeStreamAll(candidate.passes);
  }
}

/// Makes the plans of one way to store sums.
class Planner {
 public:
  Planner(const CountedSequence& sequence, std::uint64_t stored_sums, std::uint64_t capacity_bytes,
          const FullGraphOptions& options)
      : sequence_(sequence),
        stored_sums_(stored_sums),
        capacity_bytes_(capacity_bytes),
        options_(options) {}

  /// Searches a plan below `below` bytes. `optimal`: there is none below it but what was found.
  Candidate ByParts(std::optional<std::uint64_t> below) const {
    PassSearchResult found = SearchPasses(sequence_, {.capacity_bytes = capacity_bytes_,
                                                      .parts = options_.parts,
                                                      .most_states = options_.most_states,
                                                      .below_bytes = below});
    Candidate made = Make(SpillKind::kDp);
    made.optimal = found.optimal;
    made.states = found.states;
    if (found.decisions.empty()) return made;
    for (const PassDecision& decision : found.decisions)
      made.passes.choices.push_back(decision.choice);
    made.decisions = std::move(found.decisions);
    Count(made);
    return made;
  }

  /// The best of a policy over the shares of memory that sums may take, and over the blocks of
  /// another plan, if one is given.
  Candidate ByChunks(SpillKind kind, const std::vector<std::uint32_t>& choices) const {
    std::vector<std::vector<std::uint32_t>> tried;
    if (!choices.empty()) tried.push_back(choices);
    for (std::uint32_t share = 0; share <= kShares; ++share) {
      std::vector<std::uint32_t> chosen;
      for (const CountedPass& pass : sequence_.passes)
        chosen.push_back(FewestBlocks(pass, capacity_bytes_ / kShares * share));
      if (std::find(tried.begin(), tried.end(), chosen) == tried.end())
        tried.push_back(std::move(chosen));
    }
    std::optional<Candidate> best;
    for (std::vector<std::uint32_t>& chosen : tried) {
      Candidate made = Make(kind);
      made.passes.choices = std::move(chosen);
      Count(made);
      if (!best || made.counts.bytes() < best->counts.bytes()) best = std::move(made);
    }
    return *std::move(best);
  }

  Result<Candidate> ByTensors() const {
    Candidate made = Make(SpillKind::kDpTensor);
    OpGraph graph;
    for (const SpillArray& array : sequence_.arrays)
      graph.tensors.push_back({.name = array.name, .bytes = array.bytes()});
    for (const CountedPass& pass : sequence_.passes) graph.ops.push_back(OpOf(pass, made));
    RHIZOME_ASSIGN_OR_RETURN(const TensorPlan plan,
                             PlanTensors(graph, {.capacity_bytes = capacity_bytes_,
                                                 .free_order = false,
                                                 .count_writes = true,
                                                 .most_states = options_.most_states}));
    for (const TensorStep& step : plan.steps) {
      PassDecision decision{.choice = made.passes.choices[step.op],
                            .resident = std::vector<std::uint8_t>(graph.tensors.size(), 0)};
      for (const std::uint32_t t : step.resident)
        decision.resident[t] = static_cast<std::uint8_t>(options_.parts);
      made.decisions.push_back(std::move(decision));
    }
    made.optimal = plan.optimal;
    made.states = plan.most_states;
    Count(made);
    return made;
  }

 private:
  Candidate Make(SpillKind kind) const {
    Candidate made;
    made.kind = kind;
    made.stored_sums = stored_sums_;
    made.passes = {.sequence = &sequence_, .choices = {}, .capacity_bytes = capacity_bytes_};
    return made;
  }

  void Count(Candidate& made) const {
    made.counts = CountSpill(made.passes, *MakePolicyOf(made, options_.parts));
  }

  /// The fewest blocks whose sums take no more than `bytes`; else those of the least memory.
  static std::uint32_t FewestBlocks(const CountedPass& pass, std::uint64_t bytes) {
    const auto rank = [&](const CountedChoice& choice) {
      const BlockChoice& blocks = choice.blocks;
      return blocks.memory_bytes <= bytes
                 ? std::pair<std::uint64_t, std::uint64_t>(0, blocks.blocks)
                 : std::pair(1 + blocks.memory_bytes, std::uint64_t{0});
    };
    const auto best = std::min_element(
        pass.choices.begin(), pass.choices.end(),
        [&](const CountedChoice& a, const CountedChoice& b) { return rank(a) < rank(b); });
    return static_cast<std::uint32_t>(best - pass.choices.begin());
  }

  /// The operator of a pass, with the fewest blocks whose sums fit beside its arrays.
  OpGraph::Op OpOf(const CountedPass& pass, Candidate& made) const {
    OpGraph::Op op{.name = "pass " + pass.name, .inputs = {}, .outputs = {}, .memory_bytes = 0};
    std::uint64_t bytes = 0;
    for (const CountedRead& read : pass.choices.front().reads) {
      if (std::find(op.inputs.begin(), op.inputs.end(), read.array) != op.inputs.end()) continue;
      op.inputs.push_back(read.array);
      bytes += sequence_.arrays[read.array].bytes();
    }
    for (const ArrayId array : pass.writes) {
      op.outputs.push_back(array);
      bytes += sequence_.arrays[array].bytes();
    }
    const std::uint32_t choice =
        FewestBlocks(pass, capacity_bytes_ - std::min(bytes, capacity_bytes_));
    made.passes.choices.push_back(choice);
    op.memory_bytes = pass.choices[choice].blocks.memory_bytes;
    return op;
  }

  const CountedSequence& sequence_;
  std::uint64_t stored_sums_;
  std::uint64_t capacity_bytes_;
  const FullGraphOptions& options_;
};

/// The sequence without its sums: a pass that has some reads what it reads in both ways, in one
/// block that takes no memory. No way to store them moves less.
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

/// Plans all policies that are wanted, over all sets of sums.
class PlanContest {
 public:
  PlanContest(const PassSequence& sequence, std::uint64_t capacity_bytes,
              const FullGraphOptions& options)
      : sequence_(sequence),
        capacity_bytes_(capacity_bytes),
        options_(options),
        counter_(sequence) {}

  Result<FullGraphPlan> Run() {
    if (counter_.sums().size() > 64)
      return Fail(Status::InvalidArgument("a sequence with more than 64 sums is not planned"));
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
  /// One way to store sums.
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
    all_sets_ = options_.sums != SumsRule::kAuto || count <= kMostTriedSums;
    if (options_.sums == SumsRule::kAuto && count <= kMostTriedSums) {
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

  Planner PlannerOf(const SumsSet& set) const {
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

  /// The plan where all sums are computed again, which was given up before, as it is not the best.
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

  /// Plans whole arrays. That they do not fit is an error only if that is what was asked for.
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
      for (const SumsSet& set : sets_) {
        bound_bytes_ = std::min(bound_bytes_, RestBound(set.sequence, capacity_bytes_).Of(0, {}));
      }
      return Status::Ok();
    }
    const PassSequence relaxed = WithoutSums(sequence_);
    SequenceCounter counter(relaxed);
    RHIZOME_ASSIGN_OR_RETURN(const CountedSequence counted, counter.Count(0, capacity_bytes_));
    bound_bytes_ = RestBound(counted, capacity_bytes_).Of(0, {});
    return Status::Ok();
  }

  /// The candidate that was asked for; by `auto` the one with the fewest bytes, kDp among equals.
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
    plan.capacity_bytes = capacity_bytes_;
    plan.read_bytes = chosen.counts.read_bytes;
    plan.written_bytes = chosen.counts.written_bytes;
    plan.peak_bytes = chosen.counts.peak_bytes;
    plan.optimal = chosen.optimal;
    plan.states = chosen.states;
    plan.lower_bound_bytes = bound_bytes_;
    for (std::size_t p = 0; p < sequence_.passes.size(); ++p)
      plan.passes.push_back(DescribePass(chosen, p));
    for (const Candidate& candidate : candidates_) {
      plan.policies.push_back({.name = std::string(SpillName(candidate.kind)),
                               .read_bytes = candidate.counts.read_bytes,
                               .written_bytes = candidate.counts.written_bytes});
    }
    if (recomputed_ && options_.contest) {
      plan.policies.push_back({.name = "recompute",
                               .read_bytes = recomputed_->read_bytes,
                               .written_bytes = recomputed_->written_bytes});
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
                             .sums = FullGraphPlan::Sums::kNone,
                             .resident = {}};
    if (sequence_.passes[p].sums) {
      pass.sums =
          counted.recomputes ? FullGraphPlan::Sums::kRecomputed : FullGraphPlan::Sums::kStored;
    }
    if (chosen.decisions.empty()) return pass;
    for (ArrayId a = 0; a < sequence_.arrays.size(); ++a) {
      const std::uint32_t parts = chosen.decisions[p].resident[a];
      if (parts == 0) continue;
      pass.resident.push_back({.array = a,
                               .parts = parts,
                               .chunks = sequence_.arrays[a].ChunksOfPart(parts, options_.parts)});
    }
    return pass;
  }

  const PassSequence& sequence_;
  std::uint64_t capacity_bytes_;
  FullGraphOptions options_;
  SequenceCounter counter_;
  std::vector<SumsSet> sets_;
  bool all_sets_ = true;
  const SumsSet* best_set_ = nullptr;
  std::vector<Candidate> candidates_;
  std::optional<SpillCounts> recomputed_;
  std::uint64_t bound_bytes_ = 0;
};

/// A policy with the counted sequence that it decides for.
class OwningSpill : public SpillPolicy {
 public:
  OwningSpill(std::unique_ptr<SequenceCounter> counter, CountedSequence sequence)
      : counter_(std::move(counter)), sequence_(std::move(sequence)) {}

  const CountedSequence& sequence() const { return sequence_; }
  void Take(std::unique_ptr<SpillPolicy> policy) { policy_ = std::move(policy); }

  void Begin(std::size_t pass, std::vector<LeavingChunk>& leaves) override {
    policy_->Begin(pass, leaves);
  }
  Verdict Read(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) override {
    return policy_->Read(array, chunk, leaves);
  }
  Verdict Made(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) override {
    return policy_->Made(array, chunk, leaves);
  }
  void End(std::vector<LeavingChunk>& leaves) override { policy_->End(leaves); }

 private:
  std::unique_ptr<SequenceCounter> counter_;  // has the gathers that `sequence_` points to
  CountedSequence sequence_;
  std::unique_ptr<SpillPolicy> policy_;
};

}  // namespace

std::string_view SpillName(SpillKind kind) { return NameOf(kSpillNames, kind); }
std::optional<SpillKind> ParseSpill(std::string_view name) { return KindOf(kSpillNames, name); }
std::string_view SumsRuleName(SumsRule rule) { return NameOf(kSumsNames, rule); }
std::optional<SumsRule> ParseSumsRule(std::string_view name) { return KindOf(kSumsNames, name); }

Result<FullGraphPlan> PlanFullGraph(const PassSequence& sequence, std::uint64_t capacity_bytes,
                                    const FullGraphOptions& options) {
  RHIZOME_RETURN_IF_ERROR(CheckSequence(sequence));
  if (options.parts == 0 || options.parts > kMostParts || options.most_states == 0) {
    return Fail(Status::InvalidArgument(
        fmt::format("arrays are divided into 1 to {} parts, not {}, and at least one state is kept",
                    kMostParts, options.parts)));
  }
  if (sequence.passes.empty()) return Fail(Status::InvalidArgument("a sequence without passes"));
  return PlanContest(sequence, capacity_bytes, options).Run();
}

Result<std::unique_ptr<SpillPolicy>> MakeSpillPolicy(const PassSequence& sequence,
                                                     const FullGraphPlan& plan) {
  RHIZOME_RETURN_IF_ERROR(CheckSequence(sequence));
  if (plan.passes.size() != sequence.passes.size())
    return Fail(Status::InvalidArgument("the plan is of a sequence with another number of passes"));
  auto counter = std::make_unique<SequenceCounter>(sequence);
  RHIZOME_ASSIGN_OR_RETURN(CountedSequence counted,
                           counter->Count(plan.stored_sums, plan.capacity_bytes));
  auto owning = std::make_unique<OwningSpill>(std::move(counter), std::move(counted));
  Candidate candidate;
  candidate.kind = plan.spill;
  candidate.passes = {
      .sequence = &owning->sequence(), .choices = {}, .capacity_bytes = plan.capacity_bytes};
  for (std::size_t p = 0; p < plan.passes.size(); ++p) {
    const auto& choices = owning->sequence().passes[p].choices;
    const auto chosen = std::find_if(choices.begin(), choices.end(), [&](const CountedChoice& c) {
      return c.blocks.blocks == plan.passes[p].blocks;
    });
    if (chosen == choices.end()) {
      return Fail(Status::InvalidArgument(fmt::format("pass {} is not cut into {} blocks",
                                                      plan.passes[p].name, plan.passes[p].blocks)));
    }
    candidate.passes.choices.push_back(static_cast<std::uint32_t>(chosen - choices.begin()));
    PassDecision decision{.choice = candidate.passes.choices.back(),
                          .resident = std::vector<std::uint8_t>(sequence.arrays.size(), 0)};
    for (const FullGraphPlan::Resident& resident : plan.passes[p].resident)
      decision.resident[resident.array] = static_cast<std::uint8_t>(resident.parts);
    candidate.decisions.push_back(std::move(decision));
  }
  owning->Take(MakePolicyOf(candidate, plan.parts));
  return std::unique_ptr<SpillPolicy>(std::move(owning));
}

}  // namespace rhizome::inline internal
