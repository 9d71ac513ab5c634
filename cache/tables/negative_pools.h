#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "cache/tables/epoch_order.h"
#include "cache/tables/negative_sources.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

struct NegativeOptions {
  std::uint64_t negatives = 0;  ///< K, for each batch and side
  NegativeMixture mixture = {{.source = NegativeSource::kResident, .share = .5},
                             {.source = NegativeSource::kUniform, .share = .5}};
  std::uint64_t seed = 0;
};

/// The place of a batch in a training.
struct BatchPlace {
  EdgeBatch batch;
  std::uint64_t number = 0;   ///< in its epoch
  std::uint64_t batches = 0;  ///< of its epoch
  std::uint64_t epoch = 0;
};

/// Draws the negatives of batches. Each source fills a pool with 4 times the vertices that a batch
/// draws from it, and batches draw from the pools, without repetition. A pool is drawn again so
/// often that the pools of an epoch have half as many vertices as the type; a resident pool also
/// when the partition changes. The rows of negatives are therefore read once for many batches.
///
/// The draws depend on the seed, the graph and the place of the batch, not on earlier calls.
/// Memory: 8 bytes for each vertex of a pool, for each type that was asked for.
/// Threads: one at a time. Ownership: `vertices` must outlive it.
class NegativePools {
 public:
  /// Vertices of a pool for each vertex that a batch draws from it.
  static constexpr std::uint64_t kPoolFactor = 4;

  NegativePools(NegativeVertices& vertices, NegativeOptions options);

  /// Sets `out` to the K negatives of one side (0: sources, 1: targets) of a batch, of vertices of
  /// `type`. `in_batch`: the ends of the batch's edges, for kInBatch. Errors: as
  /// NegativeVertices::Draw; kInvalidArgument, kInBatch without ends.
  Status Draw(const BatchPlace& place, std::uint32_t side, TypeId type,
              std::span<const VertexId> in_batch, std::vector<VertexId>& out);

 private:
  struct Pool {
    std::uint64_t epoch = ~std::uint64_t{0};
    std::uint64_t run = 0;
    std::uint32_t group = 0;
    std::vector<VertexId> vertices;
  };
  std::uint64_t CountOf(std::size_t part) const;
  Result<const Pool*> PoolOf(std::size_t part, const BatchPlace& place, TypeId type);

  NegativeVertices& vertices_;
  const NegativeOptions options_;
  std::map<std::pair<std::size_t, TypeId>, Pool> pools_;  // by part of the mixture, and type
};

}  // namespace internal
}  // namespace rhizome
