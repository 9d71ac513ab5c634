// The edges of a graph with its delta, for the next generation. Divide counts the remaining edges
// of each partition and assigns the new ones; Take returns one partition's remaining and new edges;
// TakeAll and Spill return all edges for repartitioning.

#include "index/compact/compacted_edges.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "index/base/parallel.h"
#include "index/generation/graph_builder.h"
#include "index/generation/spilled_graph.h"
#include "index/partition/owner_chooser.h"
#include "index/partition/partition_balance.h"
#include "index/partition/streaming_partitioner.h"
#include "storage/array/array_facts.h"
#include "storage/array/chunk_lengths.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {

namespace {

// The default of a partitioner (PartitionOptions::max_edge_balance).
constexpr double kMaxEdgeBalance = 1.05;

// The View of the OwnerChooser. It keeps the owner of a vertex if the owner still holds edges of
// it, or if no partition does, so that its row keeps its neighbouring rows.
struct OwnerView {
  const ReplicaSets& replicas;
  const VertexOrder& order;  // order of the generation

  template <typename Visit>
  void ForEachPartition(std::uint64_t vertex, Visit&& visit) const {
    replicas.ForEach(vertex, visit);
  }
  PartitionId Kept(std::uint64_t vertex) const {
    if (vertex >= order.size()) return kNoOwner;
    const PartitionId owner = order.OwnerOf(order.RowOf(static_cast<VertexId>(vertex)));
    return replicas.Has(vertex, owner) || replicas.Size(vertex) == 0 ? owner : kNoOwner;
  }
  PartitionId Majority(std::uint64_t) const { return kNoOwner; }
};

void AddValue(EdgeAttribute& column, std::int64_t value) {
  if (column.dtype() == DataType::kInt64)
    column.values().Add(value);
  else
    column.values().Add(std::bit_cast<double>(value));
}

}  // namespace

/// The attributes of one partition's edges, by edge id.
class CompactedEdges::Attributes {
 public:
  static Result<Attributes> Load(const GraphParts& parts, std::uint32_t p) {
    Attributes loaded;
    for (const EdgeAttributeInfo& about : parts.edge_attributes) {
      RHIZOME_ASSIGN_OR_RETURN(const auto array,
                               parts.store->OpenArray(EdgeArrayName(about.name, p)));
      const ArrayEntry& entry = array->entry();
      if (entry.rows != parts.partitions[p].edge_count() || entry.dtype != about.dtype ||
          entry.dim != about.dim)
        return Fail(
            Status::Corruption(fmt::format("array '{}' does not have {} {} for each edge",
                                           entry.name, about.dim, DataTypeName(about.dtype))));
      RHIZOME_RETURN_IF_ERROR(CheckChunkLengths(*array));  // before allocating all rows
      std::vector<std::byte>& bytes = loaded.bytes_.emplace_back(entry.rows * entry.row_bytes());
      RHIZOME_RETURN_IF_ERROR(array->ReadRows(0, entry.rows, bytes));
      loaded.about_.push_back(about);
    }
    return loaded;
  }

  void Append(LocalEdge edge, std::vector<EdgeAttribute>& columns) const {
    for (std::size_t a = 0; a < about_.size(); ++a) {
      const std::size_t bytes = about_[a].dim * DataTypeBytes(about_[a].dtype);
      const auto values = std::span(bytes_[a]).subspan(edge * bytes, bytes);
      RHIZOME_CHECK(columns[a].AddBytes(about_[a].dtype, values).ok());
    }
  }

  /// Returns the value of an attribute with one integer.
  std::int64_t Integer(std::size_t a, LocalEdge edge) const {
    std::int64_t value = 0;
    std::memcpy(&value, bytes_[a].data() + edge * sizeof(value), sizeof(value));
    return value;
  }

 private:
  std::vector<EdgeAttributeInfo> about_;
  std::vector<std::vector<std::byte>> bytes_;
};

CompactedEdges::CompactedEdges(std::shared_ptr<const GraphParts> parts,
                               std::shared_ptr<const Delta> delta,
                               std::shared_ptr<const DeltaView> view,
                               std::optional<ExpiredEdges> expired, const SchemaChange& change,
                               const JobControl& control)
    : parts_(std::move(parts)),
      delta_(std::move(delta)),
      view_(std::move(view)),
      change_(change),
      control_(control),
      partitions_(static_cast<std::uint32_t>(parts_->partitions.size())),
      replicas_(delta_->vertices(), partitions_),
      edges_(partitions_),
      vertices_(partitions_),
      new_edges_(partitions_) {
  if (!expired) return;
  const auto at = std::find_if(
      parts_->edge_attributes.begin(), parts_->edge_attributes.end(),
      [&](const EdgeAttributeInfo& about) { return about.name == expired->attribute; });
  expired_attribute_ = static_cast<std::size_t>(at - parts_->edge_attributes.begin());
  expired_before_ = expired->before;
  if (at != parts_->edge_attributes.end()) expired_null_ = NullOf(at->attributes);
}

PartitionedEdges::Columns CompactedEdges::columns() const {
  return {.weighted = weighted(),
          .attributes = parts_->edge_attributes.size() + change_.edge_attributes.size(),
          .in_memory = false};
}

Direction CompactedEdges::walked() const {
  return parts_->partitions.front().has(Direction::kOut) ? Direction::kOut : Direction::kIn;
}

// Returns the partition with its lists in memory.
Result<const Adjacency*> CompactedEdges::PartitionOf(std::uint32_t p,
                                                     std::optional<Adjacency>& loaded) const {
  if (parts_->partitions[p].resident()) return &parts_->partitions[p];
  RHIZOME_ASSIGN_OR_RETURN(loaded, LoadPartition(*parts_->store, parts_->order, p));
  return &*loaded;
}

// Calls visit(source, target, type, position), with local ids, for the remaining edges of a
// partition.
template <typename Visit>
Status CompactedEdges::ForEachBaseEdge(std::uint32_t p, const Adjacency& partition,
                                       Visit&& visit) const {
  const Direction direction = walked();
  const bool typed = parts_->info().edge_types.size() > 1;
  std::vector<LocalId> scratch;
  for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
    const auto local = static_cast<LocalId>(v);
    const Adjacency::Range all = partition.Entries(local, direction);
    if (all.count == 0) continue;
    const auto list = partition.ReadList(local, direction, scratch);
    const auto visit_range = [&](std::uint64_t first, std::uint64_t count) {
      for (std::uint64_t i = first - all.first; i < first - all.first + count; ++i) {
        const TypeId type = typed ? partition.TypeOfEntry(local, direction, i) : TypeId{0};
        const bool out = direction == Direction::kOut;
        visit(out ? local : list[i], out ? list[i] : local, type, all.first + i);
      }
    };
    const Row row = partition.RowOf(local);
    if (view_ == nullptr || !view_->Touched(row, direction)) {
      visit_range(all.first, all.count);
      continue;
    }
    std::uint64_t begin = 0;
    for (const DeltaView::Piece& piece : view_->PiecesOf(row, direction)) {
      if (piece.partition == p) visit_range(piece.first, piece.end - begin);
      begin = piece.end;
    }
  }
  return control_.CheckCancelled();
}

// Calls visit(source, target, position) for the delta's edges; for a pair of a symmetric graph only
// from the lower end.
template <typename Visit>
void CompactedEdges::ForEachNewEdge(Visit&& visit) const {
  if (view_ == nullptr) return;
  const Direction direction = walked();
  const auto neighbors = view_->rows(direction);
  view_->ForEachTouched(direction, [&](Row row) {
    const VertexId vertex = parts_->VertexAt(row);
    std::uint64_t begin = 0;
    for (const DeltaView::Piece& piece : view_->PiecesOf(row, direction)) {
      const std::uint64_t count = piece.end - std::exchange(begin, piece.end);
      if (piece.partition != view_->partition()) continue;
      for (std::uint64_t at = piece.first; at < piece.first + count; ++at) {
        const VertexId neighbor = parts_->VertexAt(neighbors[at]);
        if (delta_->symmetric() && neighbor < vertex) continue;
        if (direction == Direction::kOut) {
          visit(vertex, neighbor, at);
        } else {
          visit(neighbor, vertex, at);
        }
      }
    }
  });
}

bool CompactedEdges::NewExpired(std::uint64_t position) const {
  if (!expired_attribute_) return false;
  const std::uint64_t value = parts_->edge_attributes[*expired_attribute_].first_value;
  return IsExpired(view_->Attribute(walked(), position, static_cast<std::uint32_t>(value)));
}

bool CompactedEdges::BaseExpired(const Attributes& attributes, std::uint64_t position) const {
  return expired_attribute_ && IsExpired(attributes.Integer(*expired_attribute_, position));
}

// An edge without a time does not expire.
bool CompactedEdges::IsExpired(std::int64_t value) const {
  return value < expired_before_ && value != expired_null_;
}

// Returns the number of remaining edges of a vertex's list in partition p. It needs only the
// lengths of lists and pieces.
std::uint64_t CompactedEdges::LeftOf(std::uint32_t p, const Adjacency& partition, LocalId local,
                                     Direction direction) const {
  const Row row = partition.RowOf(local);
  if (view_ == nullptr || !view_->Touched(row, direction))
    return partition.Entries(local, direction).count;
  std::uint64_t left = 0;
  std::uint64_t begin = 0;
  for (const DeltaView::Piece& piece : view_->PiecesOf(row, direction)) {
    if (piece.partition == p) left += piece.end - begin;
    begin = piece.end;
  }
  return left;
}

// Counts by the lengths of lists if both directions are stored. Otherwise, or if edges expire, it
// counts edge by edge.
Status CompactedEdges::CountLeft(std::uint32_t p, const Adjacency& partition,
                                 LocalDegrees& degrees) const {
  degrees.out.assign(partition.vertex_count(), 0);
  degrees.in.assign(partition.vertex_count(), 0);
  if (!expired_attribute_ && (partition.symmetric() || partition.has(Direction::kBoth))) {
    for (std::size_t v = 0; v < degrees.out.size(); ++v) {
      const auto local = static_cast<LocalId>(v);
      degrees.out[v] = LeftOf(p, partition, local, Direction::kOut);
      degrees.in[v] = LeftOf(p, partition, local, Direction::kIn);
    }
    return control_.CheckCancelled();
  }
  Attributes attributes;
  if (expired_attribute_) {
    RHIZOME_ASSIGN_OR_RETURN(attributes, Attributes::Load(*parts_, p));
  }
  return ForEachBaseEdge(p, partition,
                         [&](LocalId src, LocalId dst, TypeId, std::uint64_t position) {
                           if (BaseExpired(attributes, position)) return;
                           ++degrees.out[src];
                           ++degrees.in[dst];
                         });
}

// Runs for several partitions at once, hence the atomic counters.
Status CompactedEdges::CountBase(std::uint32_t p, EdgeDivision& division) {
  std::optional<Adjacency> loaded;
  RHIZOME_ASSIGN_OR_RETURN(const Adjacency* const partition, PartitionOf(p, loaded));
  LocalDegrees degrees;
  RHIZOME_RETURN_IF_ERROR(CountLeft(p, *partition, degrees));
  for (std::size_t v = 0; v < degrees.out.size(); ++v) {
    if (degrees.out[v] + degrees.in[v] == 0) continue;
    const auto vertex =
        static_cast<std::size_t>(parts_->order.VertexAt(partition->RowOf(static_cast<LocalId>(v))));
    division.out_degree.AddShared(vertex, degrees.out[v], degrees_mutex_);
    division.in_degree.AddShared(vertex, degrees.in[v], degrees_mutex_);
    edges_[p] += degrees.out[v];
    if (replicas_.AddShared(vertex, static_cast<PartitionId>(p))) ++vertices_[p];
  }
  return Status::Ok();
}

void CompactedEdges::Count(EdgeDivision& division, VertexId src, VertexId dst, PartitionId p) {
  division.out_degree.Increment(static_cast<std::uint64_t>(src));
  division.in_degree.Increment(static_cast<std::uint64_t>(dst));
  ++edges_[p];
  for (const VertexId vertex : {src, dst})
    if (replicas_.Add(static_cast<std::uint64_t>(vertex), p)) ++vertices_[p];
}

// Returns the partition that owns a vertex's row if no partition holds an edge of it yet; otherwise
// kNoOwner.
PartitionId CompactedEdges::HomeOf(VertexId vertex) const {
  const auto v = static_cast<std::uint64_t>(vertex);
  if (v >= parts_->order.size() || replicas_.Size(v) != 0) return kNoOwner;
  return parts_->order.OwnerOf(parts_->order.RowOf(vertex));
}

// Applies the rule of HDRF (Petroni et al., CIKM 2015) without its degrees: it prefers a partition
// that holds both ends, then one that holds one end. Ties go to the owner of an end without edges,
// whose row then need not move, and then to the partition with the fewest edges. Full partitions
// receive no more edges.
PartitionId CompactedEdges::Choose(VertexId src, VertexId dst, std::uint64_t cap) const {
  const auto [least, most] = std::minmax_element(edges_.begin(), edges_.end());
  const double spread = static_cast<double>(*most - *least) + 1;
  const PartitionId src_home = HomeOf(src);
  const PartitionId dst_home = HomeOf(dst);
  PartitionId best = static_cast<PartitionId>(least - edges_.begin());
  double best_score = -1;
  for (std::uint32_t p = 0; p < partitions_; ++p) {
    if (edges_[p] >= cap) continue;
    const auto partition = static_cast<PartitionId>(p);
    const double score = (replicas_.Has(static_cast<std::uint64_t>(src), partition) ? 1 : 0) +
                         (replicas_.Has(static_cast<std::uint64_t>(dst), partition) ? 1 : 0) +
                         (src_home == partition || dst_home == partition ? 0.5 : 0) +
                         0.5 * static_cast<double>(*most - edges_[p]) / spread;
    if (score <= best_score) continue;
    best_score = score;
    best = partition;
  }
  return best;
}

void CompactedEdges::DivideNew(EdgeDivision& division) {
  std::uint64_t total = 0;
  for (const std::uint64_t edges : edges_) total += edges;
  ForEachNewEdge([&](VertexId, VertexId, std::uint64_t) { ++total; });
  const std::uint64_t cap = EdgeCap(total, partitions_, kMaxEdgeBalance);
  ForEachNewEdge([&](VertexId src, VertexId dst, std::uint64_t position) {
    if (NewExpired(position)) return;
    const PartitionId p = Choose(src, dst, cap);
    new_edges_[p].push_back({src, dst, position});
    Count(division, src, dst, p);
    if (!delta_->symmetric() || src == dst) return;
    new_edges_[p].push_back({dst, src, position});
    Count(division, dst, src, p);
  });
}

// Partitions the edges:
// 1. counts the remaining edges of each partition, in parallel;
// 2. assigns the new edges to partitions (DivideNew);
// 3. measures the result and chooses the owners.
Result<EdgeDivision> CompactedEdges::Divide() {
  EdgeDivision division;
  division.kind =
      ParseStoredPartitioner(parts_->info().partitioner).value_or(PartitionerKind::kRefined);
  division.out_degree = Degrees(delta_->vertices());
  division.in_degree = Degrees(delta_->vertices());
  std::vector<Status> failed(partitions_);
  ParallelFor(partitions_, [&](std::size_t p) {
    failed[p] = CountBase(static_cast<std::uint32_t>(p), division);
  });
  for (const Status& status : failed) RHIZOME_RETURN_IF_ERROR(status);
  DivideNew(division);
  for (const std::uint64_t edges : edges_) {
    division.edges += edges;
    division.largest_partition = std::max(division.largest_partition, edges);
  }
  division.metrics = MetricsOf(replicas_, edges_, vertices_);
  division.owners =
      OwnerChooser(OwnerView{replicas_, parts_->order}, delta_->vertices(), partitions_).Choose();
  division.most_vertices = MostVertices(replicas_, division.owners, partitions_);
  return division;
}

Status CompactedEdges::Arrange(const VertexOrder& order) {
  order_ = &order;
  return Status::Ok();
}

Result<std::vector<std::uint8_t>> CompactedEdges::PartitionSets() {
  const std::size_t bytes = PartitionSetBytes(partitions_);
  std::vector<std::uint8_t> sets(delta_->vertices() * bytes);
  for (std::uint64_t row = 0; row < delta_->vertices(); ++row)
    CopySet(replicas_, static_cast<std::uint64_t>(order_->VertexAt(static_cast<Row>(row))),
            std::span(sets).subspan(row * bytes, bytes));
  replicas_ = ReplicaSets(0, partitions_);
  return sets;
}

void CompactedEdges::AppendNew(Direction direction, std::uint64_t position,
                               std::vector<EdgeAttribute>& columns) const {
  for (std::size_t a = 0; a < parts_->edge_attributes.size(); ++a) {
    const EdgeAttributeInfo& about = parts_->edge_attributes[a];
    for (std::uint64_t i = 0; i < about.dim; ++i)
      AddValue(columns[a], view_->Attribute(direction, position,
                                            static_cast<std::uint32_t>(about.first_value + i)));
  }
  AppendAdded(columns);
}

// Appends the values of one edge to the columns that the change of the schema adds, which are the
// last ones.
void CompactedEdges::AppendAdded(std::vector<EdgeAttribute>& columns) const {
  for (std::size_t a = parts_->edge_attributes.size(); a < columns.size(); ++a)
    for (std::uint64_t i = 0; i < columns[a].dim(); ++i) columns[a].Add(std::int64_t{0});
}

float CompactedEdges::NewWeight(Direction direction, std::uint64_t position) const {
  return parts_->info().weighted ? view_->weights(direction)[position] : 1;
}

Result<PartitionEdgeList> CompactedEdges::Take(std::uint32_t p) {
  std::optional<Adjacency> loaded;
  RHIZOME_ASSIGN_OR_RETURN(const Adjacency* const partition, PartitionOf(p, loaded));
  RHIZOME_ASSIGN_OR_RETURN(const Attributes attributes, Attributes::Load(*parts_, p));
  const bool typed = delta_->edge_types().size() > 1;
  const bool weighted = this->weighted();
  const bool has_weights = parts_->info().weighted;
  const Direction direction = walked();

  PartitionEdgeList part;
  part.attributes = EmptyAttributes();
  EdgesOfPartition& edges = part.edges;
  edges.src.reserve(edges_[p]);
  edges.dst.reserve(edges_[p]);
  if (typed) edges.type.reserve(edges_[p]);
  if (weighted) edges.weight.reserve(edges_[p]);
  std::vector<Row> row_of(partition->vertex_count());
  for (std::size_t v = 0; v < row_of.size(); ++v)
    row_of[v] = order_->RowOf(parts_->order.VertexAt(partition->RowOf(static_cast<LocalId>(v))));
  RHIZOME_RETURN_IF_ERROR(ForEachBaseEdge(
      p, *partition, [&](LocalId src, LocalId dst, TypeId type, std::uint64_t position) {
        if (BaseExpired(attributes, position)) return;
        edges.src.push_back(row_of[src]);
        edges.dst.push_back(row_of[dst]);
        if (typed) edges.type.push_back(type);
        if (weighted)
          edges.weight.push_back(has_weights ? partition->Weight(direction, position) : 1);
        attributes.Append(position, part.attributes);
        AppendAdded(part.attributes);
      }));
  for (const Edge& edge : new_edges_[p]) {
    edges.src.push_back(order_->RowOf(edge.src));
    edges.dst.push_back(order_->RowOf(edge.dst));
    if (typed) edges.type.push_back(view_->types(direction)[edge.position]);
    if (weighted) edges.weight.push_back(NewWeight(direction, edge.position));
    AppendNew(direction, edge.position, part.attributes);
  }
  new_edges_[p] = {};
  return part;
}

std::vector<EdgeAttribute> CompactedEdges::EmptyAttributes() const {
  std::vector<EdgeAttribute> columns;
  for (const EdgeAttributeInfo& about : parts_->edge_attributes) {
    columns.emplace_back(about.name, about.dtype, about.dim);
    columns.back().attributes = about.attributes;
    if (const auto null = NullOf(about.attributes)) columns.back().values().SetNull(*null);
  }
  for (const EdgeAttributeSchema& added : change_.edge_attributes)
    columns.emplace_back(added.name, added.dtype, added.dim).attributes = added.attributes;
  return columns;
}

// Appends all edges to `all` and calls added() after each.
template <typename Added>
Status CompactedEdges::AppendAll(EdgeList& all, Added&& added) const {
  const bool typed = delta_->edge_types().size() > 1;
  const bool weighted = this->weighted();
  const bool has_weights = parts_->info().weighted;
  const bool symmetric = delta_->symmetric();
  const Direction direction = walked();
  all.attributes = EmptyAttributes();
  Status failed;
  for (std::uint32_t p = 0; p < partitions_; ++p) {
    std::optional<Adjacency> loaded;
    RHIZOME_ASSIGN_OR_RETURN(const Adjacency* const partition, PartitionOf(p, loaded));
    RHIZOME_ASSIGN_OR_RETURN(const Attributes attributes, Attributes::Load(*parts_, p));
    RHIZOME_RETURN_IF_ERROR(ForEachBaseEdge(
        p, *partition, [&](LocalId from, LocalId to, TypeId type, std::uint64_t position) {
          const VertexId src = parts_->order.VertexAt(partition->RowOf(from));
          const VertexId dst = parts_->order.VertexAt(partition->RowOf(to));
          if ((symmetric && src > dst) || !failed.ok()) return;
          if (BaseExpired(attributes, position)) return;
          all.src.push_back(src);
          all.dst.push_back(dst);
          if (typed) all.type.push_back(type);
          if (weighted)
            all.weight.push_back(has_weights ? partition->Weight(direction, position) : 1);
          attributes.Append(position, all.attributes);
          AppendAdded(all.attributes);
          failed = added();
        }));
    RHIZOME_RETURN_IF_ERROR(failed);
  }
  ForEachNewEdge([&](VertexId src, VertexId dst, std::uint64_t position) {
    if (NewExpired(position) || !failed.ok()) return;
    all.src.push_back(src);
    all.dst.push_back(dst);
    if (typed) all.type.push_back(view_->types(direction)[position]);
    if (weighted) all.weight.push_back(NewWeight(direction, position));
    AppendNew(direction, position, all.attributes);
    failed = added();
  });
  return failed;
}

Result<EdgeList> CompactedEdges::TakeAll() const {
  EdgeList all;
  RHIZOME_RETURN_IF_ERROR(AppendAll(all, [] { return Status::Ok(); }));
  return all;
}

Status CompactedEdges::Spill(SpilledGraph& spilled) const {
  spilled.typed = delta_->edge_types().size() > 1;
  spilled.weighted = weighted();
  spilled.attributes = EmptyAttributes();
  std::size_t edge_bytes = 18 + (spilled.typed ? 2 : 0) + (spilled.weighted ? 4 : 0);
  for (const EdgeAttribute& attribute : spilled.attributes) edge_bytes += attribute.row_bytes();
  const std::size_t block_bytes = SpillBlockBytes(spilled.memory_bytes / 16, 1);
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolWriter writer,
                           EdgeSpoolWriter::Create(*spilled.space, block_bytes / edge_bytes));
  EdgeList& block = writer.edges;
  RHIZOME_RETURN_IF_ERROR(AppendAll(block, [&] { return writer.FlushIfFull(block.size()); }));
  RHIZOME_ASSIGN_OR_RETURN(spilled.ends, writer.Finish(block.size()));
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
