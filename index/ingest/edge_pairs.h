#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "index/partition/partition_input.h"
#include "rhizome/export.h"
#include "rhizome/ingest.h"

namespace RHIZOME_API rhizome {

/// The ends of a graph's edges, in input order, as the input of a partitioner. They are in a
/// scratch file, so that they need no memory while the edges are partitioned.
class EdgePairs {
 public:
  EdgePairs(EdgePairs&&) noexcept;
  EdgePairs& operator=(EdgePairs&&) noexcept;
  ~EdgePairs();

  std::uint64_t vertex_count() const;
  std::uint64_t edge_count() const;
  std::uint64_t bad_lines() const;
  const std::vector<std::string>& notes() const;  ///< as IngestReport::notes

  /// Returns whether the ids of the files are the numbers of the vertices, 0..n-1.
  bool ids_are_numbers() const;

  /// Returns the edges. Ownership: this object must outlive the result.
  PartitionInput input() const;

 private:
  friend Result<EdgePairs> ReadEdgePairs(FileSystem&, const Path&, const IngestOptions&,
                                         const JobControl&);
  class Impl;
  explicit EdgePairs(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Reads `options.edges` as Ingest does (same files, columns, ids and errors), without a store. The
/// scratch file is created below `folder` and takes 8 bytes an edge.
/// Memory: 16 bytes an edge during the read, and the dictionary of ids unless they are 0..n-1.
Result<EdgePairs> ReadEdgePairs(FileSystem& fs, const Path& folder, const IngestOptions& options,
                                const JobControl& control);

}  // namespace rhizome
