#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/topology/adjacency.h"
#include "rhizome/chunk_array.h"
#include "testing/test_store.h"

namespace rhizome::testing {

/// Source, name of the type, and target. The name is "edge" if there is a single, unnamed type.
using NamedEdge = std::tuple<VertexId, std::string, VertexId>;

/// Returns all edges of a store, sorted, from its out-neighbour lists.
inline std::vector<NamedEdge> AllEdges(const OpenGraph& open) {
  std::vector<NamedEdge> edges;
  for (std::uint64_t v = 0; v < open.graph->vertex_count(); ++v) {
    const auto neighbors = open.graph->Neighbors(static_cast<VertexId>(v), Direction::kOut);
    EXPECT_OK(neighbors);
    if (!neighbors) continue;
    for (const Neighbor& neighbor : *neighbors)
      edges.emplace_back(static_cast<VertexId>(v),
                         open.store->manifest().info.edge_types[neighbor.type], neighbor.vertex);
  }
  std::sort(edges.begin(), edges.end());
  return edges;
}

/// Returns the values of an attribute for every edge, sorted. The attribute has an array per
/// partition, indexed by edge id.
template <typename T>
std::vector<std::pair<NamedEdge, std::vector<T>>> EdgeRowsOf(const OpenGraph& open,
                                                             std::string_view attribute) {
  std::vector<std::pair<NamedEdge, std::vector<T>>> all;
  const auto& types = open.store->manifest().info.edge_types;
  for (std::uint32_t p = 0; p < open.graph->partition_count(); ++p) {
    const Adjacency& part = open.graph->partition(p);
    const auto array = open.store->OpenArray(EdgeArrayName(attribute, p));
    EXPECT_OK(array);
    if (!array) return all;
    const ArrayEntry& entry = (*array)->entry();
    EXPECT_EQ(entry.rows, part.edge_count());
    EXPECT_EQ(DataTypeBytes(entry.dtype), sizeof(T)) << attribute;
    std::vector<T> rows(entry.rows * entry.dim);
    EXPECT_OK((*array)->ReadRows(0, entry.rows, std::as_writable_bytes(std::span(rows))));
    for (LocalId local = 0; local < part.vertex_count(); ++local) {
      for (std::size_t type = 0; type < types.size(); ++type) {
        const auto list = part.NeighborsOfType(local, Direction::kOut, static_cast<TypeId>(type));
        for (std::size_t i = 0; i < list.neighbors.size(); ++i) {
          const auto row = rows.begin() + static_cast<std::ptrdiff_t>((list.first + i) * entry.dim);
          all.emplace_back(NamedEdge(*open.graph->VertexAt(part.RowOf(local)), types[type],
                                     *open.graph->VertexAt(part.RowOf(list.neighbors[i]))),
                           std::vector<T>(row, row + static_cast<std::ptrdiff_t>(entry.dim)));
        }
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Returns an array's values by vertex id.
template <typename T>
std::vector<T> ValuesByVertex(const OpenGraph& open, std::string_view name) {
  const auto array = open.store->OpenArray(name);
  EXPECT_OK(array);
  if (!array) return {};
  const ArrayEntry& entry = (*array)->entry();
  EXPECT_EQ(DataTypeBytes(entry.dtype), sizeof(T)) << name;
  std::vector<T> rows(entry.rows * entry.dim);
  EXPECT_OK((*array)->ReadRows(0, entry.rows, std::as_writable_bytes(std::span(rows))));
  std::vector<T> by_vertex(rows.size());
  for (std::size_t row = 0; row < entry.rows; ++row) {
    const auto vertex = static_cast<std::size_t>(*open.graph->VertexAt(static_cast<Row>(row)));
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row * entry.dim), entry.dim,
                by_vertex.begin() + static_cast<std::ptrdiff_t>(vertex * entry.dim));
  }
  return by_vertex;
}

/// Returns the bytes of a .npy file.
template <typename T>
std::string NpyBytes(const std::string& descr, const std::string& shape,
                     const std::vector<T>& values, bool fortran = false) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                     ", 'shape': (" + shape + "), }";
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string bytes = "\x93NUMPY";
  bytes +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xFF), static_cast<char>(text.size() >> 8)};
  bytes += text;
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace rhizome::testing
