#include "gnn/infer/layer_plan.h"

#include <utility>

#include "cache/feed/row_degrees.h"

namespace rhizome {
inline namespace internal {

Status LayerPlan::CountEdges() {
  const PassDrawOptions draw = sizes_.Draw(0);
  if (draw.no_edges) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(degrees_, DegreesOfRows(graph_, draw.direction));
  if (options_.sampling.weighted_degrees) {
    RHIZOME_ASSIGN_OR_RETURN(weighted_degrees_, WeightedDegrees(graph_, draw.direction));
  }
  return Status::Ok();
}

Status LayerPlan::FindTargets(const JobControl& control) {
  std::vector<std::uint32_t> rows = *options_.targets;
  for (std::uint32_t layer = count(); layer-- > 0;) {
    orders_[layer] = RowOrder(rows, graph_.vertex_count());
    if (layer == 0 && model_.inputs() == nullptr) break;
    const std::vector<Row> targets(rows.begin(), rows.end());
    PassDrawOptions draw = sizes_.Draw(layer);
    draw.weights = false;  // only the rows are needed
    RHIZOME_ASSIGN_OR_RETURN(const PassLists lists, DrawPassLists(graph_, targets, draw, control));
    rows.assign(lists.rows.begin(), lists.rows.end());
    if (layer == 0) first_order_ = RowOrder(rows, graph_.vertex_count());
  }
  return Status::Ok();
}

Result<OrderChoice> LayerPlan::Choose(std::uint32_t layer, const JobControl& control) const {
  OrderChoice choice;
  if (options_.targets || layer + 1 == count()) return choice;
  RHIZOME_ASSIGN_OR_RETURN(choice, ChooseOrder(graph_,
                                               {.maker = Pass(layer),
                                                .reader = Pass(layer + 1),
                                                .rule = options_.tuning.layout,
                                                .memory_bytes = options_.memory.layout_bytes},
                                               control));
  return choice;
}

void LayerPlan::SetChoice(std::uint32_t layer, OrderChoice choice) {
  SetOrder(layer, std::move(choice.order));
  // Earlier counts for these layers assumed another order.
  reads_[layer] = std::move(choice.maker);
  if (layer + 1 < count()) reads_[layer + 1] = std::move(choice.reader);
}

ArrayEntry LayerPlan::Written(std::uint32_t layer) const {
  ArrayEntry entry = sizes_.Written(layer);
  if (options_.targets) entry.rows = orders_[layer].row_at().size();
  return entry;
}

ArrayEntry LayerPlan::FirstRows() const {
  ArrayEntry entry = sizes_.FirstRows();
  if (!first_order_.as_stored()) entry.rows = first_order_.row_at().size();
  return entry;
}

ArrayEntry LayerPlan::SourceOf(std::uint32_t layer) const {
  if (layer > 0) return Written(layer - 1);
  return model_.inputs() == nullptr ? features_ : FirstRows();
}

PassReads LayerPlan::Pass(std::uint32_t layer) const {
  const ArrayEntry source = SourceOf(layer);
  return {.planner = {.draw = sizes_.Draw(layer),
                      .source_chunk_rows = source.chunk_rows,
                      .stage_rows = sizes_.StageRows(source, layer),
                      .source_order = layer > 0                    ? &orders_[layer - 1]
                                      : model_.inputs() == nullptr ? nullptr
                                                                   : &first_order_,
                      .target_order = &orders_[layer],
                      .own = sizes_.Own(layer),
                      .edge_relations = model_.layer(layer).pieces().relates,
                      .degrees = degrees_},
          .reader = sizes_.Reader(source),
          .source_chunk_bytes = ChunkReader::DecodedBytes(source),
          .output_chunk_rows = Written(layer).chunk_rows,
          .block_rows = sizes_.BlockRows(layer),
          .block_edges = sizes_.BlockEdges(layer),
          .block_groups = sizes_.BlockGroups(layer)};
}

}  // namespace internal
}  // namespace rhizome
