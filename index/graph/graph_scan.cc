// Scans of vertices and edges. VertexScan merges the generation's dictionary with the new vertices
// of the delta. EdgeScan looks up the lists of a batch of rows at a time and walks over them.
// ScanEdgesById walks over the edges of one partition.

#include "rhizome/graph_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/graph/edges_by_id.h"
#include "index/topology/adjacency.h"
#include "rhizome/graph_lookup.h"
#include "storage/base/exceptions.h"

namespace rhizome {

/// Merges two sorted sequences: the generation's dictionary, and the delta's new vertices.
class VertexScan::Impl {
 public:
  explicit Impl(const Graph& graph)
      : graph_(graph.Snapshot()),
        parts_(graph_->parts()),
        delta_(graph_->delta()),
        fresh_(delta_->Merged()) {}

  std::optional<Entry> Next() {
    while (true) {
      const bool old_left = old_ < parts_->ids.sorted_count();
      const bool new_left = fresh_ != nullptr && new_ < fresh_->ids_sorted.size();
      if (!old_left && !new_left) return std::nullopt;
      Entry entry;
      const std::optional<ExternalId> old_id =
          old_left ? std::optional(parts_->ids.IdOf(parts_->ids.SortedAt(old_))) : std::nullopt;
      if (old_left && (!new_left || *old_id <= NewId(new_))) {
        entry.vertex = parts_->ids.SortedAt(old_++);
        entry.id = *old_id;
      } else {
        entry.vertex = fresh_->first_vertex + static_cast<VertexId>(fresh_->ids_sorted[new_]);
        entry.id = NewId(new_++);
      }
      // If several vertices have the same id, all except one are deleted.
      if (delta_->IsDeleted(entry.vertex) || parts_->ids.IsDeleted(entry.vertex)) continue;
      entry.type = ValueOrThrow(graph_->TypeOf(entry.vertex));
      return entry;
    }
  }

  Status Seek(const ExternalId& id) {
    const auto own = parts_->OwnKind(id);
    if (!own)
      return Status::InvalidArgument(
          fmt::format("{}: the ids of this store are integers, but \"{}\" is not an integer",
                      parts_->store->path().string(), ToString(id)));
    old_ = parts_->ids.LowerBound(*own);
    new_ = 0;
    if (fresh_ == nullptr) return Status::Ok();
    const auto at = std::lower_bound(
        fresh_->ids_sorted.begin(), fresh_->ids_sorted.end(), *own,
        [&](std::uint32_t i, const ExternalId& wanted) { return fresh_->vertex_ids[i] < wanted; });
    new_ = static_cast<std::size_t>(at - fresh_->ids_sorted.begin());
    return Status::Ok();
  }

  /// Ends the scan.
  void Stop(Status status) {
    status_ = std::move(status);
    old_ = parts_->ids.sorted_count();
    new_ = fresh_ == nullptr ? 0 : fresh_->ids_sorted.size();
  }

  const Status& status() const { return status_; }
  const GraphSnapshot& graph() const { return *graph_; }

 private:
  const ExternalId& NewId(std::size_t place) const {
    return fresh_->vertex_ids[fresh_->ids_sorted[place]];
  }

  const std::shared_ptr<const GraphSnapshot> graph_;  // a snapshot
  const std::shared_ptr<const GraphParts> parts_;
  const std::shared_ptr<const Delta> delta_;
  const std::shared_ptr<const DeltaRun> fresh_;  // null: nothing was written since the generation
  std::uint64_t old_ = 0;
  std::size_t new_ = 0;
  Status status_;
};

VertexScan::VertexScan(const Graph& graph) : impl_(std::make_unique<Impl>(graph)) {}
VertexScan::~VertexScan() = default;
VertexScan::VertexScan(VertexScan&&) noexcept = default;
VertexScan& VertexScan::operator=(VertexScan&&) noexcept = default;
std::optional<VertexScan::Entry> VertexScan::Next() {
  try {
    return impl_->Next();
  } catch (...) {
    impl_->Stop(StatusOfException());
    return std::nullopt;
  }
}
const Status& VertexScan::status() const { return impl_->status(); }
Status VertexScan::Seek(const ExternalId& id) {
  return Guarded([&] { return impl_->Seek(id); });
}
const GraphSnapshot& VertexScan::graph() const { return impl_->graph(); }

class EdgeScan::Impl {
 public:
  Impl(std::shared_ptr<const GraphSnapshot> graph, Direction direction, bool pairs_once)
      : graph_(std::move(graph)),
        parts_(graph_->parts()),
        vertices_(graph_->vertex_count()),
        direction_(direction),
        pairs_once_(pairs_once && graph_->info().symmetric) {}

  Result<std::optional<Entry>> Next() {
    while (true) {
      while (vertex_ < batch_.size() && entry_ == lists_.offsets[vertex_ + 1]) ++vertex_;
      if (vertex_ == batch_.size()) {
        if (row_ == vertices_) return std::optional<Entry>();
        RHIZOME_RETURN_IF_ERROR(Read());
        continue;
      }
      const std::size_t i = entry_++;
      Entry entry{.src = batch_[vertex_], .dst = lists_.vertices[i]};
      if (pairs_once_ && entry.src > entry.dst) continue;
      if (direction_ == Direction::kIn) std::swap(entry.src, entry.dst);
      if (!lists_.types.empty()) entry.type = lists_.types[i];
      if (!lists_.weights.empty()) entry.weight = lists_.weights[i];
      return std::optional(entry);
    }
  }

  std::uint64_t vertices_done() const { return row_ - batch_.size() + vertex_; }
  const GraphSnapshot& graph() const { return *graph_; }

 private:
  // Reads the lists of the next few rows.
  Status Read() {
    // Limits of a batch; the comment of EdgeScan documents them.
    constexpr std::size_t kMaxVertices = 1024;
    constexpr std::uint64_t kMaxEdges = 65536;
    batch_.clear();
    for (std::uint64_t edges = 0;
         row_ < vertices_ && batch_.size() < kMaxVertices && edges < kMaxEdges; ++row_) {
      const VertexId vertex = parts_->VertexAt(static_cast<Row>(row_));
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t degree, graph_->Degree(vertex, direction_));
      if (!batch_.empty() && edges + degree > kMaxEdges) break;
      edges += degree;
      batch_.push_back(vertex);
    }
    vertex_ = 0;
    entry_ = 0;
    return LookUpNeighbors(*graph_, batch_, direction_, lists_);
  }

  const std::shared_ptr<const GraphSnapshot> graph_;  // a snapshot
  const std::shared_ptr<const GraphParts> parts_;
  const std::uint64_t vertices_;
  const Direction direction_;
  const bool pairs_once_;
  std::uint64_t row_ = 0;  // the next row to read
  std::vector<VertexId> batch_;
  NeighborLists lists_;
  std::size_t vertex_ = 0;  // index in batch_
  std::size_t entry_ = 0;   // index in lists_
};

EdgeScan::EdgeScan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EdgeScan::~EdgeScan() = default;
EdgeScan::EdgeScan(EdgeScan&&) noexcept = default;
EdgeScan& EdgeScan::operator=(EdgeScan&&) noexcept = default;

Result<EdgeScan> EdgeScan::Open(const Graph& graph, const EdgeScanOptions& options) try {
  auto fixed = graph.Snapshot();
  RHIZOME_RETURN_IF_ERROR(fixed->parts()->CheckWhole("a scan of edges"));
  const Adjacency& first = fixed->partition(0);
  const Direction direction = options.direction != Direction::kBoth ? options.direction
                              : first.has(Direction::kOut)          ? Direction::kOut
                                                                    : Direction::kIn;
  if (!first.has(direction))
    return Fail(Status::InvalidArgument(
        fmt::format("{}: edges by {}-lists were requested, but this store does not keep them",
                    fixed->store().path().string(), direction == Direction::kOut ? "out" : "in")));
  return EdgeScan(std::make_unique<Impl>(std::move(fixed), direction, options.pairs_once));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::optional<EdgeScan::Entry>> EdgeScan::Next() {
  return Guarded([&] { return impl_->Next(); });
}
std::uint64_t EdgeScan::vertices_done() const { return impl_->vertices_done(); }
const GraphSnapshot& EdgeScan::graph() const { return impl_->graph(); }

namespace {

Result<const Adjacency*> PartitionOf(const GraphSnapshot& graph, std::uint32_t partition) {
  if (partition < graph.partition_count()) return &graph.partition(partition);
  return Fail(Status::InvalidArgument(fmt::format("there is no partition {}; the graph has {}",
                                                  partition, graph.partition_count())));
}

}  // namespace

Status ScanEdgesById(
    const GraphSnapshot& graph, std::uint32_t partition,
    const std::function<Status(VertexId src, VertexId dst, TypeId type)>& visit) try {
  RHIZOME_ASSIGN_OR_RETURN(const Adjacency* const edges, PartitionOf(graph, partition));
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckLoaded(partition, "a scan of its edges"));
  const bool out = edges->has(Direction::kOut);
  const Direction direction = out ? Direction::kOut : Direction::kIn;
  std::vector<LocalId> scratch;
  for (LocalId local = 0; local < edges->vertex_count(); ++local) {
    RHIZOME_ASSIGN_OR_RETURN(const auto list, edges->FetchList(local, direction, scratch));
    RHIZOME_ASSIGN_OR_RETURN(const VertexId owner, graph.VertexAt(edges->RowOf(local)));
    for (std::size_t i = 0; i < list.size(); ++i) {
      RHIZOME_ASSIGN_OR_RETURN(const VertexId other, graph.VertexAt(edges->RowOf(list[i])));
      RHIZOME_RETURN_IF_ERROR(
          visit(out ? owner : other, out ? other : owner, edges->TypeOfEntry(local, direction, i)));
    }
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Result<std::uint64_t> CountEdgesById(const GraphSnapshot& graph, std::uint32_t partition) {
  RHIZOME_ASSIGN_OR_RETURN(const Adjacency* const edges, PartitionOf(graph, partition));
  return edges->edge_count();
}

}  // namespace rhizome
