#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "rhizome/sampler.h"
#include "rhizome/store.h"
#include "rhizome/write_batch.h"
#include "storage/base/check.h"
#include "storage/io/unique_folder.h"

namespace rhizome::fuzzing {

inline constexpr std::uint64_t kVertices = 14;
inline constexpr std::uint64_t kEdges = 70;

/// There are kPlainShapes shapes without a delta, and the same number with one.
inline constexpr std::size_t kPlainShapes = 12;
inline constexpr std::size_t kShapes = 2 * kPlainShapes;

/// An entry of a neighbour list, computed from the input without the engine.
struct Entry {
  VertexId vertex = 0;
  TypeId type = 0;
  float weight = 1;
  std::int64_t time = 0;
  auto key() const { return std::tie(vertex, type, weight, time); }
  friend bool operator<(const Entry& a, const Entry& b) { return a.key() < b.key(); }
};

/// An edge of the input or of an update.
struct DrawnEdge {
  VertexId src = 0;
  VertexId dst = 0;
  TypeId type = 0;
  float weight = 1;
  std::int64_t time = 0;
};

/// A small graph in a store of its own, and the neighbour lists that it must have.
struct Shape {
  bool typed = false;
  bool weighted = false;
  bool undirected = false;
  std::vector<std::vector<Entry>> lists[2];  ///< for kIn and kOut, by vertex
  std::unique_ptr<Store> store;
  std::unique_ptr<const GraphSnapshot> graph;
  std::shared_ptr<const EdgeTimes> times;
  std::uint64_t vertices() const { return graph->vertex_count(); }
};

/// Returns a temporary folder that is removed when the fuzzer exits.
inline const Path& Folder() {
  struct Kept {
    Path path;
    Kept() {
      const auto made =
          MakeUniqueFolder(std::filesystem::temp_directory_path() / "sampler_fuzz.", "fuzz");
      RHIZOME_CHECK(made.has_value());
      path = *made;
    }
    ~Kept() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Kept kept;
  return kept.path;
}

/// Builds a shape: draws edges and updates, and records the expected graph as a plain list of
/// edges.
class ShapeMaker {
 public:
  explicit ShapeMaker(std::size_t number) : number_(number % kPlainShapes), random_(number) {
    shape_->typed = number_ % 2 != 0;
    shape_->weighted = number_ / 2 % 2 != 0;
    shape_->undirected = number_ / 4 == 2;
    for (VertexId v = 0; v < static_cast<VertexId>(kVertices); ++v) vertex_of_[v] = v;
    const Path path = Folder() / std::to_string(number);
    Build(path);
    if (number >= kPlainShapes) Update(path);
    shape_->store = Open(path, Store::Mode::kRead);
    auto graph = Graph::Open(std::as_const(*shape_->store));
    RHIZOME_CHECK(graph.has_value());
    shape_->graph = *std::move(graph);
    RHIZOME_CHECK(shape_->vertices() == next_);
    auto times = LoadEdgeTimes(*shape_->graph, "time");
    RHIZOME_CHECK(times.has_value());
    shape_->times = *std::move(times);
    FillLists();
  }

  std::unique_ptr<Shape> Take() { return std::move(shape_); }

 private:
  static std::vector<std::string> TypeNames(bool typed) {
    return typed ? std::vector<std::string>{"a", "b", "c", "d"} : std::vector<std::string>{"e"};
  }

  // Draws an edge. The distribution yields loops, parallel edges, hubs and isolated vertices.
  DrawnEdge Draw(std::uint64_t vertices, std::uint64_t types) {
    return {.src = static_cast<VertexId>(random_() % (random_() % 3 == 0 ? 2 : vertices)),
            .dst = static_cast<VertexId>(random_() % (random_() % 3 == 0 ? 2 : vertices)),
            .type = static_cast<TypeId>(shape_->typed ? random_() % types : 0),
            .weight = shape_->weighted ? static_cast<float>(random_() % 4) : 1.0F,
            .time = static_cast<std::int64_t>(random_() % 8)};
  }

  GraphInput DrawInput() {
    GraphInput input;
    input.vertex_count = kVertices;
    input.vertex_type_names = {"v"};
    input.edge_type_names = TypeNames(shape_->typed);
    if (shape_->typed) input.edge_type_names.pop_back();  // an update adds this type
    input.undirected = shape_->undirected;
    input.edges.attributes = {EdgeAttribute("time")};
    for (std::uint64_t e = 0; e < kEdges; ++e) {
      const DrawnEdge edge = Draw(kVertices - 2, 3);
      input.edges.src.push_back(edge.src);
      input.edges.dst.push_back(edge.dst);
      if (shape_->typed) input.edges.type.push_back(edge.type);
      if (shape_->weighted) input.edges.weight.push_back(edge.weight);
      input.edges.attributes[0].Add(edge.time);
      edges_.push_back(edge);
    }
    return input;
  }

  void Build(const Path& path) {
    auto store = Store::Create(FileSystem::Posix(), path, StoreId{});
    RHIZOME_CHECK(store.has_value());
    BuildOptions options;
    options.partition.kind = PartitionerKind::kRandom;
    options.partition.partitions = number_ / 4 == 1 ? 1 : 3;
    options.topology_codec = number_ % 3 == 0 ? TopologyCodec::kEliasFano : TopologyCodec::kNone;
    const JobControl control;
    RHIZOME_CHECK(BuildGeneration(**store, DrawInput(), options, control).ok());
  }

  static std::unique_ptr<Store> Open(const Path& path, Store::Mode mode) {
    auto store = Store::Open(FileSystem::Posix(), path, mode);
    RHIZOME_CHECK(store.has_value());
    return *std::move(store);
  }

  void Update(const Path& path) {
    const auto store = Open(path, Store::Mode::kWrite);
    const auto live = Graph::Open(*store);
    RHIZOME_CHECK(live.has_value());
    for (int commit = 0; commit < 4; ++commit) {
      WriteBatch batch;
      for (int i = 0; i < 8; ++i) AddOperation(batch);
      RHIZOME_CHECK((*live)->Write(batch, {.sync = false, .create_types = true}).has_value());
    }
  }

  /// Returns the vertex with an external id. Adds one if there is none.
  VertexId VertexOf(VertexId id) {
    const auto [at, added] = vertex_of_.try_emplace(id, static_cast<VertexId>(next_));
    next_ += added ? 1 : 0;
    return at->second;
  }

  void AddOperation(WriteBatch& batch) {
    const auto types = TypeNames(shape_->typed);
    const std::uint64_t what = random_() % 16;
    DrawnEdge edge = Draw(kVertices + 3, types.size());
    if (what >= 8 && what < 14 && !edges_.empty()) {
      // Uses the endpoints of an existing edge, since most edges that are drawn do not exist.
      const DrawnEdge& old = edges_[random_() % edges_.size()];
      edge.type = old.type;
      for (const auto& [id, vertex] : vertex_of_) {
        if (vertex == old.src) edge.src = id;
        if (vertex == old.dst) edge.dst = id;
      }
    }
    const ExternalId src(edge.src);
    const ExternalId dst(edge.dst);
    const std::string& type = types[edge.type];
    const EdgeFields fields{.type = type, .weight = edge.weight, .attributes = {edge.time}};
    if (what == 15) {
      batch.DeleteVertex(src);
      if (const auto gone = vertex_of_.extract(edge.src))
        Erase([&](const DrawnEdge& e) { return e.src == gone.mapped() || e.dst == gone.mapped(); });
    } else if (what >= 11) {
      batch.DeleteEdge(src, dst, AddedType(edge.type) ? type : types[0]);
      if (!AddedType(edge.type)) edge.type = 0;
      if (vertex_of_.contains(edge.src) && vertex_of_.contains(edge.dst)) EraseEqual(edge);
    } else {
      added_type_ |= edge.type == 3;
      if (what < 8) batch.PutEdge(src, dst, fields);
      if (what >= 8) batch.UpsertEdge(src, dst, fields);
      DrawnEdge put = edge;
      put.src = VertexOf(edge.src);
      put.dst = VertexOf(edge.dst);
      if (what >= 8) EraseEqual(edge);
      edges_.push_back(put);
    }
  }

  bool AddedType(TypeId type) const { return type != 3 || added_type_; }

  template <typename Gone>
  void Erase(const Gone& gone) {
    std::erase_if(edges_, gone);
  }

  /// Erases the edges equal to `edge`, whose endpoints are external ids.
  void EraseEqual(const DrawnEdge& edge) {
    const VertexId src = vertex_of_.at(edge.src);
    const VertexId dst = vertex_of_.at(edge.dst);
    Erase([&](const DrawnEdge& e) {
      const bool same = e.src == src && e.dst == dst;
      const bool turned = shape_->undirected && e.src == dst && e.dst == src;
      return e.type == edge.type && (same || turned);
    });
  }

  void FillLists() {
    for (auto& lists : shape_->lists) lists.resize(shape_->vertices());
    for (const DrawnEdge& edge : edges_) {
      const auto add = [&](VertexId from, VertexId to) {
        const auto f = static_cast<std::size_t>(from);
        const auto t = static_cast<std::size_t>(to);
        shape_->lists[0][t].push_back({from, edge.type, edge.weight, edge.time});
        shape_->lists[1][f].push_back({to, edge.type, edge.weight, edge.time});
      };
      add(edge.src, edge.dst);
      if (shape_->undirected && edge.src != edge.dst) add(edge.dst, edge.src);
    }
  }

  const std::size_t number_;
  std::mt19937_64 random_;
  std::unique_ptr<Shape> shape_ = std::make_unique<Shape>();
  std::vector<DrawnEdge> edges_;            // by vertex ids
  std::map<VertexId, VertexId> vertex_of_;  // by external id; without deleted vertices
  std::uint64_t next_ = kVertices;          // the next vertex id
  bool added_type_ = false;
};

inline const Shape& ShapeOf(std::size_t number) {
  // Never destroyed, because RocksDB's statics may be destroyed first.
  static auto* const shapes = new std::unique_ptr<Shape>[kShapes];
  if (shapes[number] == nullptr) shapes[number] = ShapeMaker(number).Take();
  return *shapes[number];
}

}  // namespace rhizome::fuzzing
