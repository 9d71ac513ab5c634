#include "rhizome/cache/range_features.h"

namespace rhizome::inline internal {

void RangeFeatures::Add(std::span<const std::uint32_t> neighbors) {
  std::uint64_t runs = 0;
  std::uint64_t list_lines = 0;
  std::uint64_t row_lines = 0;
  std::uint64_t far_rows = 0;
  for (std::size_t begin = 0; begin < neighbors.size();) {
    std::size_t end = begin + 1;
    while (end < neighbors.size() && neighbors[end] - neighbors[end - 1] <= 1) ++end;
    const std::uint64_t length = end - begin;
    ++runs;
    list_lines += (length + options_.line - 1) / options_.line;
    row_lines += (length * options_.columns + options_.line - 1) / options_.line;
    begin = end;
  }
  if (!neighbors.empty() && neighbors.back() >= read_at_.size()) {
    read_at_.resize(std::max<std::size_t>(std::size_t{neighbors.back()} + 1, 2 * read_at_.size()));
  }
  for (const std::uint32_t row : neighbors) {
    ++reads_;
    far_rows += read_at_[row] == 0 || reads_ - read_at_[row] > near_reads() ? 1 : 0;
    read_at_[row] = reads_;
  }
  const FeatureVector of_vertex = {1,
                                   static_cast<double>(neighbors.size()),
                                   static_cast<double>(runs),
                                   static_cast<double>(list_lines),
                                   static_cast<double>(row_lines),
                                   static_cast<double>(far_rows)};
  sums_.push_back(sums_.back());
  for (std::size_t f = 0; f < kRangeFeatures; ++f) sums_.back()[f] += of_vertex[f];
}

FeatureVector RangeFeatures::Of(std::size_t begin, std::size_t end) const {
  FeatureVector features;
  for (std::size_t f = 0; f < kRangeFeatures; ++f) features[f] = sums_[end][f] - sums_[begin][f];
  return features;
}

}  // namespace rhizome::inline internal
