#pragma once

#include <cstdint>
#include <memory>

#include "rhizome/index/edge_spool.h"
#include "rhizome/index/ingest_options.h"
#include "rhizome/index/partition_input.h"
#include "rhizome/index/spill.h"

namespace rhizome {

/// The ends of a graph's edges, in input order, as input of a partitioner. They are in a scratch
/// file, so that they take no memory while edges are divided.
class EdgePairs {
 public:
  std::uint64_t vertex_count() const { return vertex_count_; }
  std::uint64_t edge_count() const { return ends_.edges; }
  std::uint64_t bad_lines() const { return bad_lines_; }

  /// Returns the edges. Ownership: this object must outlive the result.
  PartitionInput input() const { return InputOf(vertex_count_, ends_); }

 private:
  friend Result<EdgePairs> ReadEdgePairs(FileSystem&, const Path&, const IngestOptions&,
                                         const JobControl&);
  EdgePairs() = default;

  std::unique_ptr<SpillSpace> space_;
  EdgeSpool ends_;  // destroyed before its space
  std::uint64_t vertex_count_ = 0;
  std::uint64_t bad_lines_ = 0;
};

/// Reads `options.edges` as Ingest does (same files, columns, ids and errors), without a store. The
/// scratch file lies below `folder` and takes 8 bytes an edge.
/// Memory: 16 bytes an edge while it reads, and the dictionary of ids that are not 0..n-1.
Result<EdgePairs> ReadEdgePairs(FileSystem& fs, const Path& folder, const IngestOptions& options,
                                const JobControl& control);

}  // namespace rhizome
