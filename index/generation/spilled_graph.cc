#include "index/generation/spilled_graph.h"

#include <utility>

namespace rhizome {
inline namespace internal {

Result<SpilledEdgeReader> SpilledEdgeReader::Open(const SpilledGraph& graph) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader ends, EdgeSpoolReader::Open(graph.ends));
  SpilledEdgeReader reader(graph, std::move(ends));
  if (graph.columns) {
    RHIZOME_ASSIGN_OR_RETURN(EdgeSpoolReader columns, EdgeSpoolReader::Open(*graph.columns));
    reader.columns_.emplace(std::move(columns));
  }
  return reader;
}

Result<bool> SpilledEdgeReader::Next(EdgeList& edges) {
  if (!columns_) return ends_.Next(edges);
  if (taken_ == block_.size()) {
    taken_ = 0;
    RHIZOME_ASSIGN_OR_RETURN(const bool more, ends_.Next(block_));
    if (!more) ClearEdges(block_);
  }
  RHIZOME_ASSIGN_OR_RETURN(const bool more, columns_->Next(beside_));
  if (!more) ClearEdges(beside_);
  const std::size_t count = !beside_.type.empty()         ? beside_.type.size()
                            : !beside_.weight.empty()     ? beside_.weight.size()
                            : !beside_.attributes.empty() ? beside_.attributes[0].size()
                                                          : 0;
  if (more == block_.src.empty() || (more && count == 0) || count > block_.size() - taken_)
    return Fail(Status::Corruption("spilled edges and their columns have different lengths"));
  if (!more) return false;
  const auto take = [&](const std::vector<VertexId>& from, std::vector<VertexId>& to) {
    const auto first = from.begin() + static_cast<std::ptrdiff_t>(taken_);
    to.assign(first, first + static_cast<std::ptrdiff_t>(count));
  };
  take(block_.src, edges.src);
  take(block_.dst, edges.dst);
  taken_ += count;
  return TakeColumns(edges);
}

Result<bool> SpilledEdgeReader::TakeColumns(EdgeList& edges) {
  const Status apart =
      Status::Corruption("the columns of spilled edges do not have one value for each edge");
  edges.type.clear();
  edges.weight.clear();
  if (graph_->typed) edges.type.swap(beside_.type);
  if (graph_->weighted) edges.weight.swap(beside_.weight);
  edges.attributes.resize(graph_->attributes.size());
  if (beside_.attributes.size() != edges.attributes.size()) return Fail(apart);
  for (std::size_t i = 0; i < edges.attributes.size(); ++i) {
    const EdgeAttribute& column = beside_.attributes[i];
    edges.attributes[i] = graph_->attributes[i].Empty();
    if (column.dim() != graph_->attributes[i].dim() || column.size() != edges.size())
      return Fail(apart);
    RHIZOME_RETURN_IF_ERROR(edges.attributes[i].AddAll(column));
  }
  if ((graph_->typed && edges.type.size() != edges.size()) ||
      (graph_->weighted && edges.weight.size() != edges.size()))
    return Fail(apart);
  return true;
}

}  // namespace internal
}  // namespace rhizome
