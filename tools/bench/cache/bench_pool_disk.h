#pragma once

#include <nlohmann/json.hpp>

#include "rhizome/job_control.h"
#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "tools/bench/cache/bench_pool.h"

namespace rhizome {

/// Measures the trace through a FeatureCache over an array of `store`. In each round, every policy
/// runs, then fio with reads of the size of a row on the same files, and reads of rows from a
/// mapped file. Includes the time of schedule and prefill.
Result<nlohmann::ordered_json> BenchPoolOnDisk(const BenchPoolOptions& options, const Store& store,
                                               const Trace& trace, const JobControl& control);

}  // namespace rhizome
