#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/pool/slot_table.h"
#include "rhizome/feature_cache.h"
#include "rhizome/types.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

/// Finds the slot of a row: a hash table of slots (linear probing, deletion by shifting back). The
/// rows of slots are with the caller; `row_of(slot)` must not change while the slot is in the
/// table. Memory: 8 to 16 bytes for each slot. Threads: one at a time.
class SlotMap {
 public:
  /// For at most `slots` slots at once.
  explicit SlotMap(std::size_t slots) : slots_(std::bit_ceil(2 * slots + 1), kNowhere) {}

  /// Returns the slot of a row, or kNowhere.
  template <typename RowOf>
  SlotId Find(Row row, const RowOf& row_of) const {
    std::size_t at = Home(row);
    while (slots_[at] != kNowhere && row_of(slots_[at]) != row) at = Next(at);
    return slots_[at];
  }

  /// Adds a slot, in place of the slot that its row had.
  template <typename RowOf>
  void Set(SlotId slot, const RowOf& row_of) {
    const Row row = row_of(slot);
    std::size_t at = Home(row);
    while (slots_[at] != kNowhere && row_of(slots_[at]) != row) at = Next(at);
    slots_[at] = slot;
  }

  /// Removes a slot, unless its row has another one.
  template <typename RowOf>
  void Erase(SlotId slot, const RowOf& row_of) {
    std::size_t hole = Home(row_of(slot));
    while (slots_[hole] != kNowhere && slots_[hole] != slot) hole = Next(hole);
    if (slots_[hole] == kNowhere) return;
    for (std::size_t at = Next(hole); slots_[at] != kNowhere; at = Next(at)) {
      // An entry may move to the hole if the hole is between its home and its place.
      const std::size_t home = Home(row_of(slots_[at]));
      if (((at - home) & Mask()) < ((at - hole) & Mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = kNowhere;
  }

 private:
  std::size_t Mask() const { return slots_.size() - 1; }
  std::size_t Home(Row row) const { return Mix64(static_cast<std::uint64_t>(row)) & Mask(); }
  std::size_t Next(std::size_t at) const { return (at + 1) & Mask(); }

  std::vector<SlotId> slots_;
};

}  // namespace internal
}  // namespace rhizome
