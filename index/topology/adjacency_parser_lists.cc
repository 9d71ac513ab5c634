// Second part of AdjacencyParser: checks the adjacency lists, and the edges that in-entries refer
// to.

#include <algorithm>

#include "index/base/parallel.h"
#include "index/topology/adjacency_parser.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

// Number of vertices whose lists one task checks.
constexpr std::uint64_t kGrain = 1 << 14;

}  // namespace

// Checks the lists on all threads, kGrain vertices a task. The error of the first task that found
// one is returned, so that the result does not depend on the threads.
Status AdjacencyParser::CheckLists(const SideKinds& kinds, const Side& side) {
  if (!adjacency_.resident_) return Status::Ok();
  std::vector<Status> findings((vertices() + kGrain - 1) / kGrain);
  ParallelFor(findings.size(), [&](std::size_t task) {
    std::vector<LocalId> scratch;
    const std::uint64_t end = std::min(vertices(), (task + 1) * kGrain);
    for (std::uint64_t v = task * kGrain; v < end && findings[task].ok(); ++v)
      findings[task] = CheckList(kinds, side, static_cast<LocalId>(v), scratch);
  });
  for (Status& finding : findings) RHIZOME_RETURN_IF_ERROR(std::move(finding));
  return Status::Ok();
}

Status AdjacencyParser::CheckList(const SideKinds& kinds, const Side& side, LocalId local,
                                  std::vector<LocalId>& scratch) {
  const std::uint64_t begin = side.offsets[local];
  const std::uint64_t end = side.offsets[local + std::size_t{1}];
  if (begin != end) Touch(local);
  if (!keeps(kPartitionCompressed)) return CheckPlain(kinds, side, local);
  const Direction direction = &side == &adjacency_.out_ ? Direction::kOut : Direction::kIn;
  const auto bytes = adjacency_.CompressedBytes(local, direction);
  if (!adjacency_.DecodeList(local, direction, bytes, scratch))
    return Corrupt("{} lists: the list of local vertex {} cannot be decoded", kinds.name, local);
  if (replicated())
    for (const LocalId neighbor : scratch) Touch(neighbor);
  return Status::Ok();
}

Status AdjacencyParser::CheckPlain(const SideKinds& kinds, const Side& side, LocalId local) {
  const std::uint64_t first = side.offsets[local];
  if (side.type_lists.empty())
    return CheckRun(kinds, side, first, side.offsets[local + std::size_t{1}]);
  const std::size_t list = side.type_lists[local];
  std::uint64_t begin = first;
  for (std::uint64_t k = adjacency_.type_list_offsets_[list];
       k < adjacency_.type_list_offsets_[list + 1]; ++k) {
    RHIZOME_RETURN_IF_ERROR(CheckRun(kinds, side, begin, first + adjacency_.type_ends_[k]));
    begin = first + adjacency_.type_ends_[k];
  }
  return Status::Ok();
}

// Checks the neighbours of one vertex and type: they are in range and do not descend.
Status AdjacencyParser::CheckRun(const SideKinds& kinds, const Side& side, std::uint64_t begin,
                                 std::uint64_t end) {
  const auto list = side.neighbors.subspan(begin, end - begin);
  // The last neighbour of a sorted list is the largest. The loop has no branch, so that the
  // compiler vectorises it.
  bool falls = false;
  for (std::size_t i = 1; i < list.size(); ++i) falls |= list[i] < list[i - 1];
  if (falls || (!list.empty() && list.back() >= vertices())) return DescribeRun(kinds, list, begin);
  if (replicated())
    for (const LocalId neighbor : list) Touch(neighbor);
  return Status::Ok();
}

// Describes the first fault in the entries of one vertex and type, which begin at `begin`.
Status AdjacencyParser::DescribeRun(const SideKinds& kinds, std::span<const LocalId> list,
                                    std::uint64_t begin) const {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] >= vertices())
      return Corrupt("{} neighbours, entry {}: local id {} is beyond the {} vertices", kinds.name,
                     begin + i, list[i], vertices());
    if (i > 0 && list[i] < list[i - 1])
      return Corrupt("{} neighbours, entry {}: is not ascending", kinds.name, begin + i);
  }
  return Status::Ok();
}

// Checks that in-entries and edges are in bijection: their numbers are equal, and each in-entry
// names a different edge.
Status AdjacencyParser::ReadInEdges() {
  RHIZOME_ASSIGN_OR_RETURN(adjacency_.in_edges_,
                           ReadColumn(PartitionSection::kInEdges, header_.edges,
                                      /*limit=*/header_.edges));
  if (paged()) return Status::Ok();
  if (!adjacency_.resident_) return CheckInEdgeRange();
  std::vector<LocalId> scratch;
  for (std::uint64_t v = 0; v < vertices(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const std::uint64_t first = adjacency_.in_.offsets[v];
    const auto sources = adjacency_.ReadList(local, Direction::kIn, scratch);
    TypeId type_before = 0;
    for (std::uint64_t i = 0; i < sources.size(); ++i) {
      const TypeId type = adjacency_.TypeOfEntry(local, Direction::kIn, i);
      const bool repeats = i > 0 && type == type_before && sources[i] == sources[i - 1];
      RHIZOME_RETURN_IF_ERROR(CheckInEdge(local, first + i, sources[i], type, repeats));
      type_before = type;
    }
  }
  return Status::Ok();
}

Status AdjacencyParser::CheckInEdgeRange() const {
  for (std::uint64_t i = 0; i < header_.edges; ++i) {
    if (adjacency_.in_edges_[i] >= header_.edges)
      return Corrupt("in edges, entry {}: {} is not an edge", i, adjacency_.in_edges_[i]);
  }
  return Status::Ok();
}

Status AdjacencyParser::CheckInEdge(LocalId local, std::uint64_t position, LocalId source,
                                    TypeId type, bool repeats) const {
  const std::uint64_t edge = adjacency_.in_edges_[position];
  const auto list = adjacency_.Entries(source, Direction::kOut);
  const bool fits = edge >= list.first && edge < list.first + list.count &&
                    OutNeighborAt(source, edge - list.first) == local &&
                    adjacency_.TypeOfEntry(source, Direction::kOut, edge - list.first) == type;
  if (!fits)
    return Corrupt("in edges, entry {}: {} is not an edge between its vertices", position, edge);
  if (repeats && edge <= adjacency_.in_edges_[position - 1])
    return Corrupt("in edges, entry {}: parallel edges are not ascending", position);
  return Status::Ok();
}

LocalId AdjacencyParser::OutNeighborAt(LocalId local, std::uint64_t i) const {
  if (!keeps(kPartitionCompressed))
    return adjacency_.out_.neighbors[adjacency_.out_.offsets[local] + i];
  const auto bytes = adjacency_.CompressedBytes(local, Direction::kOut);
  const auto neighbor = adjacency_.DecodeEntry(local, Direction::kOut, bytes, i);
  RHIZOME_CHECK(neighbor.has_value());  // CheckList has decoded it
  return *neighbor;
}

}  // namespace internal
}  // namespace rhizome
