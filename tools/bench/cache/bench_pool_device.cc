#include "tools/bench/cache/bench_pool_device.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cache/policy/basic_policies.h"
#include "rhizome/policy.h"

namespace rhizome {

std::optional<double> ParseShare(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const std::string number(text);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0') return std::nullopt;
  const double share = percent ? value / 100 : value;
  if (!(share > 0 && share <= 1)) return std::nullopt;
  return share;
}

namespace {

double Ratio(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<std::uint64_t>(b, 1));
}

/// Rows that each contestant uploads for one size of the pool.
struct DeviceReads {
  std::uint64_t belady = 0;
  std::uint64_t best_static = 0;
  std::uint64_t presampled_static = 0;
  std::uint64_t match = 0;
  std::uint64_t none = 0;
};

Result<DeviceReads> CountReads(const Trace& trace, std::span<const CacheKey> presampled,
                               std::uint64_t row_count, std::uint32_t frames) {
  const auto reads = [&](PolicyKind kind) -> Result<std::uint64_t> {
    RHIZOME_ASSIGN_OR_RETURN(
        const auto policy,
        MakePolicy({.kind = kind, .frame_count = frames, .key_count = row_count}, trace));
    RHIZOME_ASSIGN_OR_RETURN(const ReplayCounts counts, Replay(*policy, trace));
    return counts.reads();
  };
  DeviceReads found;
  RHIZOME_ASSIGN_OR_RETURN(found.belady, reads(PolicyKind::kBelady));
  RHIZOME_ASSIGN_OR_RETURN(found.best_static, reads(PolicyKind::kStatic));
  RHIZOME_ASSIGN_OR_RETURN(found.match, reads(PolicyKind::kMatch));
  RHIZOME_ASSIGN_OR_RETURN(found.none, reads(PolicyKind::kNone));
  RHIZOME_ASSIGN_OR_RETURN(const auto policy, MakeStaticPolicy(frames, row_count, presampled));
  RHIZOME_ASSIGN_OR_RETURN(const ReplayCounts counts, Replay(*policy, trace));
  found.presampled_static = counts.reads();
  return found;
}

}  // namespace

Result<nlohmann::ordered_json> CountDeviceBytes(const BenchPoolOptions& options, const Trace& trace,
                                                const Trace& before, std::uint64_t row_count) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<CacheKey> presampled, RankByUse(before, row_count));
  auto pools = nlohmann::ordered_json::array();
  for (const double share : options.device_shares) {
    const auto frames = static_cast<std::uint32_t>(share * static_cast<double>(row_count));
    RHIZOME_ASSIGN_OR_RETURN(const DeviceReads reads,
                             CountReads(trace, presampled, row_count, frames));
    const auto bytes = [&](std::uint64_t rows) {
      return std::round(static_cast<double>(rows * options.row_bytes) /
                        static_cast<double>(trace.steps()));
    };
    pools.push_back({{"share", share},
                     {"frames", frames},
                     {"pool_bytes", frames * options.row_bytes},
                     {"belady_bytes", bytes(reads.belady)},
                     {"best_static_bytes", bytes(reads.best_static)},
                     {"gnnlab_static_bytes", bytes(reads.presampled_static)},
                     {"match_bytes", bytes(reads.match)},
                     {"none_bytes", bytes(reads.none)},
                     {"belady_over_best_static", Ratio(reads.belady, reads.best_static)},
                     {"belady_over_gnnlab_static", Ratio(reads.belady, reads.presampled_static)},
                     {"belady_over_match", Ratio(reads.belady, reads.match)}});
  }
  return pools;
}

}  // namespace rhizome
