#include "cache/full_graph/counted_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace rhizome {
inline namespace internal {

bool CountedChoice::Gathers(ArrayId array) const {
  return std::any_of(reads.begin(), reads.end(), [&](const CountedRead& read) {
    return read.array == array && read.gather != nullptr;
  });
}

bool CountedChoice::Reads(ArrayId array) const {
  return std::any_of(reads.begin(), reads.end(),
                     [&](const CountedRead& read) { return read.array == array; });
}

bool CountedPass::Writes(ArrayId array) const {
  return std::find(writes.begin(), writes.end(), array) != writes.end();
}

SequenceCounter::SequenceCounter(const PassSequence& sequence) : sequence_(sequence) {
  for (const SpillPass& pass : sequence.passes) {
    if (pass.sums) sums_.push_back(*pass.sums);
  }
  std::sort(sums_.begin(), sums_.end());
  sums_.erase(std::unique(sums_.begin(), sums_.end()), sums_.end());
}

// Counts a sequence: (1) marks the sums that are not stored; (2) for each pass, chooses between the
// way with stored sums and the one that recomputes them, drops block choices that exceed the
// capacity, and counts the gathers of the others (cached in gathers_); (3) records the pass that
// writes each array and the last pass that reads it.
Result<CountedSequence> SequenceCounter::Count(std::uint64_t stored_sums,
                                               std::uint64_t capacity_bytes) {
  std::vector<bool> left_out(sequence_.arrays.size(), false);
  for (std::size_t i = 0; i < sums_.size(); ++i) left_out[sums_[i]] = (stored_sums >> i & 1) == 0;
  CountedSequence counted;
  counted.arrays = sequence_.arrays;
  counted.written.assign(sequence_.arrays.size(), CountedSequence::kNever);
  counted.last_read.assign(sequence_.arrays.size(), CountedSequence::kNever);
  for (std::size_t p = 0; p < sequence_.passes.size(); ++p) {
    RHIZOME_ASSIGN_OR_RETURN(CountedPass pass,
                             CountPass(sequence_.passes[p], left_out, capacity_bytes));
    for (const ArrayId array : pass.writes) counted.written[array] = static_cast<std::int32_t>(p);
    for (const CountedRead& read : pass.choices.front().reads)
      counted.last_read[read.array] = static_cast<std::int32_t>(p);
    counted.passes.push_back(std::move(pass));
  }
  return counted;
}

Result<CountedPass> SequenceCounter::CountPass(const SpillPass& pass,
                                               const std::vector<bool>& left_out,
                                               std::uint64_t capacity_bytes) {
  CountedPass counted{.name = pass.name, .writes = {}, .choices = {}, .recomputes = false};
  counted.recomputes = pass.sums && left_out[*pass.sums];
  for (const ArrayId array : pass.writes) {
    if (!left_out[array]) counted.writes.push_back(array);
  }
  const PassMethod& way = counted.recomputes ? pass.recompute : pass.way;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (const BlockChoice& choice : way.choices) {
    least = std::min(least, choice.memory_bytes);
    if (choice.memory_bytes > capacity_bytes) continue;
    CountedChoice& made =
        counted.choices.emplace_back(CountedChoice{.blocks = choice, .reads = {}});
    for (const PassRead& read : way.reads) {
      RHIZOME_ASSIGN_OR_RETURN(const GatherReads* const gather, Gather(read, choice.blocks));
      made.reads.push_back({.array = read.array, .gather = gather});
    }
  }
  if (!counted.choices.empty()) return counted;
  return Fail(Status::OutOfMemory(fmt::format(
      "pass {} needs at least {} bytes for its sums, but {} are left; raise `memory_bytes`",
      pass.name, least, capacity_bytes)));
}

void SequenceCounter::KeepOnly(const CountedSequence& sequence) {
  std::set<const GatherReads*> used;
  for (const CountedPass& pass : sequence.passes)
    for (const CountedChoice& choice : pass.choices)
      for (const CountedRead& read : choice.reads) used.insert(read.gather);
  std::erase_if(gathers_, [&](const auto& known) { return !used.contains(&known.second); });
}

Result<const GatherReads*> SequenceCounter::Gather(const PassRead& read, std::uint32_t blocks) {
  if (read.gather == PassRead::kInOrder) return nullptr;
  const std::pair key(static_cast<std::uint32_t>(read.gather), blocks);
  auto known = gathers_.find(key);
  if (known == gathers_.end()) {
    RHIZOME_ASSIGN_OR_RETURN(GatherReads reads, sequence_.gather(key.first, blocks));
    known = gathers_.emplace(key, std::move(reads)).first;
  }
  const GatherReads& reads = known->second;
  const std::uint32_t chunks = sequence_.arrays[read.array].chunks();
  const bool in_range = std::all_of(reads.chunks.begin(), reads.chunks.end(),
                                    [&](std::uint32_t chunk) { return chunk < chunks; });
  const bool in_blocks =
      std::is_sorted(reads.block_ends.begin(), reads.block_ends.end()) &&
      (reads.block_ends.empty() ? reads.chunks.empty()
                                : reads.block_ends.back() == reads.chunks.size()) &&
      (reads.block_begins.empty() ||
       (reads.block_begins.size() == reads.block_ends.size() && reads.places > 0 &&
        std::is_sorted(reads.block_begins.begin(), reads.block_begins.end())));
  if (in_range && in_blocks) return &reads;
  return Fail(Status::InvalidArgument(
      fmt::format("gather {} in {} blocks requests chunks that {} does not have", read.gather,
                  blocks, sequence_.arrays[read.array].name)));
}

namespace {

/// An access at position `at` when the rows are divided into `of` equal parts. At the same
/// position, completed chunks are written first, then blocks gather, then chunks are read.
struct PlacedAccess {
  enum Kind : std::uint8_t { kWrite, kGather, kRead };
  std::uint64_t at = 0;
  std::uint64_t of = 1;
  Kind kind = kWrite;
  std::uint32_t read = 0;    ///< index into the choice's reads
  std::uint32_t number = 0;  ///< number of the chunk or block
  ArrayId array = 0;

  bool Before(const PlacedAccess& other) const {
    const std::uint64_t here = at * other.of;
    const std::uint64_t there = other.at * of;
    return here != there ? here < there : kind < other.kind;
  }
};

std::vector<PlacedAccess> PlacesOf(const CountedSequence& sequence, const CountedPass& pass,
                                   const CountedChoice& choice) {
  std::vector<PlacedAccess> found;
  const auto add_chunks = [&](ArrayId array, std::uint32_t read, PlacedAccess::Kind kind) {
    const std::uint32_t chunks = sequence.arrays[array].chunks();
    for (std::uint32_t c = 0; c < chunks; ++c) {
      found.push_back({.at = c + std::uint64_t{kind == PlacedAccess::kWrite},
                       .of = chunks,
                       .kind = kind,
                       .read = read,
                       .number = c,
                       .array = array});
    }
  };
  for (std::uint32_t r = 0; r < choice.reads.size(); ++r) {
    const CountedRead& read = choice.reads[r];
    if (read.gather == nullptr) {
      add_chunks(read.array, r, PlacedAccess::kRead);
      continue;
    }
    const bool placed = !read.gather->block_begins.empty();
    const std::size_t blocks = read.gather->block_ends.size();
    for (std::uint32_t b = 0; b < blocks; ++b) {
      found.push_back({.at = placed ? read.gather->block_begins[b] : b,
                       .of = placed ? read.gather->places : blocks,
                       .kind = PlacedAccess::kGather,
                       .read = r,
                       .number = b,
                       .array = read.array});
    }
  }
  for (const ArrayId array : pass.writes) add_chunks(array, 0, PlacedAccess::kWrite);
  std::stable_sort(found.begin(), found.end(),
                   [](const PlacedAccess& a, const PlacedAccess& b) { return a.Before(b); });
  return found;
}

}  // namespace

std::vector<ChunkAccess> AccessesOf(const CountedSequence& sequence, std::size_t pass,
                                    const CountedChoice& choice) {
  std::vector<ChunkAccess> accesses;
  for (const PlacedAccess& placed : PlacesOf(sequence, sequence.passes[pass], choice)) {
    const bool write = placed.kind == PlacedAccess::kWrite;
    if (placed.kind != PlacedAccess::kGather) {
      accesses.push_back({.array = placed.array,
                          .chunk = placed.number,
                          .read = placed.read,
                          .block = 0,
                          .write = write});
      continue;
    }
    const GatherReads& gather = *choice.reads[placed.read].gather;
    const std::uint64_t first = placed.number == 0 ? 0 : gather.block_ends[placed.number - 1];
    for (std::uint64_t i = first; i < gather.block_ends[placed.number]; ++i) {
      accesses.push_back({.array = placed.array,
                          .chunk = gather.chunks[i],
                          .read = placed.read,
                          .block = placed.number,
                          .write = false});
    }
  }
  return accesses;
}

}  // namespace internal
}  // namespace rhizome
