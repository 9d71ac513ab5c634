#include "cache/full_graph/remaining_bytes_bound.h"

#include <algorithm>
#include <limits>
#include <map>

#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Reads of a block choice: for each array the bytes that are requested at least once, and in total
/// the minimum that is read again.
struct ChoiceReads {
  std::map<ArrayId, std::uint64_t> first;
  std::uint64_t again = 0;
};

ChoiceReads ReadsOfChoice(const CountedSequence& sequence, const CountedChoice& choice,
                          std::uint64_t capacity_bytes) {
  ChoiceReads reads;
  std::vector<std::uint64_t> again(choice.blocks.blocks);  // bytes that an earlier block requested
  // last block that requested each chunk, from 1
  std::map<ArrayId, std::vector<std::uint32_t>> asked;
  const auto ask = [&](ArrayId array, std::uint32_t chunk, std::uint32_t block) {
    std::uint32_t& last = asked[array][chunk];
    const std::uint64_t bytes = sequence.arrays[array].BytesOfChunk(chunk);
    if (last == 0) reads.first[array] += bytes;
    if (last > 0 && last < block) again[block - 1] += bytes;
    last = block;
  };
  for (std::uint32_t b = 0; b < choice.blocks.blocks; ++b) {
    for (const CountedRead& read : choice.reads) {
      asked[read.array].resize(sequence.arrays[read.array].chunks());
      reads.first.try_emplace(read.array, 0);
      if (read.gather == nullptr || b >= read.gather->block_ends.size()) continue;
      const std::uint64_t begin = b == 0 ? 0 : read.gather->block_ends[b - 1];
      for (std::uint64_t i = begin; i < read.gather->block_ends[b]; ++i)
        ask(read.array, read.gather->chunks[i], b + 1);
    }
  }
  for (const CountedRead& read : choice.reads) {
    if (read.gather != nullptr) continue;
    // In-order reads request each chunk once. The bound ignores whether an earlier block requested
    // it.
    const std::vector<std::uint32_t>& last = asked[read.array];
    for (std::uint32_t c = 0; c < last.size(); ++c) {
      if (last[c] == 0) reads.first[read.array] += sequence.arrays[read.array].BytesOfChunk(c);
    }
  }
  const std::uint64_t room = capacity_bytes - choice.blocks.memory_bytes;
  for (const std::uint64_t bytes : again) reads.again += bytes - std::min(bytes, room);
  return reads;
}

/// The part of an interval that is kept so far.
struct Kept {
  std::int32_t last;
  std::uint64_t bytes;
};

}  // namespace

std::uint64_t MostKept(std::span<const KeepInterval> intervals,
                       std::span<const std::uint64_t> capacity) {
  std::uint64_t kept = 0;
  std::uint64_t held = 0;
  std::vector<Kept> active;  // descending by end
  std::size_t next = 0;
  std::int32_t gap = intervals.empty() ? 0 : intervals.front().first;
  for (; next < intervals.size() || !active.empty(); ++gap) {
    for (; next < intervals.size() && intervals[next].first <= gap; ++next) {
      const Kept added{.last = intervals[next].last, .bytes = intervals[next].bytes};
      if (added.bytes == 0) continue;
      const auto place =
          std::lower_bound(active.begin(), active.end(), added,
                           [](const Kept& a, const Kept& b) { return a.last > b.last; });
      active.insert(place, added);
      held += added.bytes;
    }
    std::size_t gone = 0;
    while (held > capacity[static_cast<std::size_t>(gap)]) {
      const std::uint64_t over = held - capacity[static_cast<std::size_t>(gap)];
      const std::uint64_t cut = std::min(over, active[gone].bytes);
      active[gone].bytes -= cut;
      held -= cut;
      if (active[gone].bytes == 0) ++gone;
    }
    active.erase(active.begin(), active.begin() + static_cast<std::ptrdiff_t>(gone));
    for (; !active.empty() && active.back().last <= gap; active.pop_back()) {
      kept += active.back().bytes;
      held -= active.back().bytes;
    }
  }
  return kept;
}

// Precomputes the bound: (1) CountRereads sums the reads and writes of the passes from the end; (2)
// FindIntervals lists how long bytes must be kept to save them; (3) the capacity of each gap is
// what the smallest sums of its two passes leave. Of then combines these with the bytes that are
// already in memory.
RemainingBytesBound::RemainingBytesBound(const CountedSequence& sequence,
                                         std::uint64_t capacity_bytes)
    : reads_(sequence.arrays.size()),
      read_total_(sequence.passes.size() + 1),
      write_total_(sequence.passes.size() + 1) {
  CountRereads(sequence, capacity_bytes);
  FindIntervals(sequence);
  std::vector<std::uint64_t> sums(sequence.passes.size());
  for (std::size_t p = 0; p < sums.size(); ++p) {
    sums[p] = std::numeric_limits<std::uint64_t>::max();
    for (const CountedChoice& choice : sequence.passes[p].choices)
      sums[p] = std::min(sums[p], choice.blocks.memory_bytes);
  }
  for (std::size_t p = 0; p < sums.size(); ++p) {
    capacity_.push_back(capacity_bytes - std::max(sums[p], sums[std::min(p + 1, sums.size() - 1)]));
    if (RHIZOME_MUTANT("the bound assumes memory for one chunk less")) {
      const std::uint64_t chunk = sequence.arrays.front().BytesOfChunk(0);
      capacity_.back() -= std::min(capacity_.back(), chunk);
    }
  }
}

void RemainingBytesBound::CountRereads(const CountedSequence& sequence,
                                       std::uint64_t capacity_bytes) {
  for (std::size_t p = sequence.passes.size(); p-- > 0;) {
    std::uint64_t again = std::numeric_limits<std::uint64_t>::max();
    std::map<ArrayId, std::uint64_t> first;
    for (const CountedChoice& choice : sequence.passes[p].choices) {
      const ChoiceReads reads = ReadsOfChoice(sequence, choice, capacity_bytes);
      again = std::min(again, reads.again);
      for (const auto& [array, bytes] : reads.first) {
        const auto known = first.emplace(array, bytes).first;
        known->second = std::min(known->second, bytes);
      }
    }
    read_total_[p] = read_total_[p + 1] + again;
    for (const auto& [array, bytes] : first) {
      read_total_[p] += bytes;
      auto& reads = reads_[array];
      const std::uint64_t later = reads.empty() ? 0 : reads.front().from_here;
      reads.insert(reads.begin(), {.pass = static_cast<std::int32_t>(p),
                                   .bytes = bytes,
                                   .from_here = std::max(bytes, later)});
    }
    write_total_[p] = write_total_[p + 1];
    for (const ArrayId array : sequence.passes[p].writes) {
      if (!reads_[array].empty()) write_total_[p] += reads_[array].front().from_here;
    }
  }
}

template <typename Add>
void RemainingBytesBound::LivesFrom(ArrayId array, std::size_t next, std::uint64_t bytes,
                                    Add&& add) const {
  const std::vector<Read>& reads = reads_[array];
  for (; next < reads.size(); ++next) {
    const std::uint64_t later = next + 1 < reads.size() ? reads[next + 1].from_here : 0;
    const std::uint64_t until_here =
        std::min(bytes, reads[next].from_here) - std::min(bytes, later);
    if (until_here > 0) add(reads[next].pass - 1, until_here);
  }
}

void RemainingBytesBound::FindIntervals(const CountedSequence& sequence) {
  for (ArrayId array = 0; array < reads_.size(); ++array) {
    std::int32_t before = sequence.written[array];
    if (before != CountedSequence::kNever) {
      LivesFrom(array, 0, sequence.arrays[array].bytes(),
                [&](std::int32_t last, std::uint64_t bytes) {
                  life_intervals_.push_back({.first = before, .last = last, .bytes = bytes});
                });
    }
    for (const Read& read : reads_[array]) {
      if (before != CountedSequence::kNever) {
        read_intervals_.push_back({.first = before, .last = read.pass - 1, .bytes = read.bytes});
      }
      before = read.pass;
    }
  }
  const auto by_first = [](const KeepInterval& a, const KeepInterval& b) {
    return a.first < b.first;
  };
  std::sort(read_intervals_.begin(), read_intervals_.end(), by_first);
  std::sort(life_intervals_.begin(), life_intervals_.end(), by_first);
}

std::uint64_t RemainingBytesBound::Of(std::size_t pass, std::span<const HeldArray> held) const {
  const auto here = static_cast<std::int32_t>(pass);
  const auto from = [&](const std::vector<KeepInterval>& intervals) {
    return std::partition_point(intervals.begin(), intervals.end(),
                                [&](const KeepInterval& i) { return i.first < here; });
  };
  std::vector<KeepInterval> reads;
  std::vector<KeepInterval> lives;
  std::uint64_t writes = write_total_[pass];
  for (const HeldArray& array : held) {
    const auto& all = reads_[array.array];
    const auto next = std::partition_point(all.begin(), all.end(),
                                           [&](const Read& read) { return read.pass < here; });
    if (next == all.end()) continue;
    reads.push_back({.first = here - 1,
                     .last = next->pass - 1,
                     .bytes = std::min(array.resident_bytes, next->bytes)});
    LivesFrom(array.array, static_cast<std::size_t>(next - all.begin()), array.dirty_bytes,
              [&](std::int32_t last, std::uint64_t bytes) {
                lives.push_back({.first = here - 1, .last = last, .bytes = bytes});
                writes += bytes;
              });
  }
  reads.insert(reads.end(), from(read_intervals_), read_intervals_.end());
  lives.insert(lives.end(), from(life_intervals_), life_intervals_.end());
  return read_total_[pass] - MostKept(reads, capacity_) + writes - MostKept(lives, capacity_);
}

}  // namespace internal
}  // namespace rhizome
