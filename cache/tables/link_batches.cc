#include "cache/tables/link_batches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {

std::uint32_t LinkBatch::LocalOf(Row row) const {
  const auto found = std::lower_bound(rows.begin(), rows.end(), row);
  RHIZOME_DCHECK(found != rows.end() && *found == row);
  return static_cast<std::uint32_t>(found - rows.begin());
}

namespace {

constexpr std::uint32_t kSingleStream = 3;  // of random numbers; NegativePools has others

}  // namespace

LinkBatches::LinkBatches(GraphEdges edges, NegativeVertices vertices, PartitionTour tour,
                         TableOrder order, const LinkBatchOptions& options)
    : options_(options),
      edges_(std::move(edges)),
      vertices_(std::move(vertices)),
      tour_(std::move(tour)),
      order_(std::move(order)),
      pools_(vertices_,
             {.negatives = options.negatives, .mixture = options.mixture, .seed = options.seed}),
      single_(vertices_, options.mixture),
      vertex_types_(edges_.graph().vertex_types().size()) {
  SetEpoch(0);
  batches_ = epoch_order_->batches();
}

Result<std::unique_ptr<LinkBatches>> LinkBatches::Of(std::shared_ptr<const GraphSnapshot> graph,
                                                     const LinkBatchOptions& options) try {
  RHIZOME_CHECK(options.batch_size >= 1);
  RHIZOME_ASSIGN_OR_RETURN(GraphEdges edges, GraphEdges::Of(graph));
  RHIZOME_ASSIGN_OR_RETURN(NegativeVertices vertices, NegativeVertices::Of(graph));
  RHIZOME_ASSIGN_OR_RETURN(PartitionTour tour, PartitionTour::Of(*graph));
  RHIZOME_ASSIGN_OR_RETURN(TableOrder order, TableOrder::Of(*graph, tour.order()));
  return std::unique_ptr<LinkBatches>(new LinkBatches(std::move(edges), std::move(vertices),
                                                      std::move(tour), std::move(order), options));
} catch (...) {
  return Fail(StatusOfException());
}

/// The tour of the epoch, then the delta.
void LinkBatches::SetEpoch(std::uint64_t epoch) {
  if (epoch_order_ != nullptr && epoch_ == epoch) return;
  std::vector<std::uint32_t> groups = tour_.InEpoch(options_.seed, epoch);
  groups.push_back(edges_.graph().partition_count());
  epoch_order_ = std::make_unique<EpochOrder>(std::move(groups), edges_.counts(),
                                              options_.batch_size, options_.seed, epoch);
  epoch_ = epoch;
}

std::uint64_t LinkBatches::max_rows() const {
  const std::uint64_t types = std::max<std::uint64_t>(1, vertex_types_);
  const std::uint64_t lists = options_.per_edge ? options_.batch_size : types;
  return std::min(order_.size(), 2 * options_.batch_size + 2 * lists * options_.negatives);
}

Status LinkBatches::Make(std::uint64_t epoch, std::uint64_t number, LinkBatch& batch) {
  SetEpoch(epoch);
  batch.place = {
      .batch = epoch_order_->At(number), .number = number, .batches = batches_, .epoch = epoch};
  epoch_order_->Positions(batch.place.batch, positions_);
  RHIZOME_RETURN_IF_ERROR(edges_.Read(batch.place.batch.group, positions_, batch.edges));
  for (std::uint32_t side = 0; side < 2; ++side)
    RHIZOME_RETURN_IF_ERROR(Guarded([&] { return DrawNegatives(side, batch); }));
  return Guarded([&] {
    CollectRows(batch);
    return Status::Ok();
  });
}

Status LinkBatches::DrawNegatives(std::uint32_t side, LinkBatch& batch) {
  std::vector<TypedNegatives>& negatives = batch.negatives[side];
  negatives.clear();
  if (options_.negatives == 0) return Status::Ok();
  const auto end_of = [&](const VertexPair& edge) { return side == 0 ? edge.src : edge.dst; };
  const auto type_of = [&](VertexId vertex) {
    return vertex_types_ <= 1 ? TypeId{0} : ValueOrThrow(edges_.graph().TypeOf(vertex));
  };
  std::set<TypeId> types;
  for (const VertexPair& edge : batch.edges) types.insert(type_of(end_of(edge)));
  for (const TypeId type : types) {
    ends_.clear();
    for (const VertexPair& edge : batch.edges)
      if (type_of(end_of(edge)) == type) ends_.push_back(end_of(edge));
    TypedNegatives& drawn = negatives.emplace_back(TypedNegatives{.type = type, .vertices = {}});
    if (!options_.per_edge) {
      RHIZOME_RETURN_IF_ERROR(pools_.Draw(batch.place, side, type, ends_, drawn.vertices));
      continue;
    }
    CounterRandom random({.seed = options_.seed,
                          .batch = batch.place.epoch,
                          .vertex = batch.place.number,
                          .hop = kSingleStream,
                          .subgraph = std::uint64_t{side} << 32 | type});
    RHIZOME_RETURN_IF_ERROR(single_.Draw(batch.place.batch.group, type,
                                         ends_.size() * options_.negatives, ends_, random,
                                         drawn.vertices));
  }
  return Status::Ok();
}

void LinkBatches::CollectRows(LinkBatch& batch) const {
  batch.rows.clear();
  const auto add = [&](VertexId vertex) { batch.rows.push_back(order_.RowOf(vertex)); };
  for (const VertexPair& edge : batch.edges) {
    add(edge.src);
    add(edge.dst);
  }
  for (const auto& side : batch.negatives)
    for (const TypedNegatives& typed : side)
      std::for_each(typed.vertices.begin(), typed.vertices.end(), add);
  std::sort(batch.rows.begin(), batch.rows.end());
  batch.rows.erase(std::unique(batch.rows.begin(), batch.rows.end()), batch.rows.end());
}

}  // namespace internal
}  // namespace rhizome
