#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rhizome/file_system.h"

namespace rhizome {

/// The graph that a bench reads: a store, or an R-MAT graph generated for the run.
struct BenchGraphOptions {
  std::optional<Path> store;
  Path dir = ".";                  ///< folder of the temporary store
  std::uint32_t scale = 18;        ///< RMAT: 2^scale vertices
  std::uint32_t edge_factor = 16;  ///< RMAT: edges per vertex
  bool undirected = false;         ///< RMAT: each pair in both directions, once
  std::uint32_t relations = 0;     ///< RMAT: edge types, drawn at random; 0: edges have no types
  std::uint32_t partitions = 4;
  std::vector<std::int64_t> fanouts = {10, 10, 10};
  std::uint32_t batch_size = 1000;
  std::uint32_t threads = 1;
  std::uint64_t seed = 1;
  std::uint64_t dim = 0;  ///< columns of an array `feat`, float32; 0: none
  bool labels = false;  ///< adds arrays `label` (32 classes) and `split` (10 % training), at random
};

}  // namespace rhizome
