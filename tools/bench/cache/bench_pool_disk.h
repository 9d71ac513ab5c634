#pragma once

#include <nlohmann/json.hpp>

#include "bench_pool.h"
#include "rhizome/cache/policy.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// Measures the trace through a FeatureCache over an array of `store`. In each round, every policy
/// runs, then fio with reads of the size of a row on the same files, and reads of rows from a
/// mapped file. Includes the time of schedule and prefill.
Result<nlohmann::ordered_json> BenchPoolOnDisk(const BenchPoolOptions& options, const Store& store,
                                               const Trace& trace, const JobControl& control);

}  // namespace rhizome
