#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/sample/sampler_scratch.h"
#include "rhizome/sampler.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// The number of draws of a window of a sweep, unless a hop takes all neighbours.
inline constexpr std::uint64_t kSweepDraws = std::uint64_t{1} << 16;

/// The maximum number of windows that are drawn at once.
inline constexpr std::uint32_t kSweepWindows = 4;

/// A frontier vertex of one of several subgraphs that are sampled together.
struct SweptVertex {
  Row row = 0;
  std::uint32_t subgraph = 0;  ///< index of the subgraph
  std::uint32_t index = 0;     ///< within its frontier
};

/// Consecutive vertices of a sweep, in ascending order of rows, with their draws.
struct SweepWindow {
  std::span<const SweptVertex> vertices;

  // The slice of these vertices (FrontierSlice).
  std::vector<Row> rows;
  std::vector<std::uint32_t> seeds;
  std::vector<std::uint64_t> batches;
  std::vector<std::int64_t> times;

  SampleChunk draws;
};

/// The draws of a hop of one subgraph, in the order of the sweep.
struct SweptDraws {
  struct List {
    std::uint32_t vertex = 0;  ///< index within the frontier
    std::uint32_t count = 0;
  };
  std::vector<List> lists;
  std::vector<Row> rows;       ///< list by list, as are types, weights and edges
  std::vector<TypeId> types;   ///< may be empty
  std::vector<float> weights;  ///< may be empty
  std::vector<EdgeId> edges;   ///< may be empty
};

}  // namespace internal
}  // namespace rhizome
