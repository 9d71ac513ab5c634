#pragma once

#include <cstdint>

#include "cache/blocks/block_plan.h"
#include "cache/blocks/chunk_reader.h"
#include "cache/layout/pass_lists.h"
#include "gnn/infer/layerwise_options.h"
#include "gnn/models/model.h"
#include "rhizome/graph.h"

namespace rhizome {
inline namespace internal {

/// Sizes of the pieces in which the layers of a job are computed, and the memory that they need.
/// Layers are numbered from 0; `source` is the array that the layer reads. `options.output` must be
/// complete (see MakeOutputEntry).
/// Threads: all functions are const and may run concurrently. Ownership: borrows all arguments.
class LayerSizes {
 public:
  LayerSizes(const GraphSnapshot& graph, const Model& model, const LayerwiseOptions& options)
      : graph_(graph), model_(model), options_(options) {}

  /// Max number of rows that the input pass computes together.
  static constexpr std::uint64_t kInputRows = 4096;

  std::uint32_t layers() const { return model_.layers(); }

  /// Returns the entry of the array that the input pass writes, for all rows. For models with
  /// inputs by type.
  ArrayEntry FirstRows() const;

  /// Returns how the input pass reads one of `arrays` arrays.
  ChunkReaderOptions InputReader(const ArrayEntry& source, std::size_t arrays) const;

  /// Returns the memory of the input pass; 0 for models without inputs by type.
  std::uint64_t InputBytes() const;

  /// Returns the entry of the array that a layer writes, for all rows.
  ArrayEntry Written(std::uint32_t layer) const;

  PassDrawOptions Draw(std::uint32_t layer) const;
  ChunkReaderOptions Reader(const ArrayEntry& source) const;

  /// Returns the number of rows in a stage. If the layer prepares rows, the wider of a raw and a
  /// prepared row fits.
  std::uint64_t StageRows(const ArrayEntry& source, std::uint32_t layer) const;

  /// Returns when the targets' own rows are read: before the sums, after them, or both.
  OwnWindows Own(std::uint32_t layer) const;

  /// Returns the max number of targets in a block.
  std::uint64_t BlockRows(std::uint32_t layer) const;

  /// Returns the max number of edges in a block. A block ends early if its targets have more, so
  /// that lists of adjacent high-degree vertices, as in PDS order, need no more memory than others.
  std::uint64_t BlockEdges(std::uint32_t layer) const;

  /// Returns the max number of groups in a block, for typed models; if edges are not grouped, of
  /// targets that have edges. As above.
  std::uint64_t BlockGroups(std::uint32_t layer) const;

  /// Returns the memory for the widest layer or the input pass, without the cache and without lists
  /// on disk. `features`: the array that the first layer reads (FirstSource).
  std::uint64_t WorkingBytes(const ArrayEntry& features) const;

  /// Returns the decoded size of the largest array that a layer reads.
  std::uint64_t CacheableBytes(const ArrayEntry& features) const;

 private:
  ArrayEntry Intermediate(std::uint32_t layer) const;
  ArrayEntry Hidden(std::uint32_t number, std::int64_t columns, bool has_zeros) const;
  std::uint64_t BytesOfEdge() const;
  std::uint64_t RelatedBytes(std::uint32_t layer, std::uint64_t stage_rows,
                             std::uint64_t edges) const;
  std::uint64_t StateBytes(std::uint32_t layer) const;
  std::uint64_t GroupBytes(std::uint32_t layer) const;
  std::uint64_t GroupTileBytes(std::uint32_t layer) const;
  std::uint64_t ListBytes(std::uint32_t layer) const;
  double MeanEdges(std::uint32_t layer) const;
  std::uint64_t GroupsOfTarget(std::uint32_t layer) const;
  double MeanGroups(std::uint32_t layer) const;
  double RowRatio(std::uint32_t layer) const;
  std::uint64_t PreparedBytes(std::uint32_t layer) const;
  std::uint64_t Edges(std::uint32_t layer) const;

  const GraphSnapshot& graph_;
  const Model& model_;
  const LayerwiseOptions& options_;
};

/// Returns the max number of groups of all rows of a graph together, for LayerwiseOptions::groups;
/// 0 for models that are not typed. If layers do not group edges, the edges of a row are one group.
/// Errors: as DegreesOfRows.
Result<std::uint64_t> MostGroups(const GraphSnapshot& graph, const Model& model,
                                 Direction direction);

/// Returns the entry of the array that inference writes: [vertices, embedding] or [vertices,
/// classes] float32. Errors: kInvalidArgument, the number of fanouts differs from the number of
/// layers, or rows are too wide.
Result<ArrayEntry> MakeOutputEntry(const GraphSnapshot& graph, const Model& model,
                                   const LayerwiseOptions& options);

}  // namespace internal
}  // namespace rhizome
