#include "cache/full_graph/spill_count.h"

#include <algorithm>
#include <utility>

#include "cache/full_graph/chunk_table.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Sums the bytes that a run of the passes would move.
class SpillCounter {
 public:
  SpillCounter(const ChosenPasses& passes, SpillPolicy& policy)
      : passes_(passes),
        policy_(policy),
        table_(passes.sequence->arrays),
        held_(table_.size(), 0),
        held_of_(table_.arrays(), 0) {}

  SpillCounts Count() && {
    const std::size_t arrays = passes_.sequence->arrays.size();
    for (std::size_t p = 0; p < passes_.sequence->passes.size(); ++p) {
      reads_.assign(arrays, 0);
      writes_.assign(arrays, 0);
      policy_.Begin(p, leaves_);
      Leave();
      counts_.passes.push_back({.reads = {}, .writes = {}, .resident = Held()});
      sums_ = passes_.choice(p).blocks.memory_bytes;
      counts_.beside_bytes += passes_.choice(p).blocks.beside_bytes;
      for (const ChunkAccess& access : AccessesOf(*passes_.sequence, p, passes_.choice(p)))
        Access(access);
      policy_.End(leaves_);
      Leave();
      counts_.passes.back().reads = Moved(reads_);
      counts_.passes.back().writes = Moved(writes_);
    }
    return std::move(counts_);
  }

 private:
  void Access(const ChunkAccess& access) {
    const std::uint64_t bytes = BytesOf(access.array, access.chunk);
    const SpillPolicy::Verdict verdict = access.write
                                             ? policy_.Made(access.array, access.chunk, leaves_)
                                             : policy_.Read(access.array, access.chunk, leaves_);
    if (!access.write && !verdict.hit) reads_[access.array] += bytes;
    if (verdict.write) writes_[access.array] += bytes;
    if (verdict.hit) Drop(access.array, access.chunk);
    Leave();
    char& held = held_[table_.NumberOf(access.array, access.chunk)];
    if (!verdict.keep || held != 0) return;
    held = 1;
    held_of_[access.array] += bytes;
    held_bytes_ += bytes;
    counts_.peak_bytes = std::max(counts_.peak_bytes, held_bytes_ + sums_);
  }

  void Drop(ArrayId array, std::uint32_t chunk) {
    char& held = held_[table_.NumberOf(array, chunk)];
    if (held == 0) return;
    held = 0;
    const std::uint64_t bytes = BytesOf(array, chunk);
    held_of_[array] -= bytes;
    held_bytes_ -= bytes;
  }

  void Leave() {
    for (const LeavingChunk& chunk : leaves_) {
      const std::uint64_t bytes = BytesOf(chunk.array, chunk.chunk);
      Drop(chunk.array, chunk.chunk);
      if (chunk.write && !RHIZOME_MUTANT("what is written back is not counted"))
        writes_[chunk.array] += bytes;
    }
    leaves_.clear();
  }

  std::uint64_t BytesOf(ArrayId array, std::uint32_t chunk) const {
    return table_.BytesOf(array, chunk);
  }

  std::vector<ArrayBytes> Held() const {
    std::vector<ArrayBytes> held;
    for (ArrayId array = 0; array < held_of_.size(); ++array)
      if (held_of_[array] > 0) held.push_back({.array = array, .bytes = held_of_[array]});
    return held;
  }

  std::vector<ArrayBytes> Moved(const std::vector<std::uint64_t>& bytes) {
    std::vector<ArrayBytes> moved;
    for (ArrayId a = 0; a < bytes.size(); ++a) {
      if (bytes[a] > 0) moved.push_back({.array = a, .bytes = bytes[a]});
      (&bytes == &reads_ ? counts_.read_bytes : counts_.written_bytes) += bytes[a];
    }
    return moved;
  }

  const ChosenPasses& passes_;
  SpillPolicy& policy_;
  SpillCounts counts_;
  std::vector<LeavingChunk> leaves_;
  std::vector<std::uint64_t> reads_;
  std::vector<std::uint64_t> writes_;
  const ChunkTable table_;
  std::vector<char> held_;              // by chunk number
  std::vector<std::uint64_t> held_of_;  // [arrays] bytes
  std::uint64_t held_bytes_ = 0;
  std::uint64_t sums_ = 0;
};

}  // namespace

SpillCounts CountSpill(const ChosenPasses& passes, SpillPolicy& policy) {
  return SpillCounter(passes, policy).Count();
}

}  // namespace internal
}  // namespace rhizome
