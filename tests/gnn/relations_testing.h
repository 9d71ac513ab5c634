#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/write_batch.h"
#include "testing/planted_graph.h"

namespace rhizome::testing {

/// Names of the edge types of a typed store; names may contain anything.
inline std::vector<std::string> RelationNames() { return {"cites", "has topic", "a__b", "~"}; }

/// Writes a planted graph with directed edges of several types, as a store in which both directions
/// are kept. Most edges of the first type are within a class. The type of a vertex says nothing of
/// its class or set.
inline Status WriteRelationStore(const Path& path, const PlantedOptions& options,
                                 const std::vector<std::string>& vertex_types = {"vertex"}) {
  PlantedGraph planted = MakePlanted(options);
  std::mt19937_64 random(options.seed);
  GraphInput input;
  input.vertex_count = options.vertices;
  input.vertex_type_names = vertex_types;
  for (std::uint64_t v = 0; v < options.vertices && vertex_types.size() > 1; ++v)
    input.vertex_type.push_back(
        static_cast<TypeId>(v / (3 * options.classes) % vertex_types.size()));
  input.edge_type_names = RelationNames();
  for (std::size_t e = 0; e < planted.edges.src.size(); ++e) {
    const auto label = [&](VertexId v) { return planted.labels[static_cast<std::size_t>(v)]; };
    const bool inside = label(planted.edges.src[e]) == label(planted.edges.dst[e]);
    const auto any = static_cast<TypeId>(random() % input.edge_type_names.size());
    planted.edges.type.push_back(inside && random() % 2 == 0 ? TypeId{0} : any);
  }
  input.edges = std::move(planted.edges);
  input.arrays.push_back(MakeArray("feat", options.dim, DataType::kFloat32, planted.features));
  input.arrays.back().chunk_rows = options.chunk_rows;
  input.arrays.push_back(MakeArray("label", 1, DataType::kInt64, planted.labels));
  input.arrays.push_back(MakeArray("split", 1, DataType::kUint8, planted.split));
  BuildOptions build;
  build.partition.partitions = options.partitions;
  build.order = options.order;
  const JobControl control;
  return AsStatus(
      IngestGraph(FileSystem::Posix(), path, std::move(input), build, StoreId(), control));
}

/// Adds vertices and edges of all types to a typed store and deletes others, so that it has a
/// delta.
inline Status WriteRelationDelta(const Path& path, std::uint64_t seed) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store, {}));
  std::mt19937_64 random(seed);
  const auto any = [&] { return ExternalId(static_cast<std::int64_t>(random() % 1200)); };
  const std::vector<std::string> names = RelationNames();
  const auto type = [&]() -> std::string { return names[random() % names.size()]; };
  WriteBatch batch;
  for (int i = 0; i < 200; ++i) batch.PutEdge(any(), any(), {.type = type()});
  for (std::int64_t i = 0; i < 5; ++i)
    batch.PutEdge(any(), ExternalId(1'000'000 + i), {.type = type()});
  for (int i = 0; i < 5; ++i) batch.DeleteVertex(any());
  return AsStatus(graph->Write(batch, {}));
}

}  // namespace rhizome::testing
