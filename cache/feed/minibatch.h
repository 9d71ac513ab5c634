#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/aggregate.h"
#include "rhizome/cache/feature_rows.h"
#include "rhizome/storage/types.h"

namespace rhizome {

/// The time and the reads of a minibatch. Costs of a whole superbatch (schedule, prefill) are
/// booked on its first minibatch.
struct MinibatchCosts {
  double sample_seconds = 0;
  double schedule_seconds = 0;
  double switch_seconds = 0;
  double gather_seconds = 0;  ///< reading, and waiting for room to read into
  double update_seconds = 0;  ///< deciding what the pool holds
  std::uint64_t rows_requested = 0;
  std::uint64_t pool_hits = 0;
  std::uint64_t rows_kept = 0;  ///< prefill that the pool held from the superbatch before
  std::uint64_t rows_read = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t reads_issued = 0;
};

/// A sampled subgraph with the features of its vertices: the input of one training step. Local
/// numbers are those of SampledSubgraph: the seeds first, then hop by hop.
struct Minibatch {
  std::uint64_t tag = 0;  ///< the caller's; see SeedBatch
  std::uint64_t seed_count = 0;
  std::vector<Row> rows;                   ///< by local number
  std::vector<std::uint64_t> hop_offsets;  ///< [hops + 2]
  Csr csr;                                 ///< lists of the vertices of all hops but the last
  std::vector<std::uint32_t> degrees;      ///< in the whole graph, by local number; GCN only
  FeatureRows features;                    ///< [rows.size(), feature columns]
  MinibatchCosts costs;
};

}  // namespace rhizome
