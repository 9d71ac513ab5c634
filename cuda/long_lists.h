#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda/kernel_args.h"

namespace rhizome {
inline namespace internal {

/// Long lists of a CSR, cut into pieces for cuda::SumArgs.
struct LongLists {
  std::vector<cuda::ListPiece> pieces;
  std::uint32_t longest = 0;
  std::uint32_t partial_count = 0;
};

/// Lists of up to this many edges are not cut: one group of lanes sums each of them.
inline constexpr std::uint32_t kLongestShortList = 128;
/// Lists of up to this many edges are one piece: their sums are bit-identical to the CPU's.
inline constexpr std::uint32_t kPieceEdges = 1024;

/// Cuts the lists of `offsets` that have more than `longest` edges into pieces of up to
/// `piece_edges`.
LongLists FindLongLists(std::span<const std::uint32_t> offsets,
                        std::uint32_t longest = kLongestShortList,
                        std::uint32_t piece_edges = kPieceEdges);

}  // namespace internal
}  // namespace rhizome
