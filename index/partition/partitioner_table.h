#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "index/partition/partitioner.h"
#include "index/partition/streaming_partitioner.h"
#include "rhizome/graph_types.h"

namespace rhizome {
inline namespace internal {

/// Creates the StreamingPartitioner of a kind. `options` are valid.
using MakeStreaming = std::unique_ptr<StreamingPartitioner>(std::uint64_t vertex_count,
                                                            std::uint64_t edge_count,
                                                            const PartitionOptions& options);

/// Partitions edges that are all available at once, into two partitions or more. `input` and
/// `options` are valid. Sets DividedEdges::owners and metrics if it knows them; otherwise `owners`
/// is empty.
using DivideAll = Result<DividedEdges>(const PartitionInput& input, const PartitionOptions& options,
                                       const JobControl& control);

/// Describes a kind of partitioner: a row of the table in partitioner.cc.
struct PartitionerEntry {
  PartitionerKind kind;
  std::string_view name;  ///< value of --partitioner
  DivideAll* divide;      ///< PartitionStream for all streaming kinds

  /// Creates a kind that processes one edge at a time. Null: the kind needs all edges in memory,
  /// and memory plans use ExpansionBytes.
  MakeStreaming* stream;
  /// Bytes that an instance holds for each vertex, without replicas and votes.
  std::uint64_t stream_vertex_bytes;
};

/// Returns every kind, in the order of the help text; the first is the default.
std::span<const PartitionerEntry> AllPartitioners();

/// Returns null if there is no such kind.
const PartitionerEntry* FindPartitioner(PartitionerKind kind);

}  // namespace internal
}  // namespace rhizome
