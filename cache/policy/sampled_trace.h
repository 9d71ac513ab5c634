#pragma once

#include <cstdint>

#include "rhizome/policy.h"

namespace rhizome {
inline namespace internal {

/// A trace of some keys, which are numbered from 0 without gaps.
struct SampledTrace {
  Trace trace;
  std::uint64_t key_count = 0;
};

/// Keeps the accesses to one in `one_in` keys, chosen by a hash, and renumbers these keys in their
/// order. A pool with 1 / one_in of the frames misses about 1 / one_in as often on the sample as
/// the whole pool on the whole trace. Neighbouring keys are no longer neighbours.
/// Source: Waldspurger et al. 2015, "Efficient MRC Construction with SHARDS".
SampledTrace SampleKeys(const Trace& trace, std::uint64_t one_in);

}  // namespace internal
}  // namespace rhizome
