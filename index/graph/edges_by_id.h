#pragma once

#include <cstdint>
#include <functional>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Visits the edges of a partition of the generation in the order of their edge ids: edge i has row
/// i in the partition's edge arrays. Edges of the delta have no such rows and are not visited.
/// Errors: kInvalidArgument, no such partition, or it is not loaded; any error of `visit`;
/// kCorruption; kIoError.
Status ScanEdgesById(const GraphSnapshot& graph, std::uint32_t partition,
                     const std::function<Status(VertexId src, VertexId dst, TypeId type)>& visit);

/// Returns the number of edges that ScanEdgesById visits.
/// Errors: kInvalidArgument, no such partition.
Result<std::uint64_t> CountEdgesById(const GraphSnapshot& graph, std::uint32_t partition);

}  // namespace rhizome
