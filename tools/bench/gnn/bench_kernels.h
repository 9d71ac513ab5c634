#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "bench.h"
#include "gnn_bench.h"

namespace rhizome {

/// `bench aggregate`: the aggregation kernels, against the memory's bandwidth and what libtorch has
/// for the same. Errors: kUnsupported, there is no librhizome_gnn.
Result<nlohmann::ordered_json> BenchAggregate(const AggregateBenchOptions& options,
                                              const JobControl& control);

/// `bench step`: one step of training GraphSAGE in memory, gathering excluded.
struct BenchStepOptions {
  BenchGraphOptions graph;
  std::uint32_t batches = 8;  ///< of a round
  StepBenchOptions step;      ///< seeds, fanouts, threads and seed are taken from `graph`
};
Result<nlohmann::ordered_json> BenchStep(const BenchStepOptions& options,
                                         const JobControl& control);

}  // namespace rhizome
