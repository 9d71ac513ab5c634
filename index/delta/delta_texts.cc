#include "index/delta/delta_texts.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace rhizome {
inline namespace internal {

std::optional<std::int64_t> DeltaTexts::Find(std::string_view text) const {
  const auto at =
      std::lower_bound(sorted.begin(), sorted.end(), text,
                       [&](std::uint32_t i, std::string_view wanted) { return texts[i] < wanted; });
  if (at == sorted.end() || texts[*at] != text) return std::nullopt;
  return first + static_cast<std::int64_t>(*at);
}

void DeltaTexts::Sort() {
  sorted.resize(texts.size());
  std::iota(sorted.begin(), sorted.end(), 0U);
  std::sort(sorted.begin(), sorted.end(),
            [&](std::uint32_t a, std::uint32_t b) { return texts[a] < texts[b]; });
}

const DeltaTexts* FindTexts(const std::vector<DeltaTexts>& all, TextsId id) {
  const auto at = std::lower_bound(all.begin(), all.end(), id,
                                   [](const DeltaTexts& one, TextsId i) { return one.id < i; });
  return at != all.end() && at->id == id ? &*at : nullptr;
}

std::vector<DeltaTexts> MergeTexts(const std::vector<DeltaTexts>& older,
                                   const std::vector<DeltaTexts>& newer) {
  std::vector<DeltaTexts> merged;
  // For equal ids, std::merge takes the older first.
  std::merge(older.begin(), older.end(), newer.begin(), newer.end(), std::back_inserter(merged),
             [](const DeltaTexts& a, const DeltaTexts& b) { return a.id < b.id; });
  for (std::size_t i = 1; i < merged.size();) {
    DeltaTexts& before = merged[i - 1];
    if (before.id != merged[i].id) {
      ++i;
      continue;
    }
    const auto middle = static_cast<std::ptrdiff_t>(before.sorted.size());
    const auto shift = static_cast<std::uint32_t>(before.texts.size());
    for (const std::uint32_t index : merged[i].sorted) before.sorted.push_back(shift + index);
    std::move(merged[i].texts.begin(), merged[i].texts.end(), std::back_inserter(before.texts));
    std::inplace_merge(
        before.sorted.begin(), before.sorted.begin() + middle, before.sorted.end(),
        [&](std::uint32_t a, std::uint32_t b) { return before.texts[a] < before.texts[b]; });
    merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return merged;
}

}  // namespace internal
}  // namespace rhizome
