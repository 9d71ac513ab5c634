#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/cache/aggregate_kernels.h"
#include "rhizome/storage/export.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Neighbour lists over local numbers: those of target t are neighbors[offsets[t] .. offsets[t+1]).
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

/// Lists turned around: of source j, the targets whose lists hold j (as often as they do),
/// ascending, and where in the old lists each stood.
struct TurnedCsr {
  Csr lists;
  std::vector<std::uint32_t> edges;  ///< beside lists.neighbors
};

/// In O(edges + sources). `source_count` is more than every neighbour.
TurnedCsr Turn(const CsrView& csr, std::size_t source_count);

/// Targets cut into runs of about equally many edges, for threads: [pieces + 1], first 0, last all;
/// runs may be empty.
std::vector<std::size_t> SplitByEdges(const CsrView& csr, std::size_t pieces);

/// Rows that are read: `x` has `dim` columns of `type`, rows `stride` elements apart.
struct RowsView {
  RowType type = RowType::kFloat32;
  const void* x = nullptr;
  std::size_t dim = 0;
  std::size_t stride = 0;

  static RowsView Floats(const float* x, std::size_t dim) {
    return {.type = RowType::kFloat32, .x = x, .dim = dim, .stride = dim};
  }
};

/// Factors of an aggregation; an empty span stands for all ones.
struct AggregateScales {
  std::span<const float> target;  ///< [targets]
  std::span<const float> source;  ///< [rows of x]
  std::span<const float> edge;    ///< [neighbors]
};

/// What the sum of a target begins with: scale[t] * rows[t, :], for the first `count` targets.
struct AggregateStart {
  const float* rows = nullptr;
  std::size_t stride = 0;
  std::size_t count = 0;
  std::span<const float> scale;  ///< [count], or empty: ones
};

/// What the kernels of aggregate_kernels.h take, for lists and factors as above; target t is
/// written to out + t * out_stride. Ownership: borrows all of it.
SumArgs MakeSumArgs(const CsrView& csr, const AggregateScales& scales, const RowsView& x,
                    const AggregateStart& start, float* out, std::size_t out_stride);

/// For each t in [begin, end): out[t, :] = target[t] * sum over its neighbours j of
/// source[j] * x[j, :], added in list order. `x` and `out` are row-major with `dim` columns; a
/// target without neighbours gets zeros. A target depends on its own list only, so any split of the
/// targets over threads gives the same bits.
///
/// The gradient with respect to x is the same function of the turned lists with the two scales
/// exchanged.
///
/// Source: the memory-aware aggregation of FastGL (ASPLOS 2024), whose partial sums stay in the
/// fastest memory while only source rows are read from the slow one. There that is the shared
/// memory of a GPU; here the sums of up to 256 columns stay in registers, and the rows of edges
/// to come are fetched ahead.
void AggregateRows(const CsrView& csr, const AggregateScales& scales, const RowsView& x,
                   std::size_t begin, std::size_t end, float* out);

/// acc[t, :] += sum over e in [begins[t], ends[t]) of scale[index[e]] * x[index[e], :], in order of
/// e, for each t in [0, targets). `scale` may be null: all ones. For callers that see a list in
/// pieces: the same bits as when they see it whole.
void AccumulateRows(std::size_t targets, const std::uint32_t* begins, const std::uint32_t* ends,
                    const std::uint32_t* index, const float* scale, const float* x, std::size_t dim,
                    float* acc);

}  // namespace internal
}  // namespace rhizome
