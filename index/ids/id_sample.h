#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "rhizome/graph_types.h"

namespace rhizome {
inline namespace internal {

/// Estimates the number of distinct ids from a sample.
class IdSample {
 public:
  void Add(std::string_view id) {
    ++seen_;
    bytes_ += id.size();
    if (const auto value = ParseCanonicalInteger(id))
      Widen(*value);
    else
      strings_ = true;
    Count(std::hash<std::string_view>()(id));
  }
  void Add(std::int64_t id) {
    ++seen_;
    Widen(id);
    Count(std::hash<std::int64_t>()(id));
  }

  bool strings() const { return strings_; }
  double mean_bytes() const {
    return seen_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(seen_);
  }

  /// Returns the number of ids if they are dense (the largest id plus 1), provided that at most
  /// `most` can exist. Ids are assumed to be dense, because they mostly are.
  std::optional<std::uint64_t> Dense(std::uint64_t most) const {
    if (strings_ || seen_ == 0 || least_ < 0) return std::nullopt;
    const auto bound = static_cast<std::uint64_t>(most_) + 1;
    return bound <= most ? std::optional(bound) : std::nullopt;
  }

  /// Returns Chao's lower bound on the number of distinct ids: the number of ids seen, plus an
  /// estimate from the numbers of ids seen once and twice.
  std::uint64_t Distinct(bool whole, std::uint64_t most) const {
    if (whole) return counts_.size();
    double once = 0;
    double twice = 0;
    for (const auto& [hash, count] : counts_) {
      once += count == 1;
      twice += count == 2;
    }
    const double more = once * (once - 1) / (2 * (twice + 1));
    return std::min(most, counts_.size() + static_cast<std::uint64_t>(more));
  }

 private:
  void Widen(std::int64_t id) {
    least_ = std::min(least_, id);
    most_ = std::max(most_, id);
  }
  void Count(std::size_t hash) { ++counts_[hash]; }

  std::uint64_t seen_ = 0;
  std::uint64_t bytes_ = 0;
  bool strings_ = false;
  std::int64_t least_ = 0;
  std::int64_t most_ = 0;
  std::unordered_map<std::size_t, std::uint32_t> counts_;
};

}  // namespace internal
}  // namespace rhizome
