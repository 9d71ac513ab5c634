#pragma once

#include <cstdint>

#include "bench.h"
#include "rhizome/cache/pass_layout.h"

namespace rhizome {

/// `bench infer`: the chunks that a pass of layerwise inference asks for under every layout, and
/// what memory caches miss of them: counted, exactly, without computing anything.
struct BenchInferOptions {
  BenchGraphOptions graph;
  std::int64_t fanout = -1;         ///< neighbours that a target is computed from; -1: all
  std::uint64_t block_rows = 1024;  ///< targets of a block
  std::uint64_t chunk_rows = 0;     ///< 0: the most, of powers of two, that give 1,024 chunks
  double cache_share = 0.1;         ///< a worker's cache, of the chunks that its rows fill
};
Result<nlohmann::ordered_json> BenchInfer(const BenchInferOptions& options,
                                          const JobControl& control);

}  // namespace rhizome
