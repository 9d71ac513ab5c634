#include <fmt/format.h>

#include <algorithm>

#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/generation/graph_builder.h"
#include "index/sample/edge_times_in_memory.h"
#include "index/topology/adjacency.h"
#include "rhizome/chunk_array.h"
#include "rhizome/sampler.h"
#include "rhizome/store.h"
#include "storage/array/array_facts.h"
#include "storage/base/exceptions.h"

namespace rhizome {

namespace {

std::vector<std::int64_t> DeltaTimes(const DeltaView& view, Direction direction,
                                     std::uint32_t attribute) {
  std::vector<std::int64_t> times(view.rows(direction).size());
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = view.Attribute(direction, i, attribute);
  return times;
}

}  // namespace

Result<std::shared_ptr<const EdgeTimes>> LoadEdgeTimes(const GraphSnapshot& live,
                                                       std::string_view attribute) try {
  const std::shared_ptr<const GraphSnapshot> fixed = live.Snapshot();
  const GraphSnapshot& graph = *fixed;
  RHIZOME_RETURN_IF_ERROR(graph.parts()->CheckWhole("a table of the times of edges"));
  std::vector<std::vector<std::int64_t>> times(graph.partition_count());
  for (std::uint32_t p = 0; p < graph.partition_count(); ++p) {
    const std::string name = EdgeArrayName(attribute, p);
    auto array = graph.store().OpenArray(name);
    if (!array) {
      return Fail(array.error().WithContext(
          fmt::format("the times of edges, edge attribute '{}'", attribute)));
    }
    const ArrayEntry& entry = (*array)->entry();
    if (entry.dtype != DataType::kInt64 || entry.dim != 1) {
      return Fail(Status::InvalidArgument(fmt::format(
          "array '{}' does not hold times of edges: it must be int64 with one column", name)));
    }
    if (NullOf(entry.attributes))
      return Fail(Status::InvalidArgument(fmt::format(
          "array '{}' does not hold times of edges: some edges have none (null)", name)));
    if (entry.rows != graph.partition(p).edge_count()) {
      return Fail(Status::Corruption(fmt::format("array '{}' has {} rows for {} edges", name,
                                                 entry.rows, graph.partition(p).edge_count())));
    }
    times[p].resize(entry.rows);
    if (times[p].empty()) continue;
    RHIZOME_RETURN_IF_ERROR(
        (*array)->ReadRows(0, entry.rows, std::as_writable_bytes(std::span(times[p]))));
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto view, graph.delta_view());
  if (view == nullptr) return std::make_shared<const EdgeTimesInMemory>(std::move(times));
  const auto attributes = graph.edge_attributes();
  const auto about = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& info) { return info.name == attribute; });
  if (about == attributes.end())
    return Fail(
        Status::Corruption(fmt::format("the arrays of '{}' do not belong to edges", attribute)));
  const auto a = static_cast<std::uint32_t>(about->first_value);
  const bool symmetric = graph.info().symmetric;
  auto out = DeltaTimes(*view, Direction::kOut, a);
  auto in = symmetric ? std::vector<std::int64_t>() : DeltaTimes(*view, Direction::kIn, a);
  return std::make_shared<const EdgeTimesInMemory>(std::move(times), std::move(out), std::move(in),
                                                   symmetric);
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
