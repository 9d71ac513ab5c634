#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A pair of rows and its place in the batch.
struct PlacedPair {
  Row src = 0;
  Row dst = 0;
  std::uint32_t place = 0;
  std::uint64_t step = 0;  ///< set by PairSchedule: rank of group and target chunk in the reading
                           ///< order
};

/// Pairs of one source chunk and one target chunk: [begin, end) of the sorted pairs.
struct PairCell {
  std::uint64_t src_chunk = 0;
  std::uint64_t dst_chunk = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The order in which the chunks of a batch of pairs are requested, so that few are read twice.
/// Source chunks form groups of `group_chunks`. Within a group, target chunks are visited one by
/// one, alternating between ascending and descending order, so that a group begins with the chunks
/// with which the previous one ended. Within a target chunk, its source chunks follow, which an
/// offline cache of group_chunks + 1 chunks keeps for the whole group.
///
/// Source: the bucket order of PyTorch-BigGraph (Lerer et al., SysML 2019), one row of buckets at a
/// time.
class PairSchedule {
 public:
  /// Sorts `pairs` in place. `group_chunks` is at least 1. Keeps no reference to `pairs`.
  PairSchedule(std::span<PlacedPair> pairs, std::uint64_t chunk_rows, std::uint64_t group_chunks);

  const std::vector<PairCell>& cells() const { return cells_; }

  /// Returns the chunks to read: for each cell its target chunk if it differs from the previous
  /// cell's, then its source chunk if it differs from the target chunk.
  std::vector<std::uint64_t> Chunks() const;

  /// Number of distinct chunks.
  std::uint64_t distinct_chunks() const { return distinct_chunks_; }

 private:
  std::vector<PairCell> cells_;
  std::uint64_t distinct_chunks_ = 0;
};

}  // namespace internal
}  // namespace rhizome
