#pragma once

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gnn/gnn_testing.h"
#include "rhizome/graph.h"
#include "rhizome/write_batch.h"
#include "testing/planted_graph.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// A planted graph whose vertices have four types. Papers and venues share an array of 8 columns,
/// authors have one of 5, sites have none. Rows of other types are NaN, so that a result from one
/// of them is not finite.
inline constexpr std::uint64_t kTypedVertices = 1200;
inline const std::vector<std::string> kTypeNames = {"paper", "author", "venue", "site"};

inline std::vector<FeatureInput> TypedInputsOfStore() {
  return {{.vertex_type = "site", .array = {}},
          {.vertex_type = "author", .array = "author_feat"},
          {.vertex_type = "paper", .array = "feat"},
          {.vertex_type = "venue", .array = "feat"}};
}

inline TypeId TypeOfTyped(std::uint64_t vertex) {
  return static_cast<TypeId>(vertex * 7 / 3 % kTypeNames.size());
}

inline Status WriteTypedStore(const Path& path) {
  const PlantedGraph planted = MakePlanted({.vertices = kTypedVertices, .dim = 8});
  GraphInput input;
  input.vertex_count = kTypedVertices;
  input.edges = planted.edges;
  input.undirected = true;
  input.vertex_type_names = kTypeNames;
  input.edge_type_names = {"edge"};
  std::vector<float> feat(kTypedVertices * 8, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> author(kTypedVertices * 5, std::numeric_limits<float>::quiet_NaN());
  for (std::uint64_t v = 0; v < kTypedVertices; ++v) {
    const TypeId type = TypeOfTyped(v);
    input.vertex_type.push_back(type);
    const float* const row = planted.features.data() + v * 8;
    if (type == 0 || type == 2) std::copy_n(row, 8, feat.data() + v * 8);
    if (type == 1) std::copy_n(row, 5, author.data() + v * 5);
  }
  input.arrays.push_back(MakeArray("feat", 8, DataType::kFloat32, feat));
  input.arrays.back().chunk_rows = 128;
  input.arrays.push_back(MakeArray("author_feat", 5, DataType::kFloat32, author));
  input.arrays.back().chunk_rows = 384;
  input.arrays.push_back(MakeArray("label", 1, DataType::kInt64, planted.labels));
  input.arrays.push_back(MakeArray("split", 1, DataType::kUint8, planted.split));
  BuildOptions build;
  build.partition.partitions = 3;
  const JobControl control;
  return AsStatus(
      IngestGraph(FileSystem::Posix(), path, std::move(input), build, StoreId(), control));
}

/// Adds vertices with features and edges, changes rows and deletes vertices, so that the store has
/// a delta. `round`: different vertices are new in each.
inline Status WriteTypedDelta(const Path& path, std::uint64_t seed, std::int64_t round = 0) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite));
  RHIZOME_ASSIGN_OR_RETURN(const auto graph, Graph::Open(*store, {}));
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const auto any = [&] { return ExternalId(static_cast<std::int64_t>(random() % kTypedVertices)); };
  WriteBatch batch;
  const auto put_row = [&](const ExternalId& id, TypeId type) {
    std::vector<float> row(type == 1 ? 5 : 8);
    for (float& value : row) value = normal(random);
    if (type != 3)
      batch.PutRow(id, type == 1 ? "author_feat" : "feat", std::span<const float>(row));
  };
  for (std::int64_t i = 0; i < 8; ++i) {
    const ExternalId id(1'000'000 + 100 * round + i);
    batch.PutVertex(id, kTypeNames[static_cast<std::size_t>(i % 4)]);
    put_row(id, static_cast<TypeId>(i % 4));
    batch.PutEdge(any(), id);
    batch.PutEdge(id, any());
  }
  for (int i = 0; i < 30; ++i) batch.PutEdge(any(), any());
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t vertex = random() % kTypedVertices;
    put_row(ExternalId(static_cast<std::int64_t>(vertex)), TypeOfTyped(vertex));
  }
  RHIZOME_RETURN_IF_ERROR(AsStatus(graph->Write(batch, {})));
  WriteBatch deletes;
  deletes.DeleteVertex(any());
  return AsStatus(graph->Write(deletes, {}));
}

/// Returns the options of a short training over WriteTypedStore.
inline TrainOptions TypedTraining(const Path& store) {
  TrainOptions options = SmallTraining(store);
  options.data.inputs = TypedInputsOfStore();
  return options;
}

}  // namespace rhizome::testing
