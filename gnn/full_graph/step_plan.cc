#include "gnn/full_graph/step_plan.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "cache/full_graph/gather_reads.h"
#include "storage/base/check.h"

// StepPlanner:
//   1. Record notes what each pass of a step reads and writes, and some ways to cut the pass into
//      blocks (CutsOf), from few large blocks to many small ones.
//   2. Choose adds a cut with about the fewest blocks that fit (AddFewestBlocks), and keeps at most
//      kMaxCuts cuts that fit.
//   3. Plan counts the chunks that each cut reads (GatherCounts). PlanFullGraph then chooses the
//      cut of each pass and the chunks that stay in memory.

namespace rhizome {
inline namespace internal {
namespace {

/// Minimum memory for the sums and lists of a block.
constexpr std::uint64_t kMinBlockBytes = std::uint64_t{1} << 20;

/// Blocks are tried with these fractions (1/n) of the memory.
constexpr std::uint64_t kBlockShares[] = {1, 2, 4, 8, 16, 32};

/// Number of bisection steps that look for the largest block between two of these sizes that fits.
constexpr int kHalvings = 5;

/// Maximum number of cuts of a pass to plan with. Each of them is counted over all lists.
constexpr std::size_t kMaxCuts = 4;

/// Limits of the search of SpillKind::kDp. It then takes about a second.
constexpr std::size_t kMaxStates = 5'000;
constexpr std::uint64_t kMaxTried = 30'000;

/// Memory of the plan for each chunk that a block may read: its number, its position in the pass,
/// and its next use.
constexpr std::uint64_t kBytesOfAccess = 32;

/// More than a block of any pass needs, but small enough to be multiplied without overflow.
constexpr std::uint64_t kMaxBlockBytes = std::uint64_t{1} << 45;

}  // namespace

std::int32_t GatherCounts::NumberOf(const PassGather& gather, const std::string& apart) {
  const std::uint64_t dim = ground_.ColumnsOf(gather.source);
  const auto found = std::find_if(lists_.begin(), lists_.end(), [&](const Lists& lists) {
    const bool of_features = lists.gather.source.array == nullptr;
    return of_features == (gather.source.array == nullptr) &&
           lists.gather.forward == gather.forward && lists.gather.width == gather.width &&
           lists.gather.by == gather.by && lists.gather.heads.alike(gather.heads) &&
           lists.dim == dim && lists.apart == apart;
  });
  if (found != lists_.end()) return static_cast<std::int32_t>(found - lists_.begin());
  lists_.push_back(
      {.gather = gather, .dim = dim, .apart = apart, .block_bytes = {}, .counted = {}});
  return static_cast<std::int32_t>(lists_.size() - 1);
}

std::uint64_t GatherCounts::BytesFor(std::int32_t gather, std::uint32_t blocks,
                                     std::uint64_t block_bytes) {
  return lists_[static_cast<std::size_t>(gather)]
      .block_bytes.try_emplace(blocks, block_bytes)
      .first->second;
}

void GatherCounts::Want(std::int32_t gather, std::uint32_t blocks) {
  lists_[static_cast<std::size_t>(gather)].counted.try_emplace(blocks);
}

Result<GatherReads> GatherCounts::Count(std::uint32_t gather, std::uint32_t blocks) {
  std::optional<GatherReads>& counted = lists_[gather].counted[blocks];
  if (!counted) RHIZOME_RETURN_IF_ERROR(CountWanted());
  return *counted;
}

/// Counts all announced calls that have not been counted yet.
Status GatherCounts::CountWanted() {
  std::vector<CountedGather> wanted;
  std::vector<std::optional<GatherReads>*> into;
  for (Lists& lists : lists_) {
    for (auto& [blocks, counted] : lists.counted) {
      if (counted) continue;
      const GatherShape shape = ground_.ShapeOf(lists.gather, lists.block_bytes.at(blocks));
      wanted.push_back({.planner = shape.planner, .blocks = shape.blocks});
      into.push_back(&counted);
    }
  }
  RHIZOME_ASSIGN_OR_RETURN(std::vector<GatherReads> reads,
                           CountGathers(ground_.graph, wanted, memory_bytes_, control_));
  const std::uint64_t chunk_rows = ground_.sizes.chunk_rows;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    reads[i].places = (ground_.rows() + chunk_rows - 1) / chunk_rows * chunk_rows;
    for (const Block& block : wanted[i].blocks) {
      // A block that begins within a chunk is aggregated after the in-order reads of that chunk.
      // Several aggregations of a pass follow one another.
      const auto begin = static_cast<std::uint64_t>(block.begin);
      const std::uint64_t beyond = begin % chunk_rows;
      reads[i].block_begins.push_back(begin - beyond + (beyond > 0 ? 1 : 0));
    }
    *into[i] = std::move(reads[i]);
  }
  return Status::Ok();
}

Result<std::uint64_t> GatherCounts::BytesOfFeatures(const FeatureReads& reads,
                                                    std::uint32_t blocks) {
  if (reads.in_order == 0 && reads.gathers.empty()) return std::uint64_t{0};
  const ChunkArray& array = ground_.features.array;
  std::vector<std::uint64_t> bytes;  // [chunks]
  for (std::uint64_t chunk = 0; chunk < array.entry().chunk_count(); ++chunk) {
    RHIZOME_ASSIGN_OR_RETURN(const FileEntry* const file, array.ChunkFile(chunk));
    bytes.push_back(file->size_bytes);
  }
  std::uint64_t all =
      reads.in_order * std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
  for (const std::int32_t gather : reads.gathers) {
    RHIZOME_ASSIGN_OR_RETURN(const GatherReads counted,
                             Count(static_cast<std::uint32_t>(gather), blocks));
    // Chunks that hold only vertices added since have no file.
    for (const std::uint32_t chunk : counted.chunks) all += chunk < bytes.size() ? bytes[chunk] : 0;
  }
  return all;
}

StepPlanner::StepPlanner(const PassContext& ground, const FullArrays& arrays,
                         std::shared_ptr<GatherCounts> counts, const StepPlannerOptions& options)
    : ground_(ground), arrays_(arrays.size()), counts_(std::move(counts)), options_(options) {
  std::uint64_t largest = 0;
  for (const auto& [name, array] : arrays) {
    arrays_[array->id()] = array.get();
    largest = std::max(largest, array->shape().LargestBytes());
  }
  writer_bytes_ = ChunkMover::WriterBytes(largest);
}

Status StepPlanner::Record(const ForStep& storing, const ForStep& recomputing) {
  const auto into = [this](std::vector<Recorded>& recorded) {
    recorded.clear();
    return [this, &recorded](const GraphPass& pass) -> Result<TileSums> {
      recorded.push_back(RecordPass(pass));
      return TileSums(pass.sums);
    };
  };
  RHIZOME_RETURN_IF_ERROR(storing(into(storing_)));
  return recomputing ? recomputing(into(recomputing_)) : Status::Ok();
}

StepPlanner::Recorded StepPlanner::RecordPass(const GraphPass& pass) {
  Recorded recorded{.name = pass.name, .reads = {}, .features = {}, .writes = {}, .cuts = {}};
  for (const PassInput& input : pass.inputs) {
    if (input.array != nullptr) {
      recorded.reads.push_back({.array = input.array->id()});
    } else {
      ++recorded.features.in_order;
    }
  }
  const std::string apart = pass.gathers.size() > 1 ? pass.name : "";
  std::vector<std::int32_t> numbers;
  for (const PassGather& gather : pass.gathers) {
    numbers.push_back(counts_->NumberOf(gather, apart));
    if (gather.source.array == nullptr) {
      recorded.features.gathers.push_back(numbers.back());
    } else {
      recorded.reads.push_back({.array = gather.source.array->id(), .gather = numbers.back()});
    }
  }
  for (const ScratchArray* const array : pass.outputs) recorded.writes.push_back(array->id());
  const std::int32_t first = numbers.empty() ? PassRead::kInOrder : numbers.front();
  GraphPass counted = pass;
  counted.body = {};  // the body borrows objects that do not live as long
  recorded.cut_with = [this, counted = std::move(counted), first](std::uint64_t block_bytes) {
    return CutWith(counted, first, block_bytes);
  };
  recorded.cuts = CutsOf(recorded, !pass.gathers.empty());
  for (const Cut& cut : recorded.cuts) SayBytes(recorded, cut);
  return recorded;
}

StepPlanner::Cut StepPlanner::CutWith(const GraphPass& pass, std::int32_t gather,
                                      std::uint64_t block_bytes) {
  std::uint64_t chunks = 0;  // that a block may read
  for (const PassGather& gathered : pass.gathers)
    if (gathered.source.array != nullptr) chunks += gathered.source.array->shape().chunks();
  std::uint32_t blocks = 1;
  if (!pass.gathers.empty()) {
    blocks = static_cast<std::uint32_t>(
        ground_.ShapeOf(pass.gathers.front(), block_bytes).blocks.size());
  }
  if (gather != PassRead::kInOrder) block_bytes = counts_->BytesFor(gather, blocks, block_bytes);
  const std::uint64_t memory_bytes = writer_bytes_ + blocks * chunks * kBytesOfAccess +
                                     BytesOfPass(pass, ground_, block_bytes, options_.threads);
  return {.block_bytes = block_bytes, .blocks = {.blocks = blocks, .memory_bytes = memory_bytes}};
}

std::vector<StepPlanner::Cut> StepPlanner::CutsOf(const Recorded& pass, bool gathers) const {
  std::vector<Cut> cuts;
  const auto add = [&](std::uint64_t block_bytes) {
    const Cut cut = pass.cut_with(block_bytes);
    if (!cuts.empty() && cuts.back().blocks.blocks >= cut.blocks.blocks) return;
    if (!cuts.empty() && cuts.back().blocks.memory_bytes <= cut.blocks.memory_bytes) return;
    cuts.push_back(cut);
  };
  for (const std::uint64_t share : kBlockShares) {
    add(std::max(kMinBlockBytes, std::min(options_.capacity_bytes, kMaxBlockBytes) / share));
    if (!gathers) return cuts;
  }
  add(kMinBlockBytes);
  return cuts;
}

/// Sets the memory for a block of a cut, for all aggregations of the pass.
void StepPlanner::SayBytes(const Recorded& pass, const Cut& cut) const {
  for (const PassRead& read : pass.reads) {
    if (read.gather != PassRead::kInOrder)
      counts_->BytesFor(read.gather, cut.blocks.blocks, cut.block_bytes);
  }
  for (const std::int32_t gather : pass.features.gathers)
    counts_->BytesFor(gather, cut.blocks.blocks, cut.block_bytes);
}

/// Returns the bytes of the arrays that a pass keeps whole in memory beside its blocks.
std::uint64_t StepPlanner::WholeBytes(const Recorded& pass) const {
  if (options_.spill != SpillKind::kDpTensor) return 0;
  std::set<ArrayId> whole(pass.writes.begin(), pass.writes.end());
  for (const PassRead& read : pass.reads) whole.insert(read.array);
  std::uint64_t bytes = 0;
  for (const ArrayId array : whole) bytes += arrays_[array]->shape().AllBytes();
  return bytes;
}

StepPlanner::Least StepPlanner::least() const {
  Least least;
  const bool again = options_.sums == SumsRule::kRecompute && !recomputing_.empty();
  for (const Recorded& pass : again ? recomputing_ : storing_) {
    const std::uint64_t bytes = pass.cuts.back().blocks.memory_bytes + WholeBytes(pass);
    if (bytes > least.bytes) least = {.pass = pass.name, .bytes = bytes};
  }
  return least;
}

std::uint64_t StepPlanner::BytesForAll() const {
  std::uint64_t bytes = 0;
  for (const Recorded& pass : storing_)
    bytes = std::max(bytes, pass.cuts.front().blocks.memory_bytes);
  for (const ScratchArray* const array : arrays_) bytes += array->shape().AllBytes();
  return bytes;
}

/// Adds a cut with about the fewest blocks that fit, found by bisection between a cut that fits and
/// one that does not. Each block may read a whole array. Memory that makes a block unnecessary
/// therefore saves more bytes than the same memory used for chunks that stay.
void StepPlanner::AddFewestBlocks(Recorded& pass) const {
  const auto fits = [this](const Cut& cut) { return Fits(cut); };
  const auto first = std::find_if(pass.cuts.begin(), pass.cuts.end(), fits);
  if (first == pass.cuts.begin() || first == pass.cuts.end()) return;
  Cut fewest = *first;
  std::uint64_t beyond = std::prev(first)->block_bytes;  // does not fit
  for (int i = 0; i < kHalvings && fewest.block_bytes < beyond; ++i) {
    const std::uint64_t middle = fewest.block_bytes + (beyond - fewest.block_bytes) / 2;
    const Cut tried = pass.cut_with(middle);
    if (Fits(tried) && tried.blocks.blocks <= fewest.blocks.blocks) {
      fewest = tried;
    } else {
      beyond = middle;
    }
  }
  if (fewest.blocks.blocks >= first->blocks.blocks) return;
  SayBytes(pass, fewest);
  pass.cuts.insert(first, fewest);
}

/// Drops the cuts that do not fit, if any cut fits, and keeps at most kMaxCuts. With `all_fits`
/// keeps only the cut with the fewest blocks.
void StepPlanner::ChooseCuts(Recorded& pass, bool all_fits) const {
  if (all_fits) {
    pass.cuts.resize(1);
    return;
  }
  AddFewestBlocks(pass);
  if (std::any_of(pass.cuts.begin(), pass.cuts.end(), [this](const Cut& cut) { return Fits(cut); }))
    std::erase_if(pass.cuts, [this](const Cut& cut) { return !Fits(cut); });
  if (pass.cuts.size() <= kMaxCuts) return;
  std::vector<Cut> chosen;
  for (std::size_t i = 0; i < kMaxCuts; ++i)
    chosen.push_back(pass.cuts[i * (pass.cuts.size() - 1) / (kMaxCuts - 1)]);
  pass.cuts = std::move(chosen);
}

Result<PassMethod> StepPlanner::WayOf(const Recorded& pass) const {
  PassMethod way{.reads = pass.reads, .choices = {}};
  for (const Cut& cut : pass.cuts) {
    BlockChoice& choice = way.choices.emplace_back(cut.blocks);
    RHIZOME_ASSIGN_OR_RETURN(choice.beside_bytes,
                             counts_->BytesOfFeatures(pass.features, choice.blocks));
  }
  return way;
}

/// Returns the array of sums that a pass reads if sums are stored and recomputes otherwise. Returns
/// nullopt if it has none.
std::optional<ArrayId> StepPlanner::SumsOf(std::size_t pass) const {
  if (recomputing_.empty()) return std::nullopt;
  RHIZOME_CHECK(recomputing_[pass].name == storing_[pass].name);
  const std::vector<PassRead>& reads = recomputing_[pass].reads;
  for (const PassRead& read : storing_[pass].reads) {
    const bool again = std::any_of(reads.begin(), reads.end(), [&](const PassRead& other) {
      return other.array == read.array;
    });
    if (!again) return read.array;
  }
  return std::nullopt;
}

void StepPlanner::Want(const Recorded& pass) const {
  for (const Cut& cut : pass.cuts) {
    for (const PassRead& read : pass.reads)
      if (read.gather != PassRead::kInOrder) counts_->Want(read.gather, cut.blocks.blocks);
    for (const std::int32_t gather : pass.features.gathers)
      counts_->Want(gather, cut.blocks.blocks);
  }
}

void StepPlanner::Choose() {
  const bool all_fits = BytesForAll() <= options_.capacity_bytes;
  for (std::size_t p = 0; p < storing_.size(); ++p) {
    ChooseCuts(storing_[p], all_fits);
    Want(storing_[p]);
    if (!SumsOf(p)) continue;
    ChooseCuts(recomputing_[p], all_fits);
    Want(recomputing_[p]);
  }
}

Result<std::unique_ptr<FullStepPlan>> StepPlanner::Plan() {
  auto step = std::make_unique<FullStepPlan>();
  step->writer_bytes = writer_bytes_;
  PassSequence& sequence = step->sequence;
  for (const ScratchArray* const array : arrays_) {
    const ScratchShape& shape = array->shape();
    sequence.arrays.push_back({.name = shape.name,
                               .rows = shape.rows,
                               .row_bytes = shape.dim * sizeof(float),
                               .chunk_rows = shape.chunk_rows,
                               .unit_bytes = ScratchShape::kUnitBytes});
  }
  for (std::size_t p = 0; p < storing_.size(); ++p) {
    SpillPass& pass = sequence.passes.emplace_back();
    pass.name = storing_[p].name;
    RHIZOME_ASSIGN_OR_RETURN(pass.way, WayOf(storing_[p]));
    pass.writes = storing_[p].writes;
    pass.sums = SumsOf(p);
    if (pass.sums) {
      RHIZOME_ASSIGN_OR_RETURN(pass.recompute, WayOf(recomputing_[p]));
    }
  }
  sequence.gather = [counts = counts_](std::uint32_t gather, std::uint32_t blocks) {
    return counts->Count(gather, blocks);
  };
  RHIZOME_ASSIGN_OR_RETURN(step->plan, PlanFullGraph(sequence, options_.capacity_bytes,
                                                     {.spill = options_.spill,
                                                      .sums = options_.sums,
                                                      .max_states = kMaxStates,
                                                      .max_tried = kMaxTried,
                                                      .stored_sums = options_.stored_sums}));
  for (std::size_t p = 0; p < sequence.passes.size(); ++p) {
    const FullGraphPlan::Pass& planned = step->plan.passes[p];
    const bool again = planned.sums == FullGraphPlan::Sums::kRecomputed;
    const std::vector<Cut>& cuts = again ? recomputing_[p].cuts : storing_[p].cuts;
    const auto cut = std::find_if(cuts.begin(), cuts.end(),
                                  [&](const Cut& c) { return c.blocks.blocks == planned.blocks; });
    step->block_bytes.push_back(cut->block_bytes);
  }
  RHIZOME_ASSIGN_OR_RETURN(step->spill, PlannedSpill::Create(sequence, step->plan));
  sequence.gather = {};  // frees the counts, which planning alone needs
  return step;
}

}  // namespace internal
}  // namespace rhizome
