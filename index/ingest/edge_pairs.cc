#include "rhizome/index/edge_pairs.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "rhizome/index/edge_file.h"
#include "rhizome/index/id_table.h"
#include "rhizome/index/ingest_context.h"

namespace rhizome::inline internal {

namespace {

constexpr std::uint64_t kQueueBytes = std::uint64_t{4} << 20;

Result<EdgeSpool> Spill(const IdTable::Vertices& vertices, SpillSpace& space,
                        const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolWriter writer,
                           EdgeSpoolWriter::Create(space, kSpoolBlockEdges));
  const PartitionInput edges(vertices.count, vertices.src, vertices.dst);
  RHIZOME_RETURN_IF_ERROR(edges.ForEachBlock(
      [&](std::uint64_t first, std::span<const VertexId> src, std::span<const VertexId> dst) {
        writer.edges.src.assign(src.begin(), src.end());
        writer.edges.dst.assign(dst.begin(), dst.end());
        const Status reported = control.Report({"write edges", first, edges.edge_count(), {}});
        return reported.ok() ? writer.Flush(src.size()) : reported;
      }));
  return writer.Finish(0);
}

}  // namespace

Result<EdgePairs> ReadEdgePairs(FileSystem& fs, const Path& folder, const IngestOptions& options,
                                const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(CheckEdgeColumns(options));
  RHIZOME_RETURN_IF_ERROR(CheckGivenVertices(options));
  EdgePairs pairs;
  RHIZOME_ASSIGN_OR_RETURN(pairs.space_, SpillSpace::Create(fs, folder, "edges", kQueueBytes));
  IngestContext context(fs, options, control, /*spills=*/false);
  IdTable ids(options.id_type);
  RHIZOME_RETURN_IF_ERROR(ReadEdges(context, ids, /*space=*/nullptr));
  const std::uint64_t implied = options.vertices.value_or(0);
  RHIZOME_ASSIGN_OR_RETURN(const IdTable::Vertices vertices,
                           std::move(ids).Resolve(implied, fmt::format("--vertices {}", implied)));
  RHIZOME_ASSIGN_OR_RETURN(pairs.ends_, Spill(vertices, *pairs.space_, control));
  pairs.vertex_count_ = vertices.count;
  pairs.bad_lines_ = context.bad_lines();
  return pairs;
}

}  // namespace rhizome::inline internal
