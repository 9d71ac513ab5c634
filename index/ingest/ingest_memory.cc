#include "index/ingest/ingest_memory.h"

#include <algorithm>
#include <string>

#include "index/generation/graph_builder.h"
#include "index/homes/home_partitioner.h"
#include "index/ingest/edge_file.h"
#include "index/partition/partitioner.h"
#include "index/partition/streaming_partitioner.h"

namespace rhizome {
inline namespace internal {
namespace {

// Measured with R-MAT graphs (scale 18 and 20, 1 to 8 partitions, both directions): typical values
// of the constants of graph_builder.h, which are bounds for any graph.
constexpr std::uint64_t kUsualVertexBytes = 16;
constexpr std::uint64_t kUsualWriteBytes = 24;
constexpr std::uint64_t kUsualWriteVertexBytes = 16;
constexpr std::uint64_t kUsualSpillBytes = std::uint64_t{15} << 20;  // blocks and queues

/// Returns the memory of the dictionary of all ids.
std::uint64_t DictionaryBytes(const InputEstimate& estimate) {
  if (estimate.dense_ids) return 0;
  const double key = estimate.string_ids ? 2 * estimate.id_bytes + 40 + estimate.id_bytes : 16;
  return static_cast<std::uint64_t>(static_cast<double>(estimate.vertices) * (key + 32));
}

std::uint64_t DirectedEdges(const InputEstimate& estimate, const IngestOptions& options) {
  return estimate.edges * (options.undirected ? 2 : 1);
}

/// Returns the typical memory of vertices, arrays and the nodes file, which does not depend on the
/// edges' path.
std::uint64_t UsualFixedBytes(const InputEstimate& estimate) {
  return estimate.vertices * kUsualVertexBytes + NodeBytes(estimate) +
         2 * estimate.largest_chunk_bytes;
}

/// Returns the memory of the ids while the store is built.
std::uint64_t HeldIdBytes(const InputEstimate& estimate) {
  if (estimate.dense_ids) return 0;
  const double id_bytes = estimate.string_ids ? 40 + estimate.id_bytes : 8;
  // The dictionary is written from a column of offsets and one of sorted ids.
  return static_cast<std::uint64_t>(static_cast<double>(estimate.vertices) * (id_bytes + 16));
}

/// Returns the usual number of vertices of one of `partitions` partitions. Each replica of a vertex
/// besides the first needs an edge of its own; usually it has several.
double UsualPartitionVertices(std::uint64_t vertices, std::uint64_t directed_edges,
                              double partitions) {
  const auto all = static_cast<double>(vertices);
  return std::min(all, (all + static_cast<double>(directed_edges) / 2) / partitions);
}

/// Returns the usual memory for writing one of `partitions` partitions. The factor 1.1 allows for
/// unequal partitions.
std::uint64_t UsualPartitionBytes(std::uint64_t vertices, std::uint64_t directed_edges,
                                  std::uint64_t edge_bytes, std::uint32_t partitions) {
  const double edges = static_cast<double>(directed_edges) / partitions;
  return WritePartitionBytes(
      static_cast<std::uint64_t>(1.1 * edges), edge_bytes,
      static_cast<std::uint64_t>(1.1 *
                                 UsualPartitionVertices(vertices, directed_edges, partitions)),
      vertices);
}

/// BuildVertexBytes is equal for all numbers of partitions up to a tier and above the one before.
std::uint32_t NextTier(std::uint32_t most) { return most < 64 ? most + 8 : most + 64; }

/// Returns the typical memory of the partitions that are written at the same time.
std::uint64_t UsualWriteBytes(const InputEstimate& estimate, const IngestOptions& options,
                              const PartitionOptions& partition) {
  const std::uint64_t at_once = std::clamp(partition.threads, 1U, partition.partitions);
  const std::uint64_t edges = DirectedEdges(estimate, options);
  const auto vertices = static_cast<std::uint64_t>(
      UsualPartitionVertices(estimate.vertices, edges, partition.partitions));
  return edges * at_once / partition.partitions *
             (kUsualWriteBytes + WriteBytes(options) - kWriteBytesPerEdge) +
         at_once * vertices * kUsualWriteVertexBytes;
}

/// Returns the memory of the partitioner, without the edges.
std::uint64_t DivideBytes(const InputEstimate& estimate, const PartitionOptions& partition) {
  const std::uint64_t result = estimate.edges * sizeof(PartitionId);
  if (partition.partitions == 1) return result;
  if (!StreamingPartitioner::Supports(partition.kind))
    return ExpansionBytes(estimate.vertices, estimate.edges, partition.partitions);
  return result + StreamingPartitioner::EstimateBytes(partition.kind, estimate.vertices,
                                                      partition.partitions);
}

}  // namespace

std::uint64_t ColumnBytes(const IngestOptions& options) {
  return EdgeAttributeBytes(options) + (HasEdgeTypes(options) ? sizeof(TypeId) : 0) +
         (HasWeights(options) ? sizeof(float) : 0);
}

std::uint64_t WriteBytes(const IngestOptions& options) {
  return kWriteBytesPerEdge + 3 * EdgeAttributeBytes(options) + (HasEdgeTypes(options) ? 6 : 0) +
         (HasWeights(options) ? 16 : 0);
}

std::uint64_t HomesBytes(const IngestOptions& options, std::uint64_t vertices,
                         std::uint64_t edges) {
  if (options.build.homes != HomeRule::kEdgeCut) return 0;
  return DivideRowsBytes(vertices, edges, options.build.partition.partitions);
}

std::uint64_t NodeBytes(const InputEstimate& estimate) {
  const std::uint64_t dictionary =
      estimate.dense_ids ? 0
                         : static_cast<std::uint64_t>(static_cast<double>(estimate.node_lines) *
                                                      (estimate.id_bytes + 40));
  return estimate.node_lines * estimate.node_column_bytes + dictionary;
}

std::uint64_t HeldBuildBytes(const IngestOptions& options, std::uint64_t vertices,
                             std::uint64_t edges, std::uint64_t edge_bytes) {
  const PartitionOptions& partition = options.build.partition;
  const std::uint64_t directed = edges * (options.undirected ? 2 : 1);
  const std::uint64_t write = directed * kHeldBytesPerEdge +
                              BuildVertexBytes(vertices, partition.partitions) +
                              WritePartitionBytes(directed, edge_bytes, vertices, vertices);
  std::uint64_t divide = HomesBytes(options, vertices, edges);
  if (partition.partitions > 1 && !StreamingPartitioner::Supports(partition.kind))
    divide = std::max(divide, ExpansionBytes(vertices, edges, partition.partitions));
  return std::max(write, edges * kHeldBytesPerEdge + divide);
}

std::uint64_t MemoryToHold(const InputEstimate& estimate, const IngestOptions& options) {
  // A growing vector takes up to 40 bytes an edge, because its capacity doubles.
  const std::uint64_t growing = estimate.edges_exact ? 16 : 40;
  const std::uint64_t read =
      estimate.edges * (growing + 2 * ColumnBytes(options)) + DictionaryBytes(estimate);
  const std::uint64_t homes =
      estimate.edges * growing + HomesBytes(options, estimate.vertices, estimate.edges);
  const std::uint64_t build =
      HeldBuildBytes(options, estimate.vertices, estimate.edges, WriteBytes(options));
  const std::uint64_t ids = estimate.edges * (growing + ColumnBytes(options)) +
                            estimate.vertices * kBuildBytesPerVertex + HeldIdBytes(estimate);
  return std::max({read, build, homes, ids}) + NodeBytes(estimate) + estimate.array_bytes +
         2 * estimate.largest_chunk_bytes;
}

std::uint64_t ExpectedHeldMemory(const InputEstimate& estimate, const IngestOptions& options) {
  const PartitionOptions& partition = options.build.partition;
  const std::uint64_t directed = DirectedEdges(estimate, options);
  const std::uint64_t row_bytes = kHeldBytesPerEdge + ColumnBytes(options);
  const std::uint64_t input = estimate.edges * row_bytes;
  const std::uint64_t read = input + DictionaryBytes(estimate);
  const std::uint64_t divide = input + DivideBytes(estimate, partition);
  // All edges exist twice: in input order and by partition.
  const std::uint64_t arrange = input + estimate.edges * sizeof(PartitionId) + directed * row_bytes;
  const std::uint64_t homes = input + HomesBytes(options, estimate.vertices, estimate.edges);
  const std::uint64_t left = directed - directed / partition.partitions;
  const std::uint64_t write = left * row_bytes + UsualWriteBytes(estimate, options, partition);
  return std::max({read, homes, divide, arrange, write}) + UsualFixedBytes(estimate) +
         estimate.array_bytes;
}

std::uint64_t ExpectedSpilledMemory(const InputEstimate& estimate, const IngestOptions& options,
                                    const PartitionOptions& partition) {
  const std::uint64_t divide = DivideBytes(estimate, partition);
  const std::uint64_t write =
      UsualWriteBytes(estimate, options, partition) + UsualFixedBytes(estimate);
  const std::uint64_t homes = HomesBytes(options, estimate.vertices, estimate.edges);
  return std::max({divide, homes, write}) + kUsualSpillBytes;
}

std::uint64_t MinSpilledBytes(std::uint64_t vertices, std::uint64_t directed_edges,
                              std::uint64_t edge_bytes) {
  std::uint64_t least = UINT64_MAX;
  for (std::uint32_t most = 16; most <= kMaxPartitions; most = NextTier(most))
    least = std::min(least, BuildVertexBytes(vertices, most) +
                                UsualPartitionBytes(vertices, directed_edges, edge_bytes, most));
  return least;
}

std::uint32_t PartitionsThatFit(std::uint64_t memory_bytes, std::uint64_t vertices,
                                std::uint64_t directed_edges, std::uint64_t edge_bytes,
                                std::uint32_t threads, std::uint32_t given) {
  for (const std::uint32_t at_once : {std::max(threads, 1U), 1U}) {
    // More partitions need more memory a vertex, which may again require more partitions.
    std::uint32_t first = 1;
    for (std::uint32_t most = 16; most <= kMaxPartitions; first = most + 1, most = NextTier(most)) {
      const std::uint64_t vertex_bytes = BuildVertexBytes(vertices, most);
      if (vertex_bytes >= memory_bytes) break;
      for (std::uint32_t partitions = std::max(first, given); partitions <= most; ++partitions)
        if (at_once * UsualPartitionBytes(vertices, directed_edges, edge_bytes, partitions) <=
            memory_bytes - vertex_bytes)
          return partitions;
    }
  }
  return 0;
}

}  // namespace internal
}  // namespace rhizome
