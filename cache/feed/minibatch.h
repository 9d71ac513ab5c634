#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/aggregate.h"
#include "rhizome/cache/feature_rows.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Where the time and the reads of a minibatch went. Costs of a whole superbatch (schedule,
/// prefill) are booked on its first minibatch.
struct MinibatchCosts {
  double sample_seconds = 0;
  double schedule_seconds = 0;
  double switch_seconds = 0;
  double gather_seconds = 0;  ///< of reading, and of waiting for room to read to
  double update_seconds = 0;  ///< of deciding what the pool holds
  std::uint64_t rows_requested = 0;
  std::uint64_t pool_hits = 0;
  std::uint64_t rows_kept = 0;  ///< of the prefill, in the pool from the superbatch before
  std::uint64_t rows_read = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t reads_issued = 0;
};

/// A sampled subgraph with the features of its vertices: what one step computes on. Local numbers:
/// the seeds first, then hop by hop, as SampledSubgraph.
struct Minibatch {
  std::uint64_t tag = 0;  ///< the caller's, see SeedBatch
  std::uint64_t seed_count = 0;
  std::vector<Row> rows;                   ///< by local number
  std::vector<std::uint64_t> hop_offsets;  ///< [hops + 2]
  Csr csr;                                 ///< lists of all but the last hop's vertices
  std::vector<std::uint32_t> degrees;      ///< in the whole graph, by local number; GCN only
  FeatureRows features;                    ///< [rows.size(), feature columns]
  MinibatchCosts costs;
};

}  // namespace internal
}  // namespace rhizome
