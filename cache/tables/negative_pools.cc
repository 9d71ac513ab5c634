#include "cache/tables/negative_pools.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "storage/base/exceptions.h"
#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {
namespace {

// Streams of random numbers (RandomKey::hop).
constexpr std::uint32_t kFillStream = 1;
constexpr std::uint32_t kDrawStream = 2;

/// Returns how many times a pool is drawn while `batches` of `all` batches of an epoch run.
std::uint64_t RunsOf(std::uint64_t vertices, std::uint64_t negatives, std::uint64_t batches,
                     std::uint64_t all) {
  const double runs = static_cast<double>(vertices) / 2 /
                      static_cast<double>(NegativePools::kPoolFactor * negatives) *
                      static_cast<double>(batches) / static_cast<double>(all);
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::llround(runs)), 1, batches);
}

}  // namespace

NegativePools::NegativePools(NegativeVertices& vertices, NegativeOptions options)
    : vertices_(vertices), options_(std::move(options)) {}

/// Rounds such that the counts of all parts add up to K.
std::uint64_t NegativePools::CountOf(std::size_t part) const {
  double before = 0;
  for (std::size_t i = 0; i < part; ++i) before += options_.mixture[i].share;
  const auto all = static_cast<double>(options_.negatives);
  const auto up_to = [&](double share) {
    return static_cast<std::uint64_t>(std::llround(std::min(share, 1.0) * all));
  };
  const bool last = part + 1 == options_.mixture.size();
  return (last ? options_.negatives : up_to(before + options_.mixture[part].share)) - up_to(before);
}

/// Returns the pool of a part of the mixture for a batch, and draws it if the batch begins a run.
Result<const NegativePools::Pool*> NegativePools::PoolOf(std::size_t part, const BatchPlace& place,
                                                         TypeId type) {
  const NegativeShare& share = options_.mixture[part];
  const bool resident = share.source == NegativeSource::kResident;
  const std::uint64_t batches = resident ? place.batch.group_batches : place.batches;
  const std::uint64_t index = resident ? place.batch.index : place.number;
  const std::uint32_t group = resident ? place.batch.group : 0;
  const std::uint64_t runs =
      RunsOf(vertices_.count(type), options_.negatives, batches, place.batches);
  const std::uint64_t run = index * runs / batches;
  Pool& pool = pools_[{part, type}];
  if (pool.epoch == place.epoch && pool.run == run && pool.group == group) return &pool;
  pool.epoch = ~std::uint64_t{0};
  pool.vertices.clear();
  CounterRandom random({.seed = options_.seed,
                        .batch = place.epoch,
                        .vertex = run,
                        .hop = kFillStream,
                        .stream = static_cast<std::uint32_t>(part),
                        .subgraph = std::uint64_t{group} << 32 | type});
  RHIZOME_RETURN_IF_ERROR(
      vertices_.Draw(share, group, type, kPoolFactor * CountOf(part), random, pool.vertices));
  pool.epoch = place.epoch;
  pool.run = run;
  pool.group = group;
  return &pool;
}

Status NegativePools::Draw(const BatchPlace& place, std::uint32_t side, TypeId type,
                           std::span<const VertexId> in_batch, std::vector<VertexId>& out) {
  out.clear();
  std::vector<VertexId> left;
  for (std::size_t part = 0; part < options_.mixture.size(); ++part) {
    const std::uint64_t count = CountOf(part);
    if (count == 0) continue;
    CounterRandom random({.seed = options_.seed,
                          .batch = place.epoch,
                          .vertex = place.number,
                          .hop = kDrawStream,
                          .stream = static_cast<std::uint32_t>(part),
                          .subgraph = std::uint64_t{side} << 32 | type});
    if (options_.mixture[part].source == NegativeSource::kInBatch) {
      if (in_batch.empty())
        return Status::InvalidArgument("negatives in-batch: the batch has no end of the type");
      for (std::uint64_t i = 0; i < count; ++i)
        out.push_back(in_batch[random.Below(in_batch.size())]);
      continue;
    }
    RHIZOME_ASSIGN_OR_RETURN(const Pool* const pool, PoolOf(part, place, type));
    // A partial shuffle (Fisher and Yates): places of the pool without repetition.
    left = pool->vertices;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::swap(left[i], left[i + random.Below(left.size() - i)]);
      out.push_back(left[i]);
    }
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
