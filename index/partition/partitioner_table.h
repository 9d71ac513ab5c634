#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/index/partition_options.h"
#include "rhizome/index/streaming_partitioner.h"

namespace rhizome::inline internal {

/// Makes the StreamingPartitioner of a kind. `options` are valid.
using MakeStreaming = std::unique_ptr<StreamingPartitioner>(std::uint64_t vertex_count,
                                                            std::uint64_t edge_count,
                                                            const PartitionOptions& options);

/// Divides edges that are all there, into several partitions. `input` and `options` are valid.
using DivideEdges = Result<std::vector<PartitionId>>(const PartitionInput& input,
                                                     const PartitionOptions& options,
                                                     const JobControl& control);

/// All that the engine knows of a kind of partitioner: a row of the table in partitioner.cc.
struct PartitionerEntry {
  PartitionerKind kind;
  std::string_view name;  ///< the word of --partitioner
  DivideEdges* divide;    ///< PartitionStream for all that stream

  /// Makes a kind that takes one edge at a time. Null: the kind needs all edges in memory, for
  /// which plans count ExpansionBytes.
  MakeStreaming* stream;
  /// Bytes that an instance holds for each vertex besides replicas and votes.
  std::uint64_t stream_vertex_bytes;
};

/// Every kind, in the order in which help lists them; the first is the default.
std::span<const PartitionerEntry> AllPartitioners();

/// Null: there is none of this number.
const PartitionerEntry* FindPartitioner(PartitionerKind kind);

}  // namespace rhizome::inline internal
