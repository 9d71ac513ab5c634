#pragma once

#include <cstddef>
#include <cstdint>

// Arguments of the kernels. They are templates over the pointer type: a plain pointer in the engine
// and on the device, a checked one in the simulator of the tests. C++17, because nvcc compiles this
// header too.

namespace rhizome::cuda {

namespace plain {
template <typename T>
using Mem = T*;
}  // namespace plain

/// Element type of the rows that are read; aggregates are float32.
enum class Element : std::uint8_t { kFloat32, kFloat16, kBfloat16 };

/// Value of first_bad if no position is out of range.
constexpr std::uint32_t kNoPosition = 0xFFFFFFFFU;

/// out[place[i], :] = table[rows[i], :] for i in [0, count). A null `rows` or `place` means i
/// itself. The places are distinct. A position whose row or place is out of range copies nothing;
/// the first such position is written to *first_bad, which the caller initialises to kNoPosition.
template <template <typename> class Memory>
struct GatherArgsOf {
  Memory<const unsigned char> table = nullptr;
  std::uint64_t table_rows = 0;
  std::size_t table_stride_bytes = 0;  ///< from row to row
  Memory<const std::int64_t> rows = nullptr;
  Memory<const std::int64_t> place = nullptr;
  std::uint32_t count = 0;
  Memory<unsigned char> out = nullptr;
  std::uint64_t out_rows = 0;
  std::size_t out_stride_bytes = 0;
  std::size_t row_bytes = 0;  ///< bytes of a table row; a row widened to float32 has twice as many
  Memory<std::uint32_t> first_bad = nullptr;
  bool from_host = false;  ///< the table is host memory: few threads saturate the bus
};

/// Id map: local numbers for 64-bit ids, in order of first appearance. The table persists between
/// calls, so that a minibatch is numbered hop by hop; known ids keep their numbers. `capacity` is a
/// power of two, at least twice the number of distinct ids. Before the first call the caller sets
/// all bytes of the table to 0xFF (kFreeKey, kNoPosition) and errors to 0.
template <template <typename> class Memory>
struct IdMapArgsOf {
  Memory<const std::int64_t> ids = nullptr;  ///< [count], none negative
  std::uint32_t count = 0;
  std::uint32_t base = 0;   ///< number of positions in earlier calls
  std::uint32_t known = 0;  ///< ids numbered in earlier calls
  std::uint32_t capacity = 0;
  /// [capacity, 2]: a key, then its first position in the lower half of a word.
  Memory<std::int64_t> table = nullptr;
  Memory<std::uint32_t> slots = nullptr;    ///< [count], scratch
  Memory<std::uint32_t> bits = nullptr;     ///< [IdMapWords(count)], scratch
  Memory<std::uint32_t> counts = nullptr;   ///< [IdMapWords(count)], scratch
  Memory<std::uint32_t> ranks = nullptr;    ///< [IdMapWords(count)], scratch
  Memory<std::int64_t> distinct = nullptr;  ///< ids by number, written from `known` on
  /// [base + count], the number of the id at each position, written from `base` on; -1 for an id
  /// that has none after an error.
  Memory<std::int64_t> locals = nullptr;
  Memory<std::uint32_t> found = nullptr;   ///< [1], ids numbered after this call
  Memory<std::uint32_t> errors = nullptr;  ///< [1], kTableFull and kBadId are or-ed into it
};
constexpr std::uint32_t IdMapWords(std::uint32_t count) { return count / 32 + (count % 32 != 0); }
constexpr std::int64_t kFreeKey = -1;
constexpr std::uint32_t kNoSlot = 0xFFFFFFFFU;
constexpr std::uint32_t kTableFull = 1;
constexpr std::uint32_t kBadId = 2;

/// A part of a long list, edges [begin, end), summed independently. The pieces of a list are
/// adjacent. `partial` is the row of its sum in `partials`, or kWholeList if the piece is the whole
/// list.
struct ListPiece {
  std::uint32_t target = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t partial = 0;
};
constexpr std::uint32_t kWholeList = 0xFFFFFFFFU;

/// Device counterpart of SumArgs in cache/kernels/aggregate_kernels.h, with bit-identical results:
/// out[t, :] = initial_scale[t] * initial[t, :] + target_scale[t] * (sum over e in [offsets[t],
/// offsets[t + 1]), in order, of source_scale[index[e]] * edge_weight[e] * x[index[e], :]).
/// Null factors are ones. The initial row is added for t < initial_rows. Strides are in elements.
template <template <typename> class Memory>
struct SumArgsOf {
  Element type = Element::kFloat32;
  Memory<const unsigned char> x = nullptr;
  std::size_t x_stride = 0;
  std::size_t dim = 0;
  std::size_t targets = 0;
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> index = nullptr;
  Memory<const float> source_scale = nullptr;
  Memory<const float> edge_weight = nullptr;
  Memory<const float> target_scale = nullptr;
  Memory<const float> initial = nullptr;
  std::size_t initial_stride = 0;
  std::size_t initial_rows = 0;
  Memory<const float> initial_scale = nullptr;
  Memory<float> out = nullptr;
  std::size_t out_stride = 0;

  /// Lists of more than `longest` edges, cut into pieces (cuda/long_lists.h). The pieces run first,
  /// so that a hub does not occupy one warp long after all other lists are done. The sum of a list
  /// of several pieces is the sum of the pieces' sums, added in order; its bits differ from the
  /// CPU's. Without pieces each list is summed as a whole.
  Memory<const ListPiece> pieces = nullptr;
  std::uint32_t piece_count = 0;
  std::uint32_t longest = 0;
  std::uint32_t partial_count = 0;
  Memory<float> partials = nullptr;  ///< [partial_count, dim], scratch
};

/// Device counterpart of MaxArgs: the maximum of each column and the first edge that attains it. A
/// NaN counts as larger than every number. An empty list yields zeros and kNoWinner. `winner` may
/// be null.
template <template <typename> class Memory>
struct MaxArgsOf {
  Element type = Element::kFloat32;
  Memory<const unsigned char> x = nullptr;
  std::size_t x_stride = 0;
  std::size_t dim = 0;
  std::size_t targets = 0;
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> index = nullptr;
  Memory<float> out = nullptr;
  std::size_t out_stride = 0;
  Memory<std::uint32_t> winner = nullptr;  ///< [targets, dim]
};
constexpr std::uint32_t kNoWinner = 0xFFFFFFFFU;

/// Device counterpart of MaxGradientArgs, over the transposed lists: out[j, d] = sum over k in
/// [offsets[j], offsets[j + 1]), in order, of gradient[target[k], d] where winner[target[k], d] is
/// edge[k].
template <template <typename> class Memory>
struct MaxGradientArgsOf {
  Memory<const float> gradient = nullptr;  ///< [targets, dim]
  Memory<const std::uint32_t> winner = nullptr;
  std::size_t dim = 0;
  std::size_t sources = 0;
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> target = nullptr;
  Memory<const std::uint32_t> edge = nullptr;
  Memory<float> out = nullptr;  ///< [sources, dim]
};

/// Device counterpart of EdgeDotArgs: out[e] = the dot product of gradient[t, :] and x[index[e],
/// :]. Column d is added to partial sum d % 16, and the 16 partial sums are added in a fixed tree.
template <template <typename> class Memory>
struct EdgeDotArgsOf {
  Element type = Element::kFloat32;
  Memory<const unsigned char> x = nullptr;
  std::size_t x_stride = 0;
  std::size_t dim = 0;
  std::size_t targets = 0;
  Memory<const std::uint32_t> offsets = nullptr;
  Memory<const std::uint32_t> index = nullptr;
  Memory<const float> gradient = nullptr;  ///< [targets, dim]
  Memory<float> out = nullptr;             ///< [edges]
};

using GatherArgs = GatherArgsOf<plain::Mem>;
using IdMapArgs = IdMapArgsOf<plain::Mem>;
using SumArgs = SumArgsOf<plain::Mem>;
using MaxArgs = MaxArgsOf<plain::Mem>;
using MaxGradientArgs = MaxGradientArgsOf<plain::Mem>;
using EdgeDotArgs = EdgeDotArgsOf<plain::Mem>;

}  // namespace rhizome::cuda
