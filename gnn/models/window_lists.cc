#include "gnn/models/window_lists.h"

namespace rhizome {
inline namespace internal {

WindowLists::WindowLists(const BlockLists& lists, bool weighs)
    : lists_(lists), weighs_(weighs && !lists.weights.empty()) {
  // A block of one window returns its lists whole and needs no positions; RelatedRows walks lists
  // with relations.
  const std::span<const std::uint32_t> offsets = lists.list_offsets();
  if (lists.numbers.empty() && !lists.related()) taken_.assign(offsets.begin(), offsets.end() - 1);
}

TileLists WindowLists::Whole(const TargetRange& range) const {
  const std::uint32_t* const begins = lists_.list_offsets().data() + range.first;
  // Lists are contiguous, so rows of later targets may be prefetched.
  return {.begins = begins,
          .ends = begins + 1,
          .slots = lists_.neighbors.data(),
          .slots_end = begins[range.count],
          .weights = weighs_ ? lists_.weights.data() : nullptr};
}

TileLists WindowLists::In(std::size_t window, const TargetRange& range) {
  thread_local std::vector<std::uint32_t> offsets;
  thread_local std::vector<std::uint32_t> slots;
  thread_local std::vector<float> weights;
  const auto first = static_cast<std::uint32_t>(window * lists_.stage_rows);
  const std::uint64_t end = (window + 1) * lists_.stage_rows;
  offsets.assign(1, 0);
  slots.clear();
  weights.clear();
  const std::span<const std::uint32_t> ends = lists_.list_offsets().subspan(1);
  for (std::size_t t = range.first; t < range.first + range.count; ++t) {
    std::uint32_t e = taken_[t];
    for (; e < ends[t] && lists_.neighbors[e] < end; ++e) {
      slots.push_back(lists_.neighbors[e] - first);
      if (weighs_) weights.push_back(lists_.weights[e]);
    }
    taken_[t] = e;
    offsets.push_back(static_cast<std::uint32_t>(slots.size()));
  }
  return {.begins = offsets.data(),
          .ends = offsets.data() + 1,
          .slots = slots.data(),
          .slots_end = offsets.back(),
          .weights = weighs_ ? weights.data() : nullptr};
}

}  // namespace internal
}  // namespace rhizome
