#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "rhizome/chunk_array.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/half.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// A planted-partition graph. Vertices of the same class are linked more often than others. The
/// features are only weakly correlated with the class, so that a vertex's neighbourhood predicts it
/// far better than the vertex alone.
struct PlantedOptions {
  std::uint64_t vertices = 1200;
  std::uint32_t classes = 4;
  std::uint64_t dim = 16;
  std::uint64_t degree = 8;  ///< undirected edges drawn per vertex
  double inside = 0.85;      ///< share of edges within the class
  double hint = 0.35;        ///< strength of the class in the features, noise being 1
  DataType dtype = DataType::kFloat32;
  std::uint32_t partitions = 3;
  std::uint64_t chunk_rows = 128;  ///< small, so that inference reads many chunks
  std::uint64_t seed = 7;
  TopologyCodec codec = TopologyCodec::kNone;
  OrderKind order = OrderKind::kPds;
};

struct PlantedGraph {
  EdgeList edges;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> split;
  std::vector<float> features;  // [vertices, dim]
};

inline PlantedGraph MakePlanted(const PlantedOptions& options) {
  std::mt19937_64 random(options.seed);
  std::normal_distribution<float> noise;
  std::uniform_real_distribution<double> unit;
  PlantedGraph planted;
  for (std::uint64_t v = 0; v < options.vertices; ++v) {
    planted.labels.push_back(static_cast<std::int64_t>(v % options.classes));
    planted.split.push_back(static_cast<std::uint8_t>(v / options.classes % 3));
    for (std::uint64_t d = 0; d < options.dim; ++d) {
      const bool own = d % options.classes == v % options.classes;
      planted.features.push_back(noise(random) + (own ? static_cast<float>(options.hint) : 0));
    }
    for (std::uint64_t e = 0; e < options.degree; ++e) {
      std::uint64_t u = random() % options.vertices;
      if (unit(random) < options.inside) u = u - u % options.classes + v % options.classes;
      if (u >= options.vertices || u == v) continue;
      planted.edges.src.push_back(static_cast<VertexId>(v));
      planted.edges.dst.push_back(static_cast<VertexId>(u));
    }
  }
  return planted;
}

/// Builds an array of a store from values by vertex id.
template <typename T>
ArrayInput MakeArray(const std::string& name, std::uint64_t dim, DataType dtype,
                     std::vector<T> values) {
  ArrayInput input;
  input.name = name;
  input.dim = dim;
  input.dtype = dtype;
  input.read_rows = [dim, values = std::move(values)](std::span<const VertexId> vertices,
                                                      std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      std::memcpy(out.data() + i * dim * sizeof(T),
                  values.data() + static_cast<std::size_t>(vertices[i]) * dim, dim * sizeof(T));
    }
    return Status::Ok();
  };
  return input;
}

/// Writes a planted graph as a store with arrays feat, label and split.
inline Status WriteStore(const Path& path, const PlantedOptions& options,
                         const PlantedGraph& planted) {
  GraphInput input;
  input.vertex_count = options.vertices;
  input.edges = planted.edges;
  input.undirected = true;
  input.vertex_type_names = {"vertex"};
  input.edge_type_names = {"edge"};
  if (options.dtype == DataType::kFloat16) {
    std::vector<std::uint16_t> halves;
    for (const float value : planted.features) halves.push_back(FloatToHalf(value));
    input.arrays.push_back(MakeArray("feat", options.dim, DataType::kFloat16, halves));
  } else {
    input.arrays.push_back(MakeArray("feat", options.dim, DataType::kFloat32, planted.features));
  }
  input.arrays.back().chunk_rows = options.chunk_rows;
  input.arrays.push_back(MakeArray("label", 1, DataType::kInt64, planted.labels));
  input.arrays.push_back(MakeArray("split", 1, DataType::kUint8, planted.split));
  BuildOptions build;
  build.partition.partitions = options.partitions;
  build.topology_codec = options.codec;
  build.order = options.order;
  const JobControl control;
  return AsStatus(
      IngestGraph(FileSystem::Posix(), path, std::move(input), build, StoreId(), control));
}

inline Status WriteStore(const Path& path, const PlantedOptions& options) {
  return WriteStore(path, options, MakePlanted(options));
}

/// Returns all rows of a float32 array, in row order.
inline Result<std::vector<float>> ReadArray(const Path& store_path, const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), store_path, Store::Mode::kRead));
  RHIZOME_ASSIGN_OR_RETURN(const auto array, store->OpenArray(name));
  std::vector<float> values(array->entry().rows * array->entry().dim);
  RHIZOME_RETURN_IF_ERROR(
      array->ReadRows(0, array->entry().rows, std::as_writable_bytes(std::span(values))));
  return values;
}

/// Returns the files of an array as the manifest lists them. Equal lists mean equal bytes.
inline Result<std::vector<FileEntry>> FilesOf(const Path& store_path, const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Open(FileSystem::Posix(), store_path, Store::Mode::kRead));
  std::vector<FileEntry> files;
  const std::string prefix = ArrayFolder(name) + "/c";
  for (FileEntry file : store->manifest().files) {
    if (!file.path.starts_with(prefix)) continue;
    file.path.erase(0, prefix.size());  // removes the array's name
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace rhizome::testing
