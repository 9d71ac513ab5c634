#pragma once

#include <nlohmann/json.hpp>

#include "bench_pool.h"
#include "rhizome/cache/policy.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// The trace through a FeatureCache over an array of `store`, timed: every policy in turn, round by
/// round, with fio's reads of a row's size on the same files, and rows out of a mapped file, in
/// between. Schedule and prefill count.
Result<nlohmann::ordered_json> BenchPoolOnDisk(const BenchPoolOptions& options, const Store& store,
                                               const Trace& trace, const JobControl& control);

}  // namespace rhizome
