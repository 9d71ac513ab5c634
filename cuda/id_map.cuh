#pragma once

#include "cuda/kernel_args.h"
#include "cuda/launch.h"

// Local numbers for ids, after the fused id map of FastGL (ASPLOS 2024, section 4.3). FastGL's
// numbers depend on the order in which threads insert keys. Here they do not: the table keeps the
// smallest position of each key, and the number of a key is the count of such first positions
// before its own. They equal the CPU sampler's numbers (SampledSubgraph) in every schedule.
//
// First positions are marked in a bitmap, 32 per word, and only the words' bit counts are scanned:
// the rank of a position is the sum of the counts of earlier words and of the earlier bits in its
// word.

namespace rhizome::cuda {

/// Parts of a slot. A slot has 16 bytes, so that one memory access loads both parts.
RZ_DEVICE Mem<std::int64_t> KeyAt(const IdMapArgsOf<Mem>& args, std::uint32_t slot) {
  return args.table + 2 * std::size_t{slot};
}
RZ_DEVICE Mem<std::uint32_t> FirstAt(const IdMapArgsOf<Mem>& args, std::uint32_t slot) {
  return Cast<std::uint32_t>(args.table + 2 * std::size_t{slot} + 1);
}
RZ_DEVICE std::uint32_t HashSlot(std::int64_t id, std::uint32_t capacity) {
  return static_cast<std::uint32_t>(Mix64(static_cast<std::uint64_t>(id))) & (capacity - 1);
}

/// A slot, and the first position that the search read from it: an upper bound of the current one.
struct FoundSlot {
  std::uint32_t slot;
  std::uint32_t first;
};

/// Returns the slot of `id`, which claims a free one if it has none; kNoSlot if the table is full.
RZ_DEVICE FoundSlot FindSlot(const IdMapArgsOf<Mem>& args, std::int64_t id) {
  std::uint32_t slot = HashSlot(id, args.capacity);
  const bool endless = RZ_MUTANT("id map: the search of a full table does not end");
  for (std::uint32_t tries = 0; tries < args.capacity || endless; ++tries) {
    const Mem<std::int64_t> key = KeyAt(args, slot);
    // Most ids are in the table already: this load avoids the exchange and also returns the
    // position.
    WordPair seen = AtomicLoadPair(key);
    if (RZ_MUTANT("id map: keys are read plainly")) seen.first = key[0];
    if (seen.first == id) return {slot, static_cast<std::uint32_t>(seen.second)};
    if (seen.first == kFreeKey) {
      if (RZ_MUTANT("id map: a key is stored, not exchanged")) {
        key[0] = id;
      } else if (RZ_MUTANT("id map: exchange with its operands swapped")) {
        seen.first = AtomicCas(key, id, kFreeKey);
      } else {
        seen.first = AtomicCas(key, kFreeKey, id);
      }
      if (RZ_MUTANT("id map: a thread that loses the exchange takes the slot")) seen.first = id;
    }
    if (seen.first == kFreeKey || seen.first == id) return {slot, kNoPosition};
    slot = RZ_MUTANT("id map: probing does not wrap around") ? slot + 1
                                                             : (slot + 1) & (args.capacity - 1);
    if (RZ_MUTANT("id map: one probe only")) return {slot, kNoPosition};
  }
  return {kNoSlot, 0};
}

RZ_KERNEL InsertIds(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const std::int64_t id = args.ids[i];
    FoundSlot found = {kNoSlot, 0};
    if (id < 0 && !RZ_MUTANT("id map: the sentinel passes as an id")) {
      AtomicOr(args.errors + 0, kBadId);
    } else {
      found = FindSlot(args, id);
      if (found.slot == kNoSlot && !RZ_MUTANT("id map: a full table is no error")) {
        AtomicOr(args.errors + 0, kTableFull);
      }
    }
    args.slots[i] = found.slot;
    const std::uint32_t base =
        RZ_MUTANT("id map: positions of earlier calls are forgotten") ? 0 : args.base;
    const std::uint32_t position = base + static_cast<std::uint32_t>(i);
    // A stored position only decreases, so a larger one need not be written.
    if (found.slot == kNoSlot || found.first <= position) continue;
    if (RZ_MUTANT("id map: the first position is compared, then stored")) {
      FirstAt(args, found.slot)[0] = position;
    } else {
      AtomicMin(FirstAt(args, found.slot), position);
    }
  }
}

RZ_DEVICE bool IsFirst(const IdMapArgsOf<Mem>& args, std::uint32_t slot, std::size_t i) {
  return slot != kNoSlot && FirstAt(args, slot)[0] == args.base + static_cast<std::uint32_t>(i);
}

RZ_DEVICE std::uint32_t LastWord(const IdMapArgsOf<Mem>& args) { return (args.count - 1) / kWarp; }

/// Marks the positions at which a key appears for the first time. A warp computes a word.
RZ_KERNEL MarkFirsts(IdMapArgsOf<Mem> args) {
  for (std::size_t word = GridWarp(); word <= LastWord(args); word += GridWarps()) {
    const std::size_t i = word * kWarp + Lane();
    const std::uint32_t slot = i < args.count ? std::uint32_t{args.slots[i]} : kNoSlot;
    const unsigned bits = Ballot(kAllLanes, IsFirst(args, slot, i));
    if (Lane() != 0) continue;
    args.bits[word] = bits;
    args.counts[word] = CountBits(bits);
  }
}

/// Returns how many positions before `i` are the first of their key.
RZ_DEVICE std::uint32_t RankAt(const IdMapArgsOf<Mem>& args, std::uint32_t i) {
  const unsigned end = i % kWarp + (RZ_MUTANT("id map: a position counts itself") ? 1 : 0);
  const unsigned before = end == kWarp ? kAllLanes : (1U << end) - 1;
  return args.ranks[i / kWarp] + CountBits(args.bits[i / kWarp] & before);
}

RZ_KERNEL NumberByRank(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    if (i + 1 == args.count) {
      const std::uint32_t last = LastWord(args);
      args.found[0] = args.known + args.ranks[last] + args.counts[last];
    }
    const std::size_t position = args.base + i;
    const std::uint32_t slot = args.slots[i];
    if (slot == kNoSlot) {
      args.locals[position] = -1;
      continue;
    }
    const std::uint32_t first = FirstAt(args, slot)[0];
    // A key of an earlier call keeps the number at its first position.
    if (first < args.base && !RZ_MUTANT("id map: known ids are numbered again")) {
      const std::int64_t number = args.locals[first];
      args.locals[position] = number;
      continue;
    }
    const std::uint32_t number = args.known + RankAt(args, first - args.base);
    args.locals[position] = number;
    if (first == position) args.distinct[number] = args.ids[i];
  }
}

/// Numbers args.ids. `scan(from, to, count)` must queue, as the next work of the stream, the
/// exclusive sums of `from` into `to`.
template <typename Scan>
void LaunchIdMap(Stream stream, const IdMapArgsOf<Mem>& args, const Scan& scan,
                 const Geometry& geometry = {}) {
  if (args.count == 0) return;
  const std::size_t blocks = geometry.BlocksFor(args.count);
  RZ_LAUNCH(InsertIds, blocks, geometry.block, stream, args);
  RZ_LAUNCH(MarkFirsts, blocks, geometry.block, stream, args);
  if (!RZ_MUTANT("id map: the words' counts are not scanned")) {
    scan(args.counts, args.ranks, IdMapWords(args.count));
  }
  RZ_LAUNCH(NumberByRank, blocks, geometry.block, stream, args);
}

}  // namespace rhizome::cuda
