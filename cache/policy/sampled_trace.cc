#include "cache/policy/sampled_trace.h"

#include <algorithm>
#include <vector>

#include "storage/base/mix.h"

namespace rhizome {
inline namespace internal {

SampledTrace SampleKeys(const Trace& trace, std::uint64_t one_in) {
  SampledTrace sampled;
  const auto is_kept = [one_in](CacheKey key) {
    return Mix64(static_cast<std::uint64_t>(key)) % one_in == 0;
  };
  std::vector<CacheKey> kept;
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    kept.clear();
    std::ranges::copy_if(trace.step(s), std::back_inserter(kept), is_kept);
    sampled.trace.AddStep(kept);
  }
  std::vector<CacheKey> keys = sampled.trace.keys;
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  for (CacheKey& key : sampled.trace.keys)
    key = static_cast<CacheKey>(std::ranges::lower_bound(keys, key) - keys.begin());
  sampled.key_count = keys.size();
  return sampled;
}

}  // namespace internal
}  // namespace rhizome
