#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "rhizome/policy.h"
#include "rhizome/status.h"
#include "tools/bench/cache/bench_pool.h"

namespace rhizome {

/// Parses a share of the rows, "5%" or "0.05". Returns nullopt unless it is a number above 0 and at
/// most 1.
std::optional<double> ParseShare(std::string_view text);

/// Counts the bytes that each policy uploads to a device whose pool holds a share of the rows
/// (options.device_shares). A device pool (cuda/device_pool.h) uploads the rows that a replay
/// reads, including its prefill. `before` has as many minibatches as `trace` and was sampled before
/// it; its most frequent rows are the static set of GNNLab, while the best static set is ranked by
/// `trace` itself. FastGL's Match is the policy of that name. Needs no device. Returns one object
/// per share.
Result<nlohmann::ordered_json> CountDeviceBytes(const BenchPoolOptions& options, const Trace& trace,
                                                const Trace& before, std::uint64_t row_count);

}  // namespace rhizome
