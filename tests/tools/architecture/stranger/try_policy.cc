#include <cstdio>

#include "cache/policy/basic_policies.h"
#include "rhizome/policy.h"

// Finds the policy `mru` by its name and replays a scan of three keys through two frames, twice.
int main() {
  const auto kind = rhizome::ParsePolicy("mru");
  if (!kind) return 1;
  rhizome::Trace trace;
  for (const rhizome::CacheKey key : {0, 1, 2, 0, 1, 2}) trace.AddStep(std::span(&key, 1));
  const auto policy = rhizome::MakePolicy({.kind = *kind, .frame_count = 2, .key_count = 3}, trace);
  if (!policy) return 1;
  const auto counts = rhizome::Replay(**policy, trace);
  if (!counts) return 1;
  std::printf("%d hits, %d misses\n", static_cast<int>(counts->hits),
              static_cast<int>(counts->misses));
  return 0;
}
