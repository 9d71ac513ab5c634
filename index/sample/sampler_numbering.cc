#include "index/sample/sampler_numbering.h"

#include <algorithm>

#include "storage/base/check.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

namespace {

// Prefetch distance for the table.
constexpr std::size_t kPrefetchDistance = 24;

constexpr std::size_t kFirstSlots = 1024;  // a power of two, as Find requires

}  // namespace

Numbering::Numbering(std::uint64_t rows, bool disjoint) : disjoint_(disjoint) {
  if (disjoint) {
    slots_.resize(kFirstSlots);
  } else {
    local_of_row_.assign(rows, kNone);
  }
}

void Numbering::Number(std::span<const Row> drawn, std::span<std::int64_t> locals,
                       std::vector<Row>& known) {
  std::size_t count = known.size();
  known.resize(count + drawn.size());
  std::uint32_t* const table = local_of_row_.data();
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    if (i + kPrefetchDistance < drawn.size()) {
      __builtin_prefetch(table + drawn[i + kPrefetchDistance], 1);
    }
    RHIZOME_DCHECK(static_cast<std::uint64_t>(drawn[i]) < local_of_row_.size());
    // This has no branch, because whether a vertex is new cannot be predicted.
    const Row row = drawn[i];
    std::uint32_t& entry = table[row];
    RHIZOME_DCHECK(entry == kNone || entry < count);
    const bool fresh = entry == kNone;
    const std::uint32_t local = fresh ? static_cast<std::uint32_t>(count) : entry;
    known[count] = row;
    count += fresh ? 1 : 0;
    entry = local;
    locals[i] = local;
  }
  known.resize(count);
}

void Numbering::NumberIn(std::uint32_t subgraph, std::span<const Row> drawn,
                         std::span<std::int64_t> locals, std::vector<Row>& known,
                         std::vector<std::uint32_t>& subgraph_of) {
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Row row = drawn[i];
    std::size_t slot = Find(subgraph, row);
    if (slots_[slot].local == kNone) {
      const auto local = static_cast<std::uint32_t>(known.size());
      Insert(slot, subgraph, row, local);
      known.push_back(row);
      subgraph_of.push_back(subgraph);
      locals[i] = local;
      continue;
    }
    locals[i] = slots_[slot].local;
  }
}

std::size_t Numbering::Find(std::uint32_t subgraph, Row row) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = Mix64(static_cast<std::uint64_t>(row) ^ Mix64(subgraph)) & std::uint64_t{mask};
  while (slots_[slot].local != kNone &&
         (slots_[slot].row != row || slots_[slot].subgraph != subgraph)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void Numbering::Restore(std::span<const Row> known, std::span<const std::uint32_t> subgraph_of) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto local = static_cast<std::uint32_t>(i);
    if (disjoint_) {
      Insert(Find(subgraph_of[i], known[i]), subgraph_of[i], known[i], local);
    } else {
      local_of_row_[static_cast<std::size_t>(known[i])] = local;
    }
  }
}

/// Numbers a row that has no number. `slot`: its free slot.
void Numbering::Insert(std::size_t slot, std::uint32_t subgraph, Row row, std::uint32_t local) {
  if (2 * (used_ + 1) > slots_.size()) {
    Grow();
    slot = Find(subgraph, row);
  }
  slots_[slot] = {.row = row, .subgraph = subgraph, .local = local};
  ++used_;
  RHIZOME_DCHECK(2 * used_ <= slots_.size());
}

void Numbering::Grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.local != kNone) slots_[Find(slot.subgraph, slot.row)] = slot;
  }
}

void Numbering::Forget(std::span<const Row> known) {
  if (disjoint_) {
    std::fill(slots_.begin(), slots_.end(), Slot());
    used_ = 0;
    return;
  }
  for (const Row row : known) {
    // each has exactly one number
    RHIZOME_DCHECK(local_of_row_[static_cast<std::size_t>(row)] != kNone);
    local_of_row_[static_cast<std::size_t>(row)] = kNone;
  }
}

}  // namespace internal
}  // namespace rhizome
