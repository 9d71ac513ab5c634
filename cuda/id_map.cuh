#pragma once

#include "rhizome/cuda/kernel_args.h"
#include "rhizome/cuda/launch.h"

// Local numbers for ids, after the fused id map of FastGL (ASPLOS 2024, section 4.3), whose numbers
// depend on which thread comes first. Here the thread that comes first with a key decides nothing:
// the table keeps the least position of each key, and a position that is the first of its key gets
// the number of such positions before it. So the numbers are those of the sampler on the processor
// (SampledSubgraph), in every schedule.

namespace rhizome::cuda {

RZ_DEVICE std::uint32_t HashSlot(std::int64_t id, std::uint32_t capacity) {
  std::uint64_t z = static_cast<std::uint64_t>(id) + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>(z ^ (z >> 31)) & (capacity - 1);
}

/// Returns the slot of `id`, which takes a free one if it has none; kNoSlot if there is none left.
RZ_DEVICE std::uint32_t FindSlot(Mem<std::int64_t> keys, std::uint32_t capacity, std::int64_t id) {
  std::uint32_t slot = HashSlot(id, capacity);
  const bool endless = RZ_MUTANT("id map: a full table is searched for ever");
  for (std::uint32_t tries = 0; tries < capacity || endless; ++tries) {
    // Most ids are there already: a look spares the exchange.
    std::int64_t seen = RZ_MUTANT("id map: keys are read plainly") ? std::int64_t{keys[slot]}
                                                                   : AtomicLoad(keys + slot);
    if (seen == kFreeKey) {
      if (RZ_MUTANT("id map: a key is stored, not exchanged")) {
        keys[slot] = id;
      } else if (RZ_MUTANT("id map: exchange with its operands swapped")) {
        seen = AtomicCas(keys + slot, id, kFreeKey);
      } else {
        seen = AtomicCas(keys + slot, kFreeKey, id);
      }
      if (RZ_MUTANT("id map: whoever loses the exchange takes the slot")) return slot;
    }
    if (seen == kFreeKey || seen == id) return slot;
    slot =
        RZ_MUTANT("id map: probing does not wrap around") ? slot + 1 : (slot + 1) & (capacity - 1);
    if (RZ_MUTANT("id map: one probe only")) return slot;
  }
  return kNoSlot;
}

RZ_KERNEL InsertIds(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const std::int64_t id = args.ids[i];
    std::uint32_t slot = kNoSlot;
    if (id < 0 && !RZ_MUTANT("id map: the sentinel passes as an id")) {
      AtomicOr(args.errors + 0, kBadId);
    } else {
      slot = FindSlot(args.keys, args.capacity, id);
      if (slot == kNoSlot && !RZ_MUTANT("id map: a full table is no error")) {
        AtomicOr(args.errors + 0, kTableFull);
      }
    }
    args.slots[i] = slot;
    if (slot == kNoSlot) continue;
    const std::uint32_t position = args.base + static_cast<std::uint32_t>(i);
    if (RZ_MUTANT("id map: the first position is compared, then stored")) {
      if (AtomicLoad(args.first + slot) > position) args.first[slot] = position;
    } else {
      AtomicMin(args.first + slot, RZ_MUTANT("id map: positions of earlier calls are forgotten")
                                       ? static_cast<std::uint32_t>(i)
                                       : position);
    }
  }
}

/// Marks the positions at which a key appears first of all.
RZ_KERNEL FlagFirsts(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const std::uint32_t slot = args.slots[i];
    args.flags[i] =
        slot != kNoSlot && args.first[slot] == args.base + static_cast<std::uint32_t>(i) ? 1 : 0;
  }
}

RZ_KERNEL NumberFirsts(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const std::uint32_t number = args.known + args.ranks[i];
    if (i + 1 == args.count) args.found[0] = number + args.flags[i];
    if (args.flags[i] == 0) continue;
    args.number[args.slots[i]] = number;
    args.distinct[number] = args.ids[i];
  }
}

RZ_KERNEL LookUpIds(IdMapArgsOf<Mem> args) {
  for (std::size_t i = GridThread(); i < args.count; i += GridThreads()) {
    const std::uint32_t slot = args.slots[i];
    args.locals[i] = slot == kNoSlot ? -1 : std::int64_t{args.number[slot]};
  }
}

/// Numbers args.ids. `scan(from, to, count)` leaves the exclusive sums of `from` in `to`, as the
/// next work of the stream.
template <typename Scan>
void LaunchIdMap(Stream stream, const IdMapArgsOf<Mem>& args, const Scan& scan,
                 const Geometry& geometry = {}) {
  if (args.count == 0) return;
  const std::size_t blocks = geometry.BlocksFor(args.count);
  RZ_LAUNCH(InsertIds, blocks, geometry.block, stream, args);
  RZ_LAUNCH(FlagFirsts, blocks, geometry.block, stream, args);
  scan(args.flags, args.ranks, args.count);
  if (!RZ_MUTANT("id map: looked up before all are numbered")) {
    RZ_LAUNCH(NumberFirsts, blocks, geometry.block, stream, args);
  }
  RZ_LAUNCH(LookUpIds, blocks, geometry.block, stream, args);
}

}  // namespace rhizome::cuda
