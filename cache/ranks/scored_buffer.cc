#include "cache/ranks/scored_buffer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "storage/base/check.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Max relative error of products of gamma.
constexpr double kRounding = 1e-9;

}  // namespace

RemoteCounts& RemoteCounts::operator+=(const RemoteCounts& more) {
  requests += more.requests;
  misses += more.misses;
  prefill += more.prefill;
  replaced += more.replaced;
  halo_requests += more.halo_requests;
  halo_misses += more.halo_misses;
  return *this;
}

ScoredBuffer::ScoredBuffer(std::span<const Row> halo, std::uint64_t frame_count,
                           std::uint64_t key_count, const ScoredOptions& options)
    : options_(options),
      threshold_(std::pow(options.gamma, static_cast<double>(options.delta))),
      place_of_(key_count, kOutside),
      row_at_(halo.begin(), halo.end()),
      by_degree_(halo.size()),
      halo_(halo.size()) {
  RHIZOME_DCHECK(options.gamma > 0 && options.gamma < 1 && options.delta > 0);
  threshold_ = options.as_coded ? std::round(threshold_ * 1000) / 1000 - kRounding
                                : threshold_ * (1 + kRounding);
  std::sort(row_at_.begin(), row_at_.end());
  for (HaloId place = 0; place < row_at_.size(); ++place)
    place_of_[static_cast<std::size_t>(row_at_[place])] = place;
  counts_.prefill = std::min<std::uint64_t>(frame_count, halo.size());
  for (std::uint32_t position = 0; position < halo.size(); ++position) {
    const HaloId place = place_of_[static_cast<std::size_t>(halo[position])];
    by_degree_[place] = position;
    if (position < counts_.prefill) halo_[place] = {.score = 1, .is_held = true};
  }
}

/// Returns S_E: its last value, multiplied by gamma for each step since in which the row was not
/// requested.
double ScoredBuffer::EvictionScore(const Scored& row) const {
  const std::uint64_t unused = step_ - row.since - row.used;
  return row.score * std::pow(options_.gamma, static_cast<double>(unused));
}

std::vector<CacheKey> ScoredBuffer::Held() const {
  std::vector<CacheKey> held;
  for (HaloId place = 0; place < halo_.size(); ++place)
    if (halo_[place].is_held) held.push_back(row_at_[place]);
  return held;
}

void ScoredBuffer::Step(std::span<const CacheKey> rows, bool is_round) {
  ++step_;
  counts_.requests += rows.size();
  missed_.clear();
  for (const CacheKey row : rows) {
    const HaloId place = place_of_[static_cast<std::size_t>(row)];
    if (place == kOutside) {
      ++counts_.misses;
      continue;
    }
    ++counts_.halo_requests;
    if (halo_[place].is_held) {
      ++halo_[place].used;
    } else {
      missed_.push_back(place);
    }
  }
  counts_.misses += missed_.size();
  counts_.halo_misses += missed_.size();
  const bool could_leave = is_round && Evict();
  if (is_round && (could_leave || !options_.as_coded)) return;
  for (const HaloId place : missed_) halo_[place].score += 1;
}

/// Performs one eviction round. Returns false if no row may be evicted.
bool ScoredBuffer::Evict() {
  std::vector<HaloId> leaving, entering;
  for (HaloId place = 0; place < halo_.size(); ++place) {
    if (!halo_[place].is_held) {
      if (halo_[place].score > 0) entering.push_back(place);
    } else if (EvictionScore(halo_[place]) <= threshold_) {
      leaving.push_back(place);
    }
  }
  const bool could_leave = !leaving.empty();
  const std::size_t count = std::min(leaving.size(), entering.size());
  leaving.resize(count);
  std::sort(entering.begin(), entering.end(), [&](HaloId a, HaloId b) {
    if (halo_[a].score != halo_[b].score) return halo_[a].score > halo_[b].score;
    return options_.as_coded ? a < b : by_degree_[a] < by_degree_[b];
  });
  for (std::size_t i = 0; i < count; ++i) {
    Scored& leaves = halo_[leaving[i]];
    Scored& enters = halo_[entering[i]];
    leaves = {.score = EvictionScore(leaves)};
    enters = {.score = enters.score, .used = 0, .since = step_, .is_held = true};
  }
  if (!RHIZOME_MUTANT("rows that enter are not counted")) counts_.replaced += count;
  return could_leave;
}

}  // namespace internal
}  // namespace rhizome
