#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/metrics.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// `bench lookup`: warm look-ups of neighbours and rows, one at a time and in batches, against
/// RocksDB that holds the same lists and rows as values in a block cache of 4 GiB.
struct BenchLookupOptions {
  BenchGraphOptions graph;         ///< `fanouts` and `batch_size` are not used
  std::uint32_t dim = 128;         ///< floats of a row
  std::uint32_t lookups = 100000;  ///< of each contestant and kind
  std::uint32_t batch = 64;        ///< vertices of a batched look-up
  std::uint32_t threads = 2;
  std::shared_ptr<Metrics> metrics = {};  ///< where ours are counted; null: nowhere
};
Result<nlohmann::ordered_json> BenchLookup(const BenchLookupOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
