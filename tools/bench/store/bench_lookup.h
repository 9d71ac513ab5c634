#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "rhizome/job_control.h"
#include "rhizome/metrics.h"
#include "rhizome/status.h"
#include "tools/bench/harness/bench.h"

namespace rhizome {

/// `bench lookup`: look-ups of neighbours and rows in memory, singly and in batches, compared with
/// RocksDB that stores the same lists and rows as values and has a block cache of 4 GiB.
struct BenchLookupOptions {
  BenchGraphOptions graph;         ///< `fanouts` and `batch_size` are not used
  std::uint32_t dim = 128;         ///< floats per row
  std::uint32_t lookups = 100000;  ///< look-ups per contestant and kind
  std::uint32_t batch = 64;        ///< vertices per batch
  std::uint32_t threads = 2;
  std::shared_ptr<Metrics> metrics = {};  ///< metrics of Rhizome's look-ups; null: none
};
Result<nlohmann::ordered_json> BenchLookup(const BenchLookupOptions& options,
                                           const JobControl& control);

}  // namespace rhizome
