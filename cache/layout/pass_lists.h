#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/index/sampler.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

class NeighborSource;

/// The index of a row among those that a worker works on.
using LocalRow = std::uint32_t;

/// The reads of one worker in a pass of layerwise inference: the rows that it computes (targets,
/// mostly those that its partition owns), each with the rows that it is computed from. Rows are
/// numbered locally, in ascending order. Memory: 4 bytes an edge (with weights 8), 28 a local row,
/// 12 a target.
struct PassLists {
  std::vector<Row> rows;               ///< [locals], ascending: computed or read here
  std::vector<VertexId> vertices;      ///< [locals]
  std::vector<PartitionId> owners;     ///< [locals]
  std::vector<std::uint64_t> degrees;  ///< [locals]; degree in the whole graph
  std::vector<LocalRow> targets;       ///< [targets], ascending
  std::vector<std::uint64_t> offsets;  ///< [targets + 1]
  std::vector<LocalRow> neighbors;     ///< [edges]; the rows each target reads, in any order
  std::vector<float> weights;          ///< [edges], of each neighbour's edge, if asked for

  /// Returns the rows that target t reads, without its own.
  std::span<const LocalRow> ReadsOf(std::size_t t) const {
    return std::span(neighbors).subspan(offsets[t], offsets[t + 1] - offsets[t]);
  }
};

struct PassDrawOptions {
  std::int64_t fanout = kAllNeighbors;
  bool no_edges = false;  ///< for a model that looks at each vertex alone
  std::uint64_t seed = 1;
  std::uint32_t layer = 0;
  std::uint32_t threads = 1;
  std::shared_ptr<const NeighborSource> neighbors = nullptr;  ///< null: the graph, in memory

  /// The lists that are walked, and what is drawn from them, as SamplerOptions has it.
  Direction direction = Direction::kIn;
  std::vector<std::int64_t> typed_fanout = {};  ///< [edge types], instead of `fanout`, or empty
  bool weighted = false;
  bool weights = false;  ///< fill the weights of lists, if the graph has them
};

/// Returns the sampling of a pass. BlockPlanner and DrawPassLists both use it, so that what was
/// counted beforehand is what is read. The batch passed to the sampler is the layer.
SamplerOptions PassSampling(const PassDrawOptions& draw);

/// Returns the largest number of edges that a pass takes of a vertex with `degree` edges.
std::uint64_t MostEdgesOf(const PassDrawOptions& draw, std::uint64_t degree);

/// Returns the same of all vertices, without the delta.
std::uint64_t MostEdgesOf(const PassDrawOptions& draw, const GraphSnapshot& graph);

/// Returns whether two passes, of whatever layers, take the same lists: all neighbours of the same
/// types and directions.
bool TakeSameLists(const PassDrawOptions& a, const PassDrawOptions& b);

/// Returns the rows that a partition computes, ascending. Vertices that were added since the
/// generation belong to the last partition.
std::vector<Row> TargetsOf(const GraphSnapshot& graph, PartitionId partition);

/// Returns the rows that computing `targets` (ascending, distinct) reads in a layer. Takes 4 bytes
/// a vertex while it runs, in addition to the result. Errors: kInvalidArgument, more rows than a
/// LocalRow can number, or a target that is no row; those of Sampler; kInterrupted.
Result<PassLists> DrawPassLists(const GraphSnapshot& graph, std::span<const Row> targets,
                                const PassDrawOptions& options, const JobControl& control);

}  // namespace rhizome
