#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/types.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The rows of a pair, and where it stands in its batch.
struct PlacedPair {
  Row src = 0;
  Row dst = 0;
  std::uint32_t place = 0;
  std::uint64_t step = 0;  ///< PairSchedule's: its group and target chunk, in the order of reading
};

/// Pairs of one source chunk and one target chunk, [begin, end) of the sorted pairs.
struct PairCell {
  std::uint64_t src_chunk = 0;
  std::uint64_t dst_chunk = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// In which order the chunks of a batch of pairs are asked for, so that few are read twice: groups
/// of `group_chunks` source chunks; within a group target chunk by target chunk, up and down in
/// turn, so that a group begins with the chunks that the one before ended with; within a target
/// chunk its source chunks, which an offline cache of group_chunks + 1 chunks keeps for the group.
/// The bucket order of PyTorch-BigGraph (Lerer et al., SysML 2019), with a row of buckets at a
/// time.
class PairSchedule {
 public:
  /// Sorts `pairs`. group_chunks: at least 1. Ownership: none.
  PairSchedule(std::span<PlacedPair> pairs, std::uint64_t chunk_rows, std::uint64_t group_chunks);

  const std::vector<PairCell>& cells() const { return cells_; }

  /// What is read: for each cell its target chunk where it is not that of the cell before, then its
  /// source chunk where it is another than the target chunk.
  std::vector<std::uint64_t> Chunks() const;

  /// Distinct chunks.
  std::uint64_t distinct_chunks() const { return distinct_chunks_; }

 private:
  std::vector<PairCell> cells_;
  std::uint64_t distinct_chunks_ = 0;
};

}  // namespace internal
}  // namespace rhizome
