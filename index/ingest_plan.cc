#include "rhizome/index/ingest_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "rhizome/index/edge_file.h"
#include "rhizome/index/external_id.h"
#include "rhizome/index/input_stream.h"
#include "rhizome/index/node_file.h"
#include "rhizome/index/npy.h"
#include "rhizome/index/row_sources.h"
#include "rhizome/index/streaming_partitioner.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {
namespace {

/// What is written beside one edge's two ends.
std::uint64_t ColumnBytes(const IngestOptions& options) {
  std::uint64_t bytes =
      8 * EdgeAttributeNames(options).size() + (HasEdgeTypes(options) ? sizeof(TypeId) : 0);
  for (const std::string& name : options.columns) bytes += name == "weight" ? 4 : 0;
  return bytes;
}

std::uint64_t WriteBytes(const IngestOptions& options) {
  std::uint64_t bytes = kWriteBytesPerEdge + 24 * EdgeAttributeNames(options).size() +
                        (HasEdgeTypes(options) ? 6 : 0);
  for (const std::string& name : options.columns) bytes += name == "weight" ? 16 : 0;
  return bytes;
}

/// Of the dictionary of all ids in memory.
std::uint64_t DictionaryBytes(const InputEstimate& estimate) {
  if (estimate.dense_ids) return 0;
  const double key = estimate.string_ids ? 2 * estimate.id_bytes + 40 + estimate.id_bytes : 16;
  return static_cast<std::uint64_t>(static_cast<double>(estimate.vertices) * (key + 32));
}

std::uint64_t NodeBytes(const InputEstimate& estimate) {
  const std::uint64_t dictionary =
      estimate.dense_ids ? 0
                         : static_cast<std::uint64_t>(static_cast<double>(estimate.node_lines) *
                                                      (estimate.id_bytes + 40));
  return estimate.node_lines * estimate.node_column_bytes + dictionary;
}

}  // namespace

std::uint64_t MemoryToHold(const InputEstimate& estimate, const IngestOptions& options) {
  const std::uint64_t directed = estimate.edges * (options.undirected ? 2 : 1);
  const std::uint64_t growing = estimate.edges_exact ? 16 : 40;  // a vector's, as it doubles
  const std::uint64_t read =
      estimate.edges * (growing + 2 * ColumnBytes(options)) + DictionaryBytes(estimate);
  const std::uint64_t build = directed * (kHeldBytesPerEdge + WriteBytes(options)) +
                              estimate.vertices * kBuildBytesPerVertex;
  return std::max(read, build) + NodeBytes(estimate) + estimate.array_bytes +
         2 * estimate.largest_chunk_bytes;
}

std::uint32_t PartitionsThatFit(std::uint64_t memory_bytes, std::uint64_t vertices,
                                std::uint64_t directed_edges, std::uint64_t edge_bytes,
                                std::uint32_t threads, std::uint32_t given) {
  // Partitions are not quite equal.
  const double all = 1.1 * static_cast<double>(directed_edges) * static_cast<double>(edge_bytes);
  for (const std::uint32_t at_once : {std::max(threads, 1U), 1U}) {
    // More than 64 partitions take more memory for each vertex, and so perhaps still more of them.
    for (std::uint32_t most = 64; most <= kMaxPartitions; most += 64) {
      const std::uint64_t vertex_bytes = BuildVertexBytes(vertices, most);
      if (vertex_bytes >= memory_bytes) break;
      const double partitions =
          std::ceil(all * at_once / static_cast<double>(memory_bytes - vertex_bytes));
      if (partitions > most || given > most) continue;
      return std::max({static_cast<std::uint32_t>(partitions), given, 1U});
    }
  }
  return 0;
}

Result<IngestPlan> PlanIngest(FileSystem& fs, const IngestOptions& options) {
  IngestPlan plan;
  RHIZOME_ASSIGN_OR_RETURN(plan.input, EstimateInput(fs, options));
  const InputEstimate& input = plan.input;
  plan.edges = input.edges * (options.undirected ? 2 : 1);
  const std::uint64_t edge_bytes = WriteBytes(options);
  const std::uint64_t vertex_bytes = input.vertices * kBuildBytesPerVertex;
  const std::uint64_t fixed = NodeBytes(input) + 2 * input.largest_chunk_bytes;
  plan.memory_to_hold = MemoryToHold(input, options);
  plan.least_memory = vertex_bytes + fixed + plan.edges * edge_bytes * 11 / 10 / kMaxPartitions +
                      (std::uint64_t{4} << 20);
  plan.least_memory = std::min(plan.least_memory, plan.memory_to_hold);
  plan.memory_bytes = options.memory_bytes == 0 ? plan.memory_to_hold : options.memory_bytes;
  plan.spilled = plan.memory_bytes < plan.memory_to_hold;
  const PartitionOptions& partition = options.build.partition;
  plan.partitioner = partition.kind;
  plan.partitions = partition.partitions;

  // What each step takes, on one core of a server of 2020 (see `bench ingest`), in edges a second.
  const auto edges = static_cast<double>(input.edges);
  const auto directed = static_cast<double>(plan.edges);
  const double threads = std::max(partition.threads, 1U);
  double seconds = static_cast<double>(input.text_bytes) / 60e6 + edges / 25e6 +
                   static_cast<double>(input.array_bytes) / 250e6;
  const std::uint64_t spool = input.edges * (8 + ColumnBytes(options));
  if (!plan.spilled) {
    plan.peak_memory_bytes = plan.memory_to_hold;
  } else {
    const std::uint64_t left = plan.memory_bytes - std::min(plan.memory_bytes, fixed);
    const bool holds = plan.edges * (edge_bytes + kHeldBytesPerEdge) + vertex_bytes <= left;
    if (!holds) {
      const std::uint32_t fit =
          PartitionsThatFit(left, input.vertices, plan.edges, edge_bytes,
                            static_cast<std::uint32_t>(threads), plan.partitions);
      plan.partitions = std::max(fit, plan.partitions);
      if (!StreamingPartitioner::Supports(plan.partitioner) && plan.partitions > 1 &&
          ExpansionBytes(input.vertices, input.edges, plan.partitions) > left)
        plan.partitioner = PartitionerKind::kHdrf;
    }
    plan.peak_memory_bytes = plan.memory_bytes;
    plan.scratch_bytes = holds ? spool : 2 * spool;
    if (!input.dense_ids)
      plan.scratch_bytes = std::max<std::uint64_t>(
          plan.scratch_bytes,
          2 * spool + input.edges * 2 * static_cast<std::uint64_t>(8 + input.id_bytes + 8));
    plan.scratch_bytes += input.array_bytes;
    seconds += edges / 12e6 * (holds ? 1 : 2) + static_cast<double>(input.array_bytes) / 250e6;
    if (!input.dense_ids) seconds += edges / 2e6;
  }
  if (plan.partitions > 1) {
    const bool expansion = !StreamingPartitioner::Supports(plan.partitioner);
    const double rate = expansion                                    ? 0.9e6 * threads
                        : plan.partitioner == PartitionerKind::kHdrf ? 4e6
                                                                     : 15e6;
    seconds += edges / rate;
  }
  const double writers = std::min<double>(threads, plan.partitions);
  seconds += directed / (5e6 * writers);
  plan.seconds = seconds;

  const bool both = !options.undirected && options.build.directions == Direction::kBoth;
  std::uint64_t edge_disk = (both ? 9 : 5) + ColumnBytes(options);
  const bool weighted =
      std::find(options.columns.begin(), options.columns.end(), "weight") != options.columns.end();
  if (both && (weighted || !EdgeAttributeNames(options).empty())) edge_disk += 4;  // in-edges' ids
  plan.store_bytes = plan.edges * edge_disk + input.vertices * 12 + input.array_bytes +
                     (input.array_row_bytes > 0 ? input.vertices * 4 : 0);
  if (!input.dense_ids)
    plan.store_bytes += static_cast<std::uint64_t>(static_cast<double>(input.vertices) *
                                                   ((input.string_ids ? input.id_bytes : 8) + 8));
  plan.disk_bytes = plan.store_bytes + plan.scratch_bytes;
  return plan;
}

}  // namespace rhizome
