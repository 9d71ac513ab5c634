#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "bench_pool.h"
#include "rhizome/cache/policy.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// The share of the rows that `text` names, "5%" or "0.05"; nullopt if it lies not above 0 and up
/// to 1, or is no number.
std::optional<double> ParseShare(std::string_view text);

/// Counts the bytes of rows that each policy sends over the bus to a device, whose pool holds
/// shares of the rows (options.device_shares): a device pool (cuda/device_pool.h) uploads what a
/// replay reads, its prefill included. `before` is as many minibatches as `trace`, sampled before
/// it: what they use most often is GNNLab's static set; the best one is ranked by `trace` itself.
/// FastGL's Match is the policy of that name. Needs no device. Returns an object for each share.
Result<nlohmann::ordered_json> CountDeviceBytes(const BenchPoolOptions& options, const Trace& trace,
                                                const Trace& before, std::uint64_t row_count);

}  // namespace rhizome
