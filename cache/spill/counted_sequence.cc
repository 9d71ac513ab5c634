#include "rhizome/cache/counted_sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace rhizome::inline internal {

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
  const PassWay& way = counted.recomputes ? pass.recompute : pass.way;
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
  return Fail(Status::OutOfMemory(
      fmt::format("pass {} takes at least {} bytes for its sums, {} are left; give more --memory",
                  pass.name, least, capacity_bytes)));
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
                                : reads.block_ends.back() == reads.chunks.size());
  if (in_range && in_blocks) return &reads;
  return Fail(Status::InvalidArgument(
      fmt::format("gather {} in {} blocks asks for chunks that {} does not have", read.gather,
                  blocks, sequence_.arrays[read.array].name)));
}

namespace {

/// A chunk that goes by in order, at the place `chunk / chunks` of its pass.
struct InOrder {
  ChunkAccess access;
  std::uint64_t chunks = 1;

  bool Before(const InOrder& other) const {
    const std::uint64_t here = access.chunk * other.chunks;
    const std::uint64_t there = other.access.chunk * chunks;
    return here != there ? here < there : access.write < other.access.write;
  }
};

std::vector<InOrder> InOrderOf(const CountedSequence& sequence, const CountedPass& pass,
                               const CountedChoice& choice) {
  std::vector<InOrder> found;
  const auto add = [&](ArrayId array, bool write) {
    const std::uint32_t chunks = sequence.arrays[array].chunks();
    for (std::uint32_t c = 0; c < chunks; ++c) {
      found.push_back({.access = {.array = array, .chunk = c, .write = write}, .chunks = chunks});
    }
  };
  for (const CountedRead& read : choice.reads) {
    if (read.gather == nullptr) add(read.array, false);
  }
  for (const ArrayId array : pass.writes) add(array, true);
  std::stable_sort(found.begin(), found.end(),
                   [](const InOrder& a, const InOrder& b) { return a.Before(b); });
  return found;
}

}  // namespace

std::vector<ChunkAccess> AccessesOf(const CountedSequence& sequence, std::size_t pass,
                                    const CountedChoice& choice) {
  const std::vector<InOrder> in_order = InOrderOf(sequence, sequence.passes[pass], choice);
  std::vector<ChunkAccess> accesses;
  auto next = in_order.begin();
  for (std::uint64_t b = 0; b < choice.blocks.blocks; ++b) {
    for (const CountedRead& read : choice.reads) {
      if (read.gather == nullptr || b >= read.gather->block_ends.size()) continue;
      const std::uint64_t first = b == 0 ? 0 : read.gather->block_ends[b - 1];
      for (std::uint64_t i = first; i < read.gather->block_ends[b]; ++i) {
        accesses.push_back({.array = read.array, .chunk = read.gather->chunks[i], .write = false});
      }
    }
    const auto in_block = [&](const InOrder& chunk) {
      return chunk.access.chunk * std::uint64_t{choice.blocks.blocks} < (b + 1) * chunk.chunks;
    };
    for (; next != in_order.end() && in_block(*next); ++next) accesses.push_back(next->access);
  }
  return accesses;
}

}  // namespace rhizome::inline internal
