#include "cache/ranges/range_features.h"

namespace rhizome {
inline namespace internal {

const char* RangeFeatureName(std::size_t f) {
  static constexpr std::array<const char*, kRangeFeatures> kNames = {
      "vertex", "neighbors", "runs",        "list_lines", "row_lines",
      "linked", "windows",   "missed_rows", "far_rows"};
  return kNames[f];
}

void RangeFeatures::Add(std::span<const std::uint32_t> neighbors) {
  std::uint64_t runs = 0;
  std::uint64_t list_lines = 0;
  std::uint64_t row_lines = 0;
  std::uint64_t windows = 0;
  std::uint64_t missed_rows = 0;
  std::uint64_t far_rows = 0;
  const std::uint64_t near = RowsIn(options_.near_bytes);
  const std::uint64_t far = RowsIn(options_.far_bytes);
  const std::uint64_t page = RowsIn(options_.page_bytes);
  for (std::size_t begin = 0; begin < neighbors.size();) {
    std::size_t end = begin + 1;
    while (end < neighbors.size() && neighbors[end] - neighbors[end - 1] <= 1) ++end;
    const std::uint64_t length = end - begin;
    ++runs;
    list_lines += (length + options_.line - 1) / options_.line;
    row_lines += (length * options_.columns + options_.line - 1) / options_.line;
    begin = end;
  }
  const std::size_t rows =
      neighbors.empty() ? 0
                        : std::size_t{*std::max_element(neighbors.begin(), neighbors.end())} + 1;
  if (rows > read_at_.size()) {
    read_at_.resize(std::max<std::size_t>(rows, 2 * read_at_.size()));
    page_read_at_.resize(read_at_.size() / page + 1);
  }
  for (const std::uint32_t row : neighbors) {
    ++reads_;
    std::uint64_t& page_read_at = page_read_at_[row / page];
    windows += page_read_at == 0 || reads_ - page_read_at > options_.pages_near ? 1 : 0;
    page_read_at = reads_;
    missed_rows += read_at_[row] == 0 || reads_ - read_at_[row] > near ? 1 : 0;
    far_rows += read_at_[row] == 0 || reads_ - read_at_[row] > far ? 1 : 0;
    read_at_[row] = reads_;
  }
  const FeatureVector of_vertex = {1,
                                   static_cast<double>(neighbors.size()),
                                   static_cast<double>(runs),
                                   static_cast<double>(list_lines),
                                   static_cast<double>(row_lines),
                                   neighbors.empty() ? 0.0 : 1.0,
                                   static_cast<double>(windows),
                                   static_cast<double>(missed_rows),
                                   static_cast<double>(far_rows)};
  if (vertices_++ % options_.step == 0) sums_.push_back(FeatureVector(sums_.back()));
  for (std::size_t f = 0; f < kRangeFeatures; ++f) sums_.back()[f] += of_vertex[f];
}

FeatureVector RangeFeatures::Of(std::size_t begin, std::size_t end) const {
  const auto sums_of = [&](std::size_t vertex) -> const FeatureVector& {
    return sums_[(vertex + options_.step - 1) / options_.step];
  };
  FeatureVector features;
  for (std::size_t f = 0; f < kRangeFeatures; ++f)
    features[f] = sums_of(end)[f] - sums_of(begin)[f];
  return features;
}

}  // namespace internal
}  // namespace rhizome
