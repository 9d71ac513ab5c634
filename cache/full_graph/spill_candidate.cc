#include "cache/full_graph/spill_candidate.h"

#include <algorithm>
#include <span>
#include <utility>

#include "cache/full_graph/tensor_plan.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Number of shares into which memory is divided between sums and chunks.
constexpr std::uint32_t kShares = 8;

/// Values of dirty_nearness (MakeBeladySpill) to try.
constexpr std::uint32_t kNearness[] = {1, 2, 4};

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

/// Returns the choice with the fewest blocks whose sums fit in `bytes`; if none fits, the one with
/// the least memory.
std::uint32_t FewestBlocks(const CountedPass& pass, std::uint64_t bytes) {
  const auto rank = [&](const CountedChoice& choice) {
    const BlockChoice& blocks = choice.blocks;
    return blocks.memory_bytes <= bytes ? std::pair<std::uint64_t, std::uint64_t>(0, blocks.blocks)
                                        : std::pair(1 + blocks.memory_bytes, std::uint64_t{0});
  };
  const auto best = std::min_element(
      pass.choices.begin(), pass.choices.end(),
      [&](const CountedChoice& a, const CountedChoice& b) { return rank(a) < rank(b); });
  return static_cast<std::uint32_t>(best - pass.choices.begin());
}

}  // namespace

std::unique_ptr<SpillPolicy> MakePolicyOf(const Candidate& candidate, std::uint32_t parts) {
  switch (candidate.kind) {
    case SpillKind::kLru:
      return MakeLruSpill(candidate.passes, /*live=*/false);
    case SpillKind::kLruLive:
      return MakeLruSpill(candidate.passes, /*live=*/true);
    case SpillKind::kBelady:
      return MakeBeladySpill(candidate.passes, candidate.dirty_nearness);
    case SpillKind::kDp:
    case SpillKind::kDpTensor:
      return MakePrefixSpill(
          candidate.passes, ResidentChunks(*candidate.passes.sequence, candidate.decisions, parts));
    default:
      return MakeStreamAll(candidate.passes);
  }
}

Candidate CandidatePlanner::ByParts(std::optional<std::uint64_t> below) const {
  PassSearchResult found = SearchPasses(sequence_, {.capacity_bytes = capacity_bytes_,
                                                    .parts = options_.parts,
                                                    .max_states = options_.max_states,
                                                    .max_tried = options_.max_tried,
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

// Plans by chunks: (1) derives block choices from each share of memory for sums; (2) counts the
// policy with each of them; (3) for kBelady, improves the best by local search; (4) repeats this
// from the given choices.
Candidate CandidatePlanner::ByChunks(SpillKind kind,
                                     const std::vector<std::uint32_t>& choices) const {
  std::vector<std::vector<std::uint32_t>> tried;
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
    Offer(std::move(made), best);
  }
  if (kind == SpillKind::kBelady) TryOtherBlocks(best);
  if (choices.empty()) return *std::move(best);
  // The local search can start from either choice of blocks. Neither start is always better.
  std::optional<Candidate> other;
  Candidate made = Make(kind);
  made.passes.choices = choices;
  Offer(std::move(made), other);
  if (kind == SpillKind::kBelady) TryOtherBlocks(other);
  return other->counts.bytes() < best->counts.bytes() ? *std::move(other) : *std::move(best);
}

/// Counts a candidate (for kBelady with each nearness) and keeps it if it is the best.
void CandidatePlanner::Offer(Candidate made, std::optional<Candidate>& best) const {
  for (const std::uint32_t nearness : kNearness) {
    made.dirty_nearness = nearness;
    Count(made);
    if (!best || made.counts.bytes() < best->counts.bytes()) best = made;
    if (made.kind != SpillKind::kBelady) return;
  }
}

/// Tries the other block choices of each pass, one pass after another, and keeps improvements.
void CandidatePlanner::TryOtherBlocks(std::optional<Candidate>& best) const {
  for (std::size_t p = 0; p < sequence_.passes.size(); ++p) {
    const std::uint32_t now = best->passes.choices[p];
    for (std::uint32_t c = 0; c < sequence_.passes[p].choices.size(); ++c) {
      if (c == now) continue;
      Candidate made = *best;
      made.passes.choices[p] = c;
      Count(made);
      if (made.counts.bytes() < best->counts.bytes()) best = std::move(made);
    }
  }
}

Result<Candidate> CandidatePlanner::ByTensors() const {
  Candidate made = Make(SpillKind::kDpTensor);
  OpGraph graph;
  for (const SpillArray& array : sequence_.arrays)
    graph.tensors.push_back({.name = array.name, .bytes = array.bytes()});
  for (const CountedPass& pass : sequence_.passes) graph.ops.push_back(OpOf(pass, made));
  RHIZOME_ASSIGN_OR_RETURN(const TensorPlan plan,
                           PlanTensors(graph, {.capacity_bytes = capacity_bytes_,
                                               .free_order = false,
                                               .count_writes = true,
                                               .max_states = options_.max_states}));
  for (const TensorStep& step : plan.steps) {
    PassDecision decision{.choice = made.passes.choices[step.op],
                          .resident = std::vector<std::uint8_t>(graph.tensors.size(), 0)};
    for (const std::uint32_t t : step.resident)
      decision.resident[t] = static_cast<std::uint8_t>(options_.parts);
    made.decisions.push_back(std::move(decision));
  }
  made.optimal = plan.optimal;
  made.states = plan.max_states;
  Count(made);
  return made;
}

Candidate CandidatePlanner::Make(SpillKind kind) const {
  Candidate made;
  made.kind = kind;
  made.stored_sums = stored_sums_;
  made.passes = {.sequence = &sequence_, .choices = {}, .capacity_bytes = capacity_bytes_};
  return made;
}

void CandidatePlanner::Count(Candidate& made) const {
  made.counts = CountSpill(made.passes, *MakePolicyOf(made, options_.parts));
}

/// Returns the operator of a pass, with the fewest blocks whose sums fit next to its arrays.
OpGraph::Op CandidatePlanner::OpOf(const CountedPass& pass, Candidate& made) const {
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

}  // namespace internal
}  // namespace rhizome
