#include "index/graph/edge_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "index/generation/graph_builder.h"
#include "rhizome/graph_lookup.h"
#include "storage/array/array_facts.h"

namespace rhizome {
namespace {

constexpr std::size_t kMaxBlockEdges = std::size_t{1} << 16;

/// Returns how the values of an edge attribute are written, from its array in partition 0.
ValueForm FormOf(const GraphSnapshot& graph, const EdgeAttributeInfo& attribute) {
  const ArrayEntry* const entry =
      graph.store().manifest().FindArray(EdgeArrayName(attribute.name, 0));
  return entry != nullptr ? ValueFormOf(*entry) : ValueForm{.dtype = attribute.dtype};
}

}  // namespace

EdgeBlocks::EdgeBlocks(EdgeScan scan, std::uint64_t block_bytes)
    : scan_(std::move(scan)), attributes_(scan_.graph().edge_attributes()) {
  std::uint64_t edge_bytes = 1;
  for (const EdgeAttributeInfo& attribute : attributes_)
    edge_bytes += attribute.dim * DataTypeBytes(attribute.dtype);
  texts_.resize(attributes_.size());
  block_edges_ = std::clamp<std::uint64_t>(block_bytes / edge_bytes, 1, kMaxBlockEdges);
}

Result<EdgeBlocks> EdgeBlocks::Open(const Graph& graph, std::uint64_t block_bytes,
                                    bool with_texts) {
  RHIZOME_ASSIGN_OR_RETURN(EdgeScan scan, EdgeScan::Open(graph, {.pairs_once = true}));
  EdgeBlocks blocks(std::move(scan), block_bytes);
  for (std::size_t a = 0; with_texts && a < blocks.attributes_.size(); ++a) {
    RHIZOME_ASSIGN_OR_RETURN(
        blocks.texts_[a],
        TextValues::OpenIfAny(blocks.scan_.graph(), EdgeArrayName(blocks.attributes_[a].name, 0)));
  }
  return blocks;
}

Result<bool> EdgeBlocks::Next(Block& block) {
  block.edges.clear();
  numbers_.clear();
  while (block.edges.size() < block_edges_) {
    RHIZOME_ASSIGN_OR_RETURN(const auto edge, scan_.Next());
    if (!edge) break;
    block.edges.push_back(*edge);
    numbers_.push_back(edge->number);
  }
  block.attributes.resize(attributes_.size());
  block.texts.resize(attributes_.size());
  for (std::size_t a = 0; a < attributes_.size(); ++a) {
    const EdgeAttributeInfo& attribute = attributes_[a];
    block.attributes[a].resize(numbers_.size() * attribute.dim * DataTypeBytes(attribute.dtype));
    RHIZOME_RETURN_IF_ERROR(
        ReadEdgeRows(scan_.graph(), attribute.name, numbers_, block.attributes[a]));
    if (texts_[a] == nullptr) continue;
    std::vector<std::int64_t> codes(numbers_.size() * attribute.dim);
    std::memcpy(codes.data(), block.attributes[a].data(), block.attributes[a].size());
    RHIZOME_ASSIGN_OR_RETURN(block.texts[a], texts_[a]->TextsOf(codes));
  }
  return !block.edges.empty();
}

EdgeTable::EdgeTable(const GraphSnapshot& graph, TableForm form, bool with_attributes)
    : graph_(graph),
      form_(form),
      types_(graph.edge_types()),
      weighted_(graph.info().weighted),
      columns_({"src", "dst"}) {
  if (types_.size() < 2) types_.clear();
  if (!types_.empty()) columns_.emplace_back("type");
  if (weighted_) columns_.emplace_back("weight");
  if (!with_attributes) return;
  for (const EdgeAttributeInfo& attribute : graph.edge_attributes()) {
    const bool texts = TypeOf(attribute.attributes) == kTypeText;
    attributes_.push_back({FormOf(graph, attribute), attribute.dim, texts});
    for (std::uint64_t i = 0; i < attribute.dim; ++i)
      columns_.push_back(attribute.dim == 1 ? attribute.name
                                            : fmt::format("{}_{}", attribute.name, i));
  }
}

std::string EdgeTable::Header() const {
  return fmt::format("{}", fmt::join(columns_, std::string(1, SeparatorOf(form_))));
}

Status EdgeTable::Format(const EdgeBlocks::Block& block, std::size_t i, std::string& line) const {
  const EdgeScan::Entry& edge = block.edges[i];
  const char separator = SeparatorOf(form_);
  line.clear();
  for (const VertexId end : {edge.src, edge.dst}) {
    RHIZOME_ASSIGN_OR_RETURN(const ExternalId id, graph_.ExternalIdOf(end));
    if (const Status added = AppendField(ToString(id), form_, line); !added.ok())
      return added.WithContext("an external id");
    line += separator;
  }
  if (!types_.empty()) {
    if (const Status added = AppendField(types_[edge.type], form_, line); !added.ok())
      return added.WithContext("an edge type");
    line += separator;
  }
  if (weighted_) {
    AppendValue({.dtype = DataType::kFloat32}, std::as_bytes(std::span(&edge.weight, 1)), line);
    line += separator;
  }
  for (std::size_t a = 0; a < attributes_.size(); ++a) {
    const Attribute& attribute = attributes_[a];
    const std::size_t bytes = DataTypeBytes(attribute.form.dtype);
    const auto rows = std::span(block.attributes[a]);
    for (std::uint64_t k = i * attribute.dim; k < (i + 1) * attribute.dim; ++k) {
      if (!attribute.texts) {
        AppendValue(attribute.form, rows.subspan(k * bytes, bytes), line);
      } else if (!block.texts[a][k].empty()) {
        if (const Status added = AppendField(block.texts[a][k], form_, line); !added.ok())
          return added.WithContext("a text of an edge attribute");
      }
      line += separator;
    }
  }
  line.pop_back();
  return Status::Ok();
}

}  // namespace rhizome
