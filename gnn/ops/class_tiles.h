#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cache/job/compute_threads.h"
#include "gnn/ops/class_products.h"

// Tiles of rows of one class, and the products and gradients of these tiles: shared by the
// operations with a matrix for each class. Internal to their implementations.

namespace rhizome {
inline namespace internal {

/// Rows [first, first + count) of RowsByClass::rows, all of one class.
struct ClassTile {
  std::size_t of_class = 0;
  std::size_t first = 0;
  std::size_t count = 0;
};

inline ClassTile ClassTileAt(const RowsByClass& classes, std::size_t of_class, std::size_t number) {
  constexpr auto kRows = static_cast<std::size_t>(kDenseRows);
  const std::size_t first = classes.begin[of_class] + number * kRows;
  return {of_class, first, std::min(kRows, classes.begin[of_class + 1] - first)};
}

inline std::vector<ClassTile> ClassTilesOf(const RowsByClass& classes) {
  std::vector<ClassTile> tiles;
  for (std::size_t c = 0; c + 1 < classes.begin.size(); ++c) {
    const std::int64_t count = classes.begin[c + 1] - classes.begin[c];
    for (std::int64_t i = 0; i < DenseTiles(count); ++i)
      tiles.push_back(ClassTileAt(classes, c, static_cast<std::size_t>(i)));
  }
  return tiles;
}

inline float* FloatsOfRow(const torch::Tensor& tensor, std::size_t row) {
  return tensor.data_ptr<float>() + row * static_cast<std::size_t>(tensor.size(1));
}

/// Copies row i of `from` to row places[i] of `to`.
inline void ScatterRows(const float* from, std::span<const std::uint32_t> places,
                        std::size_t columns, float* to) {
  for (std::size_t i = 0; i < places.size(); ++i)
    std::memcpy(to + places[i] * columns, from + i * columns, columns * sizeof(float));
}

/// The rows of a float table that products read, by position in RowsByClass::rows.
class SourceRows {
 public:
  SourceRows(const LayerRows& x, const RowsByClass& classes, const ProductSource& source)
      : x_(x.table.data_ptr<float>()), columns_(static_cast<std::size_t>(x.table.size(1))) {
    if (source.row.empty() && x.place.empty()) {
      places_ = classes.rows;
      return;
    }
    own_.reserve(classes.rows.size());
    for (std::uint32_t row : classes.rows) {
      if (!source.row.empty()) row = source.row[row];
      own_.push_back(x.place.empty() ? row : x.place[row]);
    }
    places_ = own_;
  }

  ProductRows Of(const ClassTile& tile) const {
    return {.x = x_, .stride = columns_, .columns = columns_, .place = places_.data() + tile.first};
  }

 private:
  const float* const x_;
  const std::size_t columns_;
  std::vector<std::uint32_t> own_;
  std::span<const std::uint32_t> places_;
};

enum class RunOn : bool { kCallingThread, kComputeThreads };

/// Multiplies each row by the matrix of its class: row i of `out` [classes.size(), weight.out()] is
/// computed from row i of `rows`, by number of the rows that `classes` sorts.
inline void MultiplyClasses(const SourceRows& rows, const RowsByClass& classes,
                            const PackedClasses& weight, float* out, RunOn threads) {
  const std::vector<ClassTile> tiles = ClassTilesOf(classes);
  const auto multiply = [&](std::size_t i) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const ClassTile& tile = tiles[i];
    const torch::Tensor made = AnyTile(weight.out());
    MultiplyBlocks(rows.Of(tile), tile.count, weight.MatrixOf(tile.of_class),
                   weight.BiasOf(tile.of_class), made.data_ptr<float>());
    ScatterRows(made.data_ptr<float>(), std::span(classes.rows).subspan(tile.first, tile.count),
                static_cast<std::size_t>(weight.out()), out);
  };
  if (threads == RunOn::kComputeThreads) return ComputeFor(tiles.size(), multiply);
  for (std::size_t i = 0; i < tiles.size(); ++i) multiply(i);
}

/// Multiplies the rows of a tile of groups by the matrix of their relation, and adds each product
/// to the row of its group's target. A target has one group of a relation, so that the tiles of a
/// relation write different rows.
inline void AddTileToTargets(const SourceRows& rows, const RowsByClass& groups,
                             const ClassTile& tile, const PackedBlocks& blocks,
                             std::span<const std::uint32_t> target_of_group,
                             const torch::Tensor& out) {
  const auto columns = static_cast<std::size_t>(out.size(1));
  const torch::Tensor products = AnyTile(out.size(1));
  MultiplyBlocks(rows.Of(tile), tile.count, blocks, nullptr, products.data_ptr<float>());
  for (std::size_t i = 0; i < tile.count; ++i) {
    const float* const made = FloatsOfRow(products, i);
    float* const to = FloatsOfRow(out, target_of_group[groups.rows[tile.first + i]]);
    for (std::size_t k = 0; k < columns; ++k) to[k] += made[k];
  }
}

/// As above for all groups, in ascending order of relations, on the compute threads. `weight`:
/// [relations, blocks, out / blocks, in / blocks].
inline void AddToTargets(const SourceRows& rows, const RowsByClass& groups,
                         const torch::Tensor& weight, bool turned,
                         std::span<const std::uint32_t> target_of_group, const torch::Tensor& out) {
  for (std::size_t c = 0; c + 1 < groups.begin.size(); ++c) {
    const std::int64_t count = groups.begin[c + 1] - groups.begin[c];
    if (count == 0) continue;
    const PackedBlocks blocks = PackBlocks(weight.select(0, static_cast<std::int64_t>(c)), turned);
    ComputeFor(static_cast<std::size_t>(DenseTiles(count)), [&](std::size_t number) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      AddTileToTargets(rows, groups, ClassTileAt(groups, c, number), blocks, target_of_group, out);
    });
  }
}

/// Calls body(group, tile) for the tiles of one class, on the compute threads: one task for each
/// group of a weight gradient.
template <typename Body>
void ForGroupTiles(const RowsByClass& classes, std::size_t of_class, const WeightGradient& sums,
                   const Body& body) {
  ComputeFor(sums.groups(), [&](std::size_t group) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    for (std::int64_t i = sums.FirstTile(group); i < sums.FirstTile(group + 1); ++i)
      body(group, ClassTileAt(classes, of_class, static_cast<std::size_t>(i)));
  });
}

/// Copies the columns of block b of `count` rows to `part` [rows, columns of a block].
inline void CopyBlock(const ProductRows& from, std::size_t count, std::int64_t b,
                      const torch::Tensor& part) {
  const auto columns = static_cast<std::size_t>(part.size(1));
  for (std::size_t i = 0; i < count; ++i) {
    const float* const row = from.x + from.place[i] * from.stride;
    std::memcpy(FloatsOfRow(part, i), row + static_cast<std::size_t>(b) * columns,
                columns * sizeof(float));
  }
}

/// Computes the gradients of the weight [classes, blocks, out / blocks, in / blocks] of one class,
/// and of its bias, from the rows and the gradients of products. `of_bias`: undefined if there is
/// none.
inline void AddClassGradient(const RowsByClass& classes, std::size_t of_class,
                             const SourceRows& rows, const SourceRows& gradients,
                             const torch::Tensor& of_weight, const torch::Tensor& of_bias) {
  const std::int64_t count = classes.begin[of_class + 1] - classes.begin[of_class];
  if (count == 0) return;
  const std::int64_t blocks = of_weight.size(1), outputs = of_weight.size(2);
  const auto c = static_cast<std::int64_t>(of_class);
  for (std::int64_t b = 0; b < blocks; ++b) {
    WeightGradient sums(count, outputs, of_weight.size(3));
    ForGroupTiles(classes, of_class, sums, [&](std::size_t group, const ClassTile& tile) {
      const torch::Tensor part = AnyTile(outputs);
      CopyBlock(gradients.Of(tile), tile.count, b, part);
      ProductRows of_block = rows.Of(tile);
      of_block.columns = static_cast<std::size_t>(of_weight.size(3));
      of_block.x += static_cast<std::size_t>(b) * of_block.columns;
      sums.Add(group, part.data_ptr<float>(), of_block, static_cast<std::int64_t>(tile.count));
    });
    of_weight.select(0, c).select(0, b).copy_(sums.Weight());
    if (of_bias.defined()) of_bias.select(0, c).narrow(0, b * outputs, outputs).copy_(sums.Bias());
  }
}

/// Returns x as floats; rows of another type are copied.
inline LayerRows FloatRows(const LayerRows& x) {
  if (x.table.scalar_type() == torch::kFloat32) return x;
  return {x.Floats()};
}

}  // namespace internal
}  // namespace rhizome
