#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "index/topology/adjacency.h"
#include "index/topology/adjacency_format.h"

namespace rhizome {
inline namespace internal {

/// Parses and checks a partition file field by field, in one pass over each section, with the lists
/// in parallel. Every index is compared with its bound before it is used, so any bytes are safe to
/// parse. If the lists are left on disk, only the sections that describe them are checked. If the
/// file is paged, only the header is: the columns are bounded by their limits (Column::Read), and
/// Adjacency checks what it reads.
class AdjacencyParser {
 public:
  AdjacencyParser(SectionFile file, const VertexOrder& order) : order_(order) {
    adjacency_.file_ = std::move(file);
  }

  Status Run(std::uint32_t partition, std::uint32_t partitions, std::uint32_t edge_types);
  /// Reads only the header, for a partition that is not loaded.
  Status RunHeader(std::uint32_t partition, std::uint32_t partitions, std::uint32_t edge_types,
                   bool resident);
  Adjacency Take() { return std::move(adjacency_); }

 private:
  using Side = Adjacency::Side;

  Status ReadHeader(std::uint32_t partition, std::uint32_t partitions, std::uint32_t edge_types);
  Status CheckFlags() const;
  Status CheckSections() const;
  void TakeHeader();
  Status ReadRows();
  Status CheckRows(const Column& rows, const char* field, bool owned) const;
  Status ReadSide(const SideKinds& kinds, Side& side);
  Status ReadLists(const SideKinds& kinds, Side& side);
  Status ReadTypeLists();
  Status CheckTypeLists(const SideKinds& kinds, const Side& side, std::uint64_t& seen) const;
  Status CheckLists(const SideKinds& kinds, const Side& side);
  Status CheckList(const SideKinds& kinds, const Side& side, LocalId local,
                   std::vector<LocalId>& scratch);
  Status CheckPlain(const SideKinds& kinds, const Side& side, LocalId local);
  Status CheckRun(const SideKinds& kinds, const Side& side, std::uint64_t begin, std::uint64_t end);
  Status DescribeRun(const SideKinds& kinds, std::span<const LocalId> list,
                     std::uint64_t begin) const;
  Status ReadInEdges();
  Status CheckInEdgeRange() const;
  Status CheckInEdge(LocalId local, std::uint64_t position, LocalId source, TypeId type,
                     bool repeats) const;
  LocalId OutNeighborAt(LocalId local, std::uint64_t i) const;
  Status ReadWeights();
  Status ReadBoundary();
  Status ReadDegrees(const SideKinds& kinds, PatchedColumn& degrees);
  Status CheckSets() const;

  bool keeps(std::uint32_t flag) const { return (header_.flags & flag) != 0; }
  bool keeps_in_edges() const {
    return keeps(kPartitionOut) && keeps(kPartitionIn) &&
           (keeps(kPartitionWeighted) || keeps(kPartitionAttributed));
  }
  std::uint64_t vertices() const { return header_.owned + header_.mirrors; }
  /// Returns whether the partition has mirrors or boundary vertices. Each of them must have an edge
  /// here.
  bool replicated() const { return header_.mirrors + header_.boundary_owned > 0; }
  void Touch(LocalId local) { touched_.SetShared(local); }
  bool paged() const { return adjacency_.file_.paged(); }
  Result<Column> ReadColumn(PartitionSection kind, std::uint64_t count,
                            std::uint64_t limit = UINT64_MAX) const {
    return Column::Read(adjacency_.file_, Kind(kind), count, limit);
  }

  template <typename... Args>
  Status Corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return Status::Corruption(fmt::format("{}: {}", adjacency_.file_.path().string(),
                                          fmt::format(format, std::forward<Args>(args)...)));
  }

  const VertexOrder& order_;
  Adjacency adjacency_;
  PartitionHeader header_{};
  RankBitmap touched_;  // local vertices with at least one edge; used if replicated()
};

}  // namespace internal
}  // namespace rhizome
