#pragma once

#include <cstdint>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/chunk_reader.h"
#include "rhizome/cache/pass_lists.h"
#include "rhizome/gnn/layerwise_options.h"
#include "rhizome/gnn/model.h"
#include "rhizome/index/graph.h"

namespace rhizome::inline internal {

/// How large the pieces are in which the layers of a job are computed, and what they take: layers
/// count from 0, and `source` is the array that the layer reads. `options.output` is complete, as
/// MakeOutputEntry makes it. Threads: const. Ownership: borrows all.
class LayerSizes {
 public:
  LayerSizes(const GraphSnapshot& graph, const Model& model, const LayerwiseOptions& options)
      : graph_(graph), model_(model), options_(options) {}

  std::uint32_t layers() const { return model_.layers(); }

  /// The array that a layer writes, of all rows.
  ArrayEntry Written(std::uint32_t layer) const;

  PassDrawOptions Draw(std::uint32_t layer) const;
  ChunkReaderOptions Reader(const ArrayEntry& source) const;

  /// Rows of a stage, which holds them as they are read and, if the layer prepares them, as they
  /// are reduced.
  std::uint64_t StageRows(const ArrayEntry& source, std::uint32_t layer) const;

  /// When the own rows of targets are read.
  OwnWindows Own(std::uint32_t layer) const;

  /// Targets of a block, at most.
  std::uint64_t BlockRows(std::uint32_t layer) const;

  /// Returns the largest number of edges in a block. A block ends early if its targets have more,
  /// so that lists of adjacent high-degree vertices, as in PDS order, take no more memory than
  /// others.
  std::uint64_t BlockEdges(std::uint32_t layer) const;

  /// Returns the memory of the widest layer beside the cache, without that of lists on disk.
  std::uint64_t WorkingBytes(const ArrayEntry& features) const;

  /// Returns the decoded size of the largest array that a layer reads.
  std::uint64_t CacheableBytes(const ArrayEntry& features) const;

 private:
  ArrayEntry Intermediate(std::uint32_t layer) const;
  std::uint64_t BytesOfEdge() const;
  std::uint64_t StateBytes(std::uint32_t layer) const;
  std::uint64_t PreparedBytes(std::uint32_t layer) const;
  std::uint64_t Edges(std::uint32_t layer) const;

  const GraphSnapshot& graph_;
  const Model& model_;
  const LayerwiseOptions& options_;
};

/// Returns the entry of the array that inference writes: [vertices, embedding] or [vertices,
/// classes] float32. Errors: kInvalidArgument, not one fanout for each layer, or rows that are too
/// wide.
Result<ArrayEntry> MakeOutputEntry(const GraphSnapshot& graph, const Model& model,
                                   const LayerwiseOptions& options);

}  // namespace rhizome::inline internal
