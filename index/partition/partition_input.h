#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// The edges to partition, in input order. An undirected graph has each pair once; both directed
/// edges get the partition of the pair. Partitioners scan the edges a few times, so the edges need
/// not be in memory: they may come from a file, block by block.
/// Threads: one scan at a time.
/// Ownership: the columns, and the objects that the scan refers to, must outlive it.
class PartitionInput {
 public:
  /// Receives the next edges, as parallel columns.
  using Visit = std::function<Status(std::span<const VertexId> src, std::span<const VertexId> dst)>;
  /// Calls `visit` for all edges, block by block. Each scan must pass the same edges in the same
  /// order. It stops at the first error and returns it.
  using Scan = std::function<Status(const Visit& visit)>;

  /// Uses edges in memory; the spans are borrowed. Ids must be in [0, vertex_count); each pass over
  /// the edges checks that.
  PartitionInput(std::uint64_t vertex_count, std::span<const VertexId> src,
                 std::span<const VertexId> dst);

  /// Uses `edge_count` edges from a scan.
  PartitionInput(std::uint64_t vertex_count, std::uint64_t edge_count, Scan scan);

  /// Columns of edges, in input order.
  struct Columns {
    std::span<const VertexId> src;
    std::span<const VertexId> dst;

    Columns Sub(std::size_t begin, std::size_t end) const {
      return {src.subspan(begin, end - begin), dst.subspan(begin, end - begin)};
    }
  };

  /// Returns all edges if they are in memory as columns of equal length, so that several threads
  /// may read them. Otherwise they can only be scanned.
  std::optional<Columns> columns() const { return columns_; }

  std::uint64_t vertex_count() const { return vertex_count_; }
  std::uint64_t edge_count() const { return edge_count_; }

  /// Errors: kInvalidArgument, the number of values differs from the number of edges.
  Status CheckColumn(std::uint64_t values) const;

  /// Errors: kInvalidArgument, an error of CheckColumn, a number of partitions outside [1,
  /// kMaxPartitions], or a value that is not below it.
  Status CheckPartitions(std::span<const PartitionId> partition_of_edge,
                         std::uint32_t partitions) const;

  /// Checks columns that are not a scan's: the edges from `first` on.
  /// Errors: kInvalidArgument, an id out of range.
  Status Check(std::uint64_t first, const Columns& edges) const {
    return CheckBlock(first, edges.src, edges.dst);
  }

  /// Calls visit(first, src, dst) with the edges [first, first + src.size()), block by block;
  /// `visit` returns a Status. Errors (also of ForEach): kInvalidArgument, an id out of range,
  /// columns of different lengths, or a number of edges other than edge_count; any error of the
  /// scan and of `visit`.
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
  std::optional<Columns> columns_;
};

}  // namespace rhizome
