#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/types.h"

namespace RHIZOME_API rhizome {

/// The edges to divide, in the order of the input: for an undirected graph each pair once (both of
/// its directed edges follow it). Partitioners pass over them a few times, so that they need not be
/// in memory: they may come from a file, block by block.
/// Threads: one pass at a time. Ownership: the columns, and what the scan refers to, must outlive
/// it.
class PartitionInput {
 public:
  /// Takes the next edges, as parallel columns.
  using Visit = std::function<Status(std::span<const VertexId> src, std::span<const VertexId> dst)>;
  /// Calls `visit` for all edges, block by block: the same ones in the same order whenever it is
  /// called. Stops at the first error and returns it.
  using Scan = std::function<Status(const Visit& visit)>;

  /// Edges in memory. Ids in [0, vertex_count).
  PartitionInput(std::uint64_t vertex_count, std::span<const VertexId> src,
                 std::span<const VertexId> dst);

  PartitionInput(std::uint64_t vertex_count, std::uint64_t edge_count, Scan scan);

  std::uint64_t vertex_count() const { return vertex_count_; }
  std::uint64_t edge_count() const { return edge_count_; }

  /// Errors: kInvalidArgument, there is not one of `values` for each edge.
  Status CheckColumn(std::uint64_t values) const;

  /// Errors: kInvalidArgument, as above, not 1 to kMaxPartitions partitions, or a value that is
  /// none of them.
  Status CheckPartitions(std::span<const PartitionId> partition_of_edge,
                         std::uint32_t partitions) const;

  /// Calls visit(first, src, dst) with the edges [first, first + src.size()), block by block; it
  /// returns a Status. Errors, as of ForEach: kInvalidArgument, an id out of range, columns of
  /// different lengths, not edge_count edges; those of the scan and of `visit`.
  template <typename VisitBlock>
  Status ForEachBlock(VisitBlock visit) const {
    std::uint64_t first = 0;
    Status passed = scan_([&](std::span<const VertexId> src, std::span<const VertexId> dst) {
      Status checked = CheckBlock(first, src, dst);
      if (!checked.ok()) return checked;
      Status visited = visit(first, src, dst);
      first += src.size();
      return visited;
    });
    return passed.ok() ? CheckCount(first) : passed;
  }

  /// Calls visit(edge, src, dst) for each edge, all std::uint64_t.
  template <typename VisitEdge>
  Status ForEach(VisitEdge visit) const {
    return ForEachBlock([&](std::uint64_t first, std::span<const VertexId> src,
                            std::span<const VertexId> dst) {
      for (std::size_t i = 0; i < src.size(); ++i)
        visit(first + i, static_cast<std::uint64_t>(src[i]), static_cast<std::uint64_t>(dst[i]));
      return Status::Ok();
    });
  }

 private:
  Status CheckBlock(std::uint64_t first, std::span<const VertexId> src,
                    std::span<const VertexId> dst) const;
  Status CheckCount(std::uint64_t edges) const;

  std::uint64_t vertex_count_;
  std::uint64_t edge_count_;
  Scan scan_;
};

}  // namespace rhizome
