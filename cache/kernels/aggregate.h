#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kernels/aggregate_kernels.h"
#include "rhizome/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// A CSR graph over local ids: the neighbours of target t are neighbors[offsets[t] ..
/// offsets[t+1]).
struct CsrView {
  std::span<const std::uint32_t> offsets;  ///< [targets + 1]
  std::span<const std::uint32_t> neighbors;
  std::size_t targets() const { return offsets.size() - 1; }
};

/// A CsrView that owns its arrays.
struct Csr {
  std::vector<std::uint32_t> offsets = {0};
  std::vector<std::uint32_t> neighbors;
  CsrView view() const { return {.offsets = offsets, .neighbors = neighbors}; }
};

/// Division of the edges of CSR lists into groups. A group has the edges of one target with one
/// relation, and is a list of its own, so that a kernel can treat groups as targets. The groups of
/// target t are [group_begin[t], group_begin[t + 1]), by ascending relation.
struct GroupedLists {
  std::span<const std::uint32_t> group_begin;  ///< [targets + 1]
  std::span<const std::uint32_t> offsets;      ///< [groups + 1], ranges of edges
  std::span<const std::uint16_t> relation;     ///< [groups]

  bool empty() const { return group_begin.empty(); }
  std::size_t targets() const { return group_begin.size() - 1; }
  std::size_t groups() const { return relation.size(); }

  /// Returns the groups of the first targets.
  GroupedLists First(std::size_t targets) const {
    const std::size_t count = group_begin[targets];
    return {group_begin.first(targets + 1), offsets.first(count + 1), relation.first(count)};
  }
};

/// Grouped lists that own their arrays, with their edges.
struct GroupedCsr {
  std::vector<std::uint32_t> group_begin = {0};
  std::vector<std::uint16_t> relation;
  Csr lists;                   ///< one list for each group, ascending
  std::vector<float> weights;  ///< [edges], or empty
  GroupedLists view() const { return {group_begin, lists.offsets, relation}; }
};

/// Sorts the edges of each target by (relation, neighbour, position in the list) and groups them.
/// `relations` [edges], or empty: all edges have relation 0. `weights` [edges], or empty.
GroupedCsr GroupByRelation(const CsrView& csr, std::span<const std::uint16_t> relations,
                           std::span<const float> weights = {});

/// Transpose of a CSR graph. The list of source j holds, ascending, each target whose list contains
/// j, once per occurrence; `edges` holds the position of each occurrence in the original lists.
struct TransposedCsr {
  Csr lists;
  std::vector<std::uint32_t> edges;  ///< parallel to lists.neighbors
};

/// Transposes `csr` in O(edges + sources). Every neighbour must be less than `source_count`.
TransposedCsr Turn(const CsrView& csr, std::size_t source_count);

/// Cuts the targets into `pieces` runs with about equal numbers of edges, one run per thread.
/// Returns the boundaries, [pieces + 1]; the first is 0 and the last targets(). Runs may be empty.
std::vector<std::size_t> SplitByEdges(const CsrView& csr, std::size_t pieces);

/// A read-only row-major matrix: `dim` columns of `type`, rows `stride` elements apart.
struct RowsView {
  RowType type = RowType::kFloat32;
  const void* x = nullptr;
  std::size_t dim = 0;
  std::size_t stride = 0;

  static RowsView Floats(const float* x, std::size_t dim) {
    return {.type = RowType::kFloat32, .x = x, .dim = dim, .stride = dim};
  }
};

/// Factors of an aggregation; an empty span means all ones.
struct AggregateScales {
  std::span<const float> target;  ///< [targets]
  std::span<const float> source;  ///< [rows of x]
  std::span<const float> edge;    ///< [neighbors]
};

/// A term added to the sum of each of the first `count` targets: scale[t] * rows[t, :].
struct AggregateStart {
  const float* rows = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;
  std::span<const float> scale;  ///< [count], or empty: ones
};

/// Builds the arguments of the `sum` kernel (aggregate_kernels.h). Target t is written to out + t *
/// out_stride, in elements.
/// Ownership: borrows all arguments.
SumArgs MakeSumArgs(const CsrView& csr, const AggregateScales& scales, const RowsView& x,
                    const AggregateStart& start, float* out, std::size_t out_stride);

/// For each t in [begin, end): out[t, :] = target[t] * sum over its neighbours j of source[j] *
/// x[j, :], added in list order. (An edge factor multiplies source[j].) `x` and `out` are row-major
/// with `dim` columns; a target without neighbours gets zeros. A target depends only on its list,
/// so any split of the targets over threads gives the same bits.
///
/// The gradient with respect to x is the same function, applied to the transposed lists with the
/// two scales exchanged.
///
/// Source: the memory-aware aggregation of FastGL (ASPLOS 2024), which keeps partial sums in the
/// fastest memory while it reads source rows from slow memory. FastGL uses the shared memory of a
/// GPU. Here the sums of up to 256 columns are held in registers, and the rows of later edges are
/// prefetched.
void AggregateRows(const CsrView& csr, const AggregateScales& scales, const RowsView& x,
                   std::size_t begin, std::size_t end, float* out);

/// For each t in [0, targets): acc[t, :] += sum over e in [begins[t], ends[t]) of scale[index[e]] *
/// x[index[e], :], in order of e. `scale` may be null, which means all ones. Passing a list in
/// pieces gives the same bits as passing it whole.
void AccumulateRows(std::size_t targets, const std::uint32_t* begins, const std::uint32_t* ends,
                    const std::uint32_t* index, const float* scale, const float* x, std::size_t dim,
                    float* acc);

}  // namespace internal
}  // namespace rhizome
