#include "index/ingest/ingest_plan.h"

#include <algorithm>

#include "index/generation/graph_builder.h"
#include "index/ingest/edge_file.h"
#include "index/ingest/ingest_context.h"
#include "index/ingest/ingest_memory.h"
#include "index/ingest/ingest_seconds.h"
#include "index/partition/partitioner.h"
#include "index/partition/streaming_partitioner.h"
#include "storage/base/bytes_left.h"

namespace rhizome {
namespace {

/// Predicts the decisions of Ingest for edges in spill files (SpillingIngest::Fit).
IngestRoute SpilledRoute(const IngestPlan& plan, const IngestOptions& options,
                         std::uint64_t fixed_bytes) {
  const InputEstimate& input = plan.input;
  const PartitionOptions& partition = options.build.partition;
  const std::uint64_t edge_bytes = WriteBytes(options);
  const std::uint64_t left = BytesLeft(plan.memory_bytes, fixed_bytes);
  IngestRoute route{
      .spilled = true,
      .held = HeldBuildBytes(options, input.vertices, input.edges, edge_bytes) <= left,
      .partitioner = partition.kind,
      .partitions = partition.partitions};
  if (route.held) return route;
  const std::uint32_t fit =
      PartitionsThatFit(left, input.vertices, plan.edges, edge_bytes,
                        std::max(partition.threads, 1U), partition.partitions);
  route.partitions = std::max(fit, route.partitions);
  const bool whole = !StreamingPartitioner::Supports(route.partitioner) && route.partitions > 1;
  if (whole && ExpansionBytes(input.vertices, input.edges, route.partitions) > left)
    route.partitioner = PartitionerKind::kHdrf;
  return route;
}

std::uint64_t ScratchBytes(const InputEstimate& input, const IngestOptions& options, bool held) {
  const std::uint64_t spool = input.edges * (8 + ColumnBytes(options));
  std::uint64_t bytes = held ? spool : 2 * spool;
  if (!input.dense_ids)
    bytes = std::max<std::uint64_t>(
        bytes, 2 * spool + input.edges * 2 * static_cast<std::uint64_t>(8 + input.id_bytes + 8));
  return bytes + input.array_bytes;
}

std::uint64_t StoreBytes(const IngestPlan& plan, const IngestOptions& options) {
  const InputEstimate& input = plan.input;
  const bool both = !options.undirected && options.build.directions == Direction::kBoth;
  std::uint64_t edge_bytes = (both ? 9 : 5) + ColumnBytes(options);
  if (both && (HasWeights(options) || EdgeAttributeBytes(options) > 0))
    edge_bytes += 4;  // edge ids of in-entries
  const std::uint64_t bytes = plan.edges * edge_bytes + input.vertices * 16 + input.array_bytes +
                              (input.array_row_bytes > 0 ? input.vertices * 4 : 0) +
                              (options.build.homes != HomeRule::kNone ? input.vertices * 8 : 0);
  if (input.dense_ids) return bytes;
  // An id is in the dictionary with the sorted order, and once more in the coordinates of the rows.
  const double id_bytes = (input.string_ids ? 2 * input.id_bytes + 4 : 16) + 8;
  return bytes + static_cast<std::uint64_t>(static_cast<double>(input.vertices) * id_bytes);
}

void PlanMemory(const IngestOptions& options, std::uint64_t fixed_bytes, IngestPlan& plan) {
  plan.memory_to_hold = MemoryToHold(plan.input, options);
  plan.min_memory = MinSpilledBytes(plan.input.vertices, plan.edges, WriteBytes(options)) +
                    fixed_bytes + (std::uint64_t{4} << 20);
  plan.min_memory = std::max(
      plan.min_memory, fixed_bytes + HomesBytes(options, plan.input.vertices, plan.input.edges));
  plan.min_memory = std::min(plan.min_memory, plan.memory_to_hold);
  plan.memory_bytes = options.memory_bytes == 0 ? plan.memory_to_hold : options.memory_bytes;
  plan.spilled = plan.memory_bytes < plan.memory_to_hold;
}

}  // namespace

Result<IngestPlan> PlanIngest(FileSystem& fs, const IngestOptions& given) {
  RHIZOME_RETURN_IF_ERROR(CheckGivenVertices(given));
  RHIZOME_ASSIGN_OR_RETURN(const InputPlan sniffed, Sniff(fs, given));
  const IngestOptions& options = sniffed.options;
  IngestPlan plan;
  RHIZOME_ASSIGN_OR_RETURN(plan.input, EstimateInput(fs, sniffed));
  plan.edges = plan.input.edges * (options.undirected ? 2 : 1);
  const std::uint64_t fixed = NodeBytes(plan.input) + 2 * plan.input.largest_chunk_bytes;
  PlanMemory(options, fixed, plan);
  PartitionOptions partition = options.build.partition;
  IngestRoute route{.partitioner = partition.kind, .partitions = partition.partitions};
  if (plan.spilled) route = SpilledRoute(plan, options, fixed);
  partition.kind = plan.partitioner = route.partitioner;
  partition.partitions = plan.partitions = route.partitions;
  plan.peak_memory_bytes = route.held ? ExpectedHeldMemory(plan.input, options)
                                      : ExpectedSpilledMemory(plan.input, options, partition);
  plan.peak_memory_bytes = std::min(plan.peak_memory_bytes, plan.memory_bytes);
  plan.store_bytes = StoreBytes(plan, options);
  if (plan.spilled) plan.scratch_bytes = ScratchBytes(plan.input, options, route.held);
  plan.disk_bytes = plan.store_bytes + plan.scratch_bytes;
  plan.seconds = IngestSeconds(plan.input, options, route);
  return plan;
}

}  // namespace rhizome
