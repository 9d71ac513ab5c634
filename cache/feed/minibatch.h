#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/aggregate.h"
#include "rhizome/cache/feature_rows.h"
#include "rhizome/cache/job_report.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

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
