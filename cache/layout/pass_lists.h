#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/sampler.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

class NeighborSource;

/// Index of a row among the rows that a worker reads or computes.
using LocalRow = std::uint32_t;

/// The reads of one worker in a pass of layerwise inference: the rows that it computes (targets,
/// usually the rows owned by its partition), each with the rows that it is computed from. Rows are
/// numbered locally, in ascending order. Memory: 4 bytes per edge (8 with weights), 28 per local
/// row, 12 per target.
struct PassLists {
  std::vector<Row> rows;            ///< [locals], ascending: rows computed or read by this worker
  std::vector<VertexId> vertices;   ///< [locals]
  std::vector<PartitionId> owners;  ///< [locals]
  std::vector<std::uint64_t> degrees;  ///< [locals]; degree in the whole graph
  std::vector<LocalRow> targets;       ///< [targets], ascending
  std::vector<std::uint64_t> offsets;  ///< [targets + 1]
  std::vector<LocalRow> neighbors;     ///< [edges]; the rows that each target reads, in any order
  std::vector<float> weights;          ///< [edges]; weight of each neighbour's edge, if requested

  /// Returns the rows that target t reads, excluding its own row.
  std::span<const LocalRow> ReadsOf(std::size_t t) const {
    return std::span(neighbors).subspan(offsets[t], offsets[t + 1] - offsets[t]);
  }
};

struct PassDrawOptions {
  std::int64_t fanout = kAllNeighbors;
  bool no_edges = false;  ///< for a model that uses no neighbours
  std::uint64_t seed = 1;
  std::uint32_t layer = 0;
  std::uint32_t threads = 1;
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< null: the graph in memory

  /// Direction and sampling of the lists, as in SamplerOptions.
  Direction direction = Direction::kIn;
  std::vector<std::int64_t> typed_fanout = {};  ///< [edge types], replaces `fanout`; or empty
  bool weighted = false;
  bool weights = false;  ///< fill the weights of lists if the graph has them

  /// Number of relations by which BlockPlanner groups or sorts its lists; 0: it ignores them. The
  /// relation of an edge is relation_of[type] (SamplerOptions::types_by_side), or its type if
  /// `relation_of` is empty.
  std::uint32_t relations = 0;
  std::vector<TypeId> relation_of = {};
};

/// Returns the sampler options of a pass. BlockPlanner and DrawPassLists both use them, so that the
/// planned reads equal the actual ones. The batch number passed to the sampler is the layer.
SamplerOptions PassSampling(const PassDrawOptions& draw);

/// Returns the maximum number of edges that a pass samples for a vertex with `degree` edges.
std::uint64_t MostEdgesOf(const PassDrawOptions& draw, std::uint64_t degree);

/// Returns the maximum number of edges that a pass samples over all vertices, without the delta.
std::uint64_t MostEdgesOf(const PassDrawOptions& draw, const GraphSnapshot& graph);

/// Returns whether two passes, of any layers, read the same lists: all neighbours of the same types
/// and directions.
bool TakeSameLists(const PassDrawOptions& a, const PassDrawOptions& b);

/// Returns the rows that a partition computes, ascending. Vertices added since the generation
/// belong to the last partition.
std::vector<Row> TargetsOf(const GraphSnapshot& graph, PartitionId partition);

/// Returns the rows that a layer reads to compute `targets` (ascending, distinct). Uses 4 bytes per
/// vertex while it runs, in addition to the result. Errors: kInvalidArgument, more rows than a
/// LocalRow can number, or a target that is not a row; any error of Sampler; kInterrupted.
Result<PassLists> DrawPassLists(const GraphSnapshot& graph, std::span<const Row> targets,
                                const PassDrawOptions& options, const JobControl& control);

}  // namespace rhizome
