#pragma once

#include "cuda/id_map.cuh"

// Two other ways to number ids, for comparison only. They use the arguments of the id map, and both
// start with an empty table (base = known = 0).

namespace rhizome::cuda {

/// These variants store the number of an id in the table, next to its first position.
RZ_DEVICE Mem<std::uint32_t> NumberAt(const IdMapArgsOf<Mem>& args, std::uint32_t slot) {
  return FirstAt(args, slot) + 1;
}

/// FastGL's fused map (ASPLOS 2024, section 4.3), implemented from its text, because its Algorithm
/// 2 as printed numbers incorrectly (cuda/DEVICE.md). The thread that inserts a new key uses the
/// result of an atomic addition as its number. The numbers are valid, but differ from run to run.
/// `found` is the counter and must be 0 initially. As in the paper, a second kernel looks up the
/// numbers.
RZ_KERNEL InsertAndNumber(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const std::int64_t id = args.ids[i];
    std::uint32_t slot = HashSlot(id, args.capacity);
    std::uint32_t tries = 0;
    for (; tries < args.capacity; ++tries) {
      const std::int64_t seen = AtomicCas(KeyAt(args, slot), kFreeKey, id);
      if (seen == kFreeKey) {
        const std::uint32_t number = AtomicAdd(args.found + 0, 1);
        NumberAt(args, slot)[0] = number;
        args.distinct[number] = id;
      }
      if (seen == kFreeKey || seen == id) break;
      slot = (slot + 1) & (args.capacity - 1);
    }
    if (tries == args.capacity) {
      AtomicOr(args.errors + 0, kTableFull);
      slot = kNoSlot;
    }
    args.slots[i] = slot;
  }
}

RZ_KERNEL LookUpIds(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const std::uint32_t slot = args.slots[i];
    args.locals[i] = slot == kNoSlot ? -1 : std::int64_t{NumberAt(args, slot)[0]};
  }
}

inline void LaunchFusedMap(Stream stream, const IdMapArgsOf<Mem>& args,
                           const Geometry& geometry = {}) {
  if (args.count == 0) return;
  const std::size_t blocks = geometry.BlocksFor(args.count);
  RZ_LAUNCH(InsertAndNumber, blocks, geometry.block, stream, args);
  RZ_LAUNCH(LookUpIds, blocks, geometry.block, stream, args);
}

constexpr unsigned kMaxWarps = 32;

/// Returns the sum of `value` over the earlier threads of the block, and in `total` the sum over
/// all its threads. All threads of the block must call it, once per kernel.
RZ_DEVICE std::uint32_t SumBefore(std::uint32_t value, std::uint32_t& total) {
  RZ_SHARED(std::uint32_t, of_warp, kMaxWarps);
  std::uint32_t sum = value;
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const std::uint32_t other =
        Shuffle(kAllLanes, sum, Lane() >= distance ? Lane() - distance : Lane());
    if (Lane() >= distance) sum += other;
  }
  const unsigned warps = BlockSize() / kWarp;
  if (Lane() ==
      (RZ_MUTANT("three steps: the warp's sum lacks its last lane") ? kWarp - 2 : kWarp - 1)) {
    of_warp[ThreadIndex() / kWarp] = sum;
  }
  if (!RZ_MUTANT("three steps: no barrier after the sums")) SyncBlock();
  std::uint32_t before = 0;
  total = 0;
  for (unsigned warp = 0; warp < warps; ++warp) {
    if (warp == ThreadIndex() / kWarp) before = total;
    total += of_warp[warp];
  }
  return before + sum - value;
}

/// First part of step 2: counts the first positions of each block into `counts`.
RZ_KERNEL CountFirsts(IdMapArgsOf<Mem> args) {
  const std::size_t i = GridThread();
  if (RZ_MUTANT("three steps: threads beyond the end leave before the barrier") && i >= args.count)
    return;
  const std::uint32_t slot = i < args.count ? std::uint32_t{args.slots[i]} : kNoSlot;
  const bool first = IsFirst(args, slot, i);
  std::uint32_t total = 0;
  SumBefore(first ? 1 : 0, total);
  if (ThreadIndex() == 0 || RZ_MUTANT("three steps: every thread writes the total"))
    args.counts[BlockIndex()] = total;
}

/// Second part of step 2: numbers ids by the sums of the earlier blocks, in `ranks`.
RZ_KERNEL CompactFirsts(IdMapArgsOf<Mem> args) {
  const std::size_t i = GridThread();
  const std::uint32_t slot = i < args.count ? std::uint32_t{args.slots[i]} : kNoSlot;
  const bool first = IsFirst(args, slot, i);
  std::uint32_t total = 0;
  const std::uint32_t before = SumBefore(first ? 1 : 0, total);
  const std::uint32_t number = args.known + args.ranks[BlockIndex()] + before;
  if (i + 1 == args.count) args.found[0] = number + (first ? 1 : 0);
  if (!first) return;
  NumberAt(args, slot)[0] = number;
  args.distinct[number] = args.ids[i];
}

/// The three steps named in FastGL's section 3.3: (1) build the hash table; (2) assign local
/// numbers, for which the threads of DGL synchronise; (3) transform ids by looking them up. The
/// implementation is our own, not DGL's: step 1 is the insertion of the id map; step 2 counts,
/// scans and numbers in three launches; no step waits for the host.
template <typename Scan>
void LaunchThreeSteps(Stream stream, const IdMapArgsOf<Mem>& args, const Scan& scan,
                      const Geometry& geometry = {}) {
  if (args.count == 0) return;
  const std::size_t blocks = (args.count + geometry.block - 1) / geometry.block;
  RZ_LAUNCH(InsertIds, blocks, geometry.block, stream, args);
  RZ_LAUNCH(CountFirsts, blocks, geometry.block, stream, args);
  scan(args.counts, args.ranks, static_cast<std::uint32_t>(blocks));
  RZ_LAUNCH(CompactFirsts, blocks, geometry.block, stream, args);
  RZ_LAUNCH(LookUpIds, blocks, geometry.block, stream, args);
}

}  // namespace rhizome::cuda
