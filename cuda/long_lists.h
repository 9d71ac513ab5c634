#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cuda/kernel_args.h"

namespace rhizome::inline internal {

/// The long lists of a CSR, in pieces, as cuda::SumArgs takes them.
struct LongLists {
  std::vector<cuda::ListPiece> pieces;
  std::uint32_t longest = 0;
  std::uint32_t partial_count = 0;
};

/// Lists of up to this many edges are summed by one group of lanes, as the processor does.
inline constexpr std::uint32_t kLongestShortList = 128;
/// Lists of up to this many edges are one piece: their sums have the bits of the processor.
inline constexpr std::uint32_t kPieceEdges = 1024;

/// Cuts the lists of `offsets` that have more than `longest` edges into pieces of up to
/// `piece_edges`.
LongLists FindLongLists(std::span<const std::uint32_t> offsets,
                        std::uint32_t longest = kLongestShortList,
                        std::uint32_t piece_edges = kPieceEdges);

}  // namespace rhizome::inline internal
