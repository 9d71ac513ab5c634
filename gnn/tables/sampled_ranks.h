#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gnn/links/decoder.h"
#include "gnn/tables/link_step.h"
#include "rhizome/loader.h"

namespace rhizome {
inline namespace internal {

/// Ranks the ends of edges among given candidates, by rows in memory: the metric `mrr_sampled` of a
/// validation set. Edges and candidates name rows by their numbers.
/// Threads: uses the threads of the current TaskArena; no bit of the result depends on them.
/// Ownership: borrows all of its parts.
struct SampledRanks {
  const PairDecoder& decoder;
  const LinkStep::Options& step;
  std::size_t dim = 0;
  const float* rows = nullptr;       ///< [n, dim]
  const float* relations = nullptr;  ///< step.relation_stride floats for each; null: none

  /// Returns the sum of 1 / rank over the edges, where the end `open` has the rank 1 + better +
  /// equal / 2 among the candidates. The candidate that is the true end does not count.
  double ReciprocalSum(std::span<const MinibatchPair> edges, EdgeEnd open,
                       std::span<const std::uint32_t> candidates) const;

  /// Memory of a call in bytes, on `threads` threads.
  static std::uint64_t Bytes(std::size_t candidates, std::size_t dim, std::uint32_t threads);

 private:
  double TileSum(std::span<const MinibatchPair> edges, EdgeEnd open,
                 std::span<const std::uint32_t> candidates) const;
};

}  // namespace internal
}  // namespace rhizome
