#pragma once

#include <cstdint>

#include "index/ingest/input_estimate.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// Returns the bytes of an edge's columns without its two ends: type, weight, attributes.
std::uint64_t ColumnBytes(const IngestOptions& options);

/// Returns a bound on the memory for writing one directed edge of a partition, with its columns.
std::uint64_t WriteBytes(const IngestOptions& options);

/// Returns a bound on the memory for choosing the homes of rows, without the edges; 0 if no homes
/// are computed.
std::uint64_t HomesBytes(const IngestOptions& options, std::uint64_t vertices, std::uint64_t edges);

/// Returns the memory of the nodes file's columns and ids.
std::uint64_t NodeBytes(const InputEstimate& estimate);

/// Returns a bound on the memory for building a graph whose `edges` edges are in memory and take
/// `edge_bytes` each (per direction) while they are written; without nodes, arrays and ids.
std::uint64_t HeldBuildBytes(const IngestOptions& options, std::uint64_t vertices,
                             std::uint64_t edges, std::uint64_t edge_bytes);

/// Returns the smallest memory with which a graph can be built by partition, with any number of
/// partitions.
std::uint64_t MinSpilledBytes(std::uint64_t vertices, std::uint64_t directed_edges,
                              std::uint64_t edge_bytes);

/// Returns a bound on the memory for holding everything, comparable with
/// IngestOptions::memory_bytes.
std::uint64_t MemoryToHold(const InputEstimate& estimate, const IngestOptions& options);

/// Returns the likely peak memory of an ingestion that holds its edges, below the bound above.
std::uint64_t ExpectedHeldMemory(const InputEstimate& estimate, const IngestOptions& options);

/// Returns the likely peak memory of an ingestion that spills its edges and partitions them by
/// `partition`.
std::uint64_t ExpectedSpilledMemory(const InputEstimate& estimate, const IngestOptions& options,
                                    const PartitionOptions& partition);

/// Returns the smallest number of partitions, not below `given`, for which one partition at a time
/// can be built in memory; 0 if the vertices alone exceed the memory. It first tries a number that
/// lets every thread build one partition at a time.
std::uint32_t PartitionsThatFit(std::uint64_t memory_bytes, std::uint64_t vertices,
                                std::uint64_t directed_edges, std::uint64_t edge_bytes,
                                std::uint32_t threads, std::uint32_t given);

}  // namespace internal
}  // namespace rhizome
