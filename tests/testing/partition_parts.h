#pragma once

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "index/base/memory_sink.h"
#include "index/generation/graph_builder.h"
#include "index/topology/adjacency.h"
#include "index/topology/vertex_order.h"
#include "testing/graph_model.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// A graph divided into partition files in memory, without store, partitioner or builder. Tests of
/// the partition file compare it with the model.
struct PartitionParts {
  std::uint32_t partitions = 1;
  std::uint32_t edge_types = 1;
  std::optional<VertexOrder> order;
  std::vector<std::uint64_t> sets;  ///< by row, one word each (at most 64 partitions)
  std::vector<std::vector<std::byte>> files;

  Result<Adjacency> Parse(std::uint32_t p, std::vector<std::byte> bytes) const {
    auto file =
        SectionFile::Parse(std::move(bytes), PartitionPath(p), FileKind::kPartition, StoreId{});
    if (!file) return Fail(file.error());
    return Adjacency::Parse(*std::move(file), *order, p, partitions, edge_types);
  }
  std::vector<Adjacency> ParseAll() const {
    std::vector<Adjacency> parsed;
    for (std::uint32_t p = 0; p < partitions; ++p) {
      auto adjacency = Parse(p, files[p]);
      EXPECT_OK(adjacency);
      if (adjacency) parsed.push_back(*std::move(adjacency));
    }
    return parsed;
  }
};

struct DivideOptions {
  std::uint32_t partitions = 1;
  bool grouped = true;
  Direction directions = Direction::kBoth;
  TopologyCodec codec = TopologyCodec::kNone;
  bool attributed = false;  ///< sets the flag for edge attributes
};

/// Encodes the order of `vertex_of_row` and parses it.
inline VertexOrder MakeOrder(const std::vector<VertexId>& vertex_of_row,
                             const std::vector<PartitionId>& owner, const std::vector<TypeId>& type,
                             std::uint32_t partitions, std::uint32_t types) {
  MemorySink sink;
  EXPECT_OK(VertexOrder::Write(sink, StoreId{}, {vertex_of_row, owner, type, partitions, types}));
  auto file = SectionFile::Parse(sink.Take(), kOrderPath, FileKind::kOrder, StoreId{});
  return *VertexOrder::Parse(*std::move(file), vertex_of_row.size(), partitions, types);
}

/// Divides a graph at random, mostly by source, so that there are interior vertices, hubs in
/// several partitions, and partitions without an edge.
inline PartitionParts Divide(std::mt19937_64& rng, const GraphInput& input,
                             const DivideOptions& options) {
  const GraphModel model(input);
  const auto n = static_cast<std::size_t>(input.vertex_count);
  std::vector<std::uint64_t> set_of_vertex(n, 0);
  std::vector<std::vector<ModelEdge>> parts(options.partitions);
  for (std::size_t e = 0; e < input.edges.size(); ++e) {
    const std::uint64_t key =
        rng() % 4 == 0 ? rng() : static_cast<std::uint64_t>(input.edges.src[e]);
    const auto p = static_cast<std::size_t>(key % options.partitions);
    ModelEdge edge{input.edges.src[e], input.edges.dst[e],
                   input.edges.type.empty() ? TypeId{0} : input.edges.type[e],
                   input.edges.weight.empty() ? 1.0F : input.edges.weight[e]};
    parts[p].push_back(edge);
    set_of_vertex[static_cast<std::size_t>(edge.src)] |= std::uint64_t{1} << p;
    set_of_vertex[static_cast<std::size_t>(edge.dst)] |= std::uint64_t{1} << p;
    if (!input.undirected || edge.src == edge.dst) continue;
    std::swap(edge.src, edge.dst);
    parts[p].push_back(edge);
  }
  std::vector<PartitionId> owner(n);
  for (std::size_t v = 0; v < n; ++v) {
    owner[v] = static_cast<PartitionId>(rng() % options.partitions);
    while (set_of_vertex[v] != 0 && (set_of_vertex[v] >> owner[v] & 1) == 0)
      owner[v] = static_cast<PartitionId>((owner[v] + 1U) % options.partitions);
  }
  std::vector<VertexId> vertex_of_row(n);
  std::iota(vertex_of_row.begin(), vertex_of_row.end(), VertexId{0});
  std::shuffle(vertex_of_row.begin(), vertex_of_row.end(), rng);
  if (options.grouped) {
    const auto key = [&](VertexId v) {
      const auto i = static_cast<std::size_t>(v);
      return std::pair(owner[i], input.vertex_type.empty() ? TypeId{0} : input.vertex_type[i]);
    };
    std::stable_sort(vertex_of_row.begin(), vertex_of_row.end(),
                     [&](VertexId a, VertexId b) { return key(a) < key(b); });
  }

  PartitionParts result;
  result.partitions = options.partitions;
  result.edge_types = static_cast<std::uint32_t>(input.edge_type_names.size());
  result.order.emplace(MakeOrder(vertex_of_row, owner, input.vertex_type, options.partitions,
                                 static_cast<std::uint32_t>(input.vertex_type_names.size())));
  std::vector<std::uint64_t> out_degree(n, 0);
  std::vector<std::uint64_t> in_degree(n, 0);
  for (const ModelEdge& edge : model.edges()) {
    ++out_degree[static_cast<std::size_t>(result.order->RowOf(edge.src))];
    ++in_degree[static_cast<std::size_t>(result.order->RowOf(edge.dst))];
  }
  for (const VertexId vertex : vertex_of_row)
    result.sets.push_back(set_of_vertex[static_cast<std::size_t>(vertex)]);
  const Degrees out_degrees(out_degree);
  const Degrees in_degrees(in_degree);
  std::vector<std::uint8_t> set_bytes;
  for (const std::uint64_t set : result.sets)
    for (std::size_t i = 0; i < PartitionSetBytes(options.partitions); ++i)
      set_bytes.push_back(static_cast<std::uint8_t>(set >> (8 * i)));
  for (std::uint32_t p = 0; p < options.partitions; ++p) {
    EdgesOfPartition edges;
    for (const ModelEdge& edge : parts[p]) {
      edges.src.push_back(result.order->RowOf(edge.src));
      edges.dst.push_back(result.order->RowOf(edge.dst));
      if (!input.edges.type.empty()) edges.type.push_back(edge.type);
      if (!input.edges.weight.empty()) edges.weight.push_back(edge.weight);
    }
    PartitionContext context;
    context.partition = p;
    context.partitions = options.partitions;
    context.edge_types = result.edge_types;
    context.symmetric = input.undirected;
    context.weighted = !input.edges.weight.empty();
    context.attributed = options.attributed;
    context.directions = options.directions;
    context.codec = options.codec;
    context.out_degree = &out_degrees;
    context.in_degree = &in_degrees;
    context.partition_set = set_bytes;
    MemorySink sink;
    EXPECT_OK(Adjacency::Write(sink, StoreId{}, *result.order, context, std::move(edges)));
    result.files.push_back(sink.Take());
  }
  return result;
}

}  // namespace rhizome::testing
