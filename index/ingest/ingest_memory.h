#pragma once

#include <cstdint>

#include "rhizome/index/ingest_options.h"
#include "rhizome/index/input_estimate.h"

namespace rhizome::inline internal {

/// Bytes that stand beside one edge's two ends in the input's columns: type, weight, attributes.
std::uint64_t ColumnBytes(const IngestOptions& options);

/// What writing one directed edge of a partition takes at most, with its columns.
std::uint64_t WriteBytes(const IngestOptions& options);

/// What the nodes file's columns and ids take.
std::uint64_t NodeBytes(const InputEstimate& estimate);

/// What holding it all in memory takes at most, for IngestOptions::memory_bytes.
std::uint64_t MemoryToHold(const InputEstimate& estimate, const IngestOptions& options);

/// What an ingestion that holds its edges will probably take at its peak; the above is a bound.
std::uint64_t ExpectedHeldMemory(const InputEstimate& estimate, const IngestOptions& options);

/// The same of one that spills its edges and divides them as `partition` says.
std::uint64_t ExpectedSpilledMemory(const InputEstimate& estimate, const IngestOptions& options,
                                    const PartitionOptions& partition);

/// The least number of partitions, not below `given`, of which one can be built in memory at a
/// time; 0 if the vertices alone are too many. Aims at as many at a time as there are threads.
std::uint32_t PartitionsThatFit(std::uint64_t memory_bytes, std::uint64_t vertices,
                                std::uint64_t directed_edges, std::uint64_t edge_bytes,
                                std::uint32_t threads, std::uint32_t given);

}  // namespace rhizome::inline internal
