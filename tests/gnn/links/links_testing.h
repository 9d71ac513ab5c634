#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "cache/job/safetensors.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "rhizome/ingest.h"
#include "rhizome/link_scores.h"
#include "rhizome/write_batch.h"
#include "testing/planted_graph.h"
#include "testing/testing.h"

extern "C" const rhizome::LinkScores* rhizome_gnn_scores_v1();

namespace rhizome::testing {

inline constexpr std::size_t kLinkDim = 8;

/// A small knowledge graph in memory, as a model of a store. Rows and relations are small whole
/// numbers, so that scores are exact in any order of additions, and many are equal.
struct LinkModel {
  std::vector<TypeId> vertex_type;                         // by vertex: 0 person, 1 place
  std::set<std::tuple<VertexId, TypeId, VertexId>> known;  // edges of the store and of files
  std::vector<std::vector<double>> rows;
  std::set<VertexId> deleted;

  bool IsKnown(const VertexPair& edge) const {
    return known.contains({edge.src, edge.type, edge.dst});
  }
};

/// A decoder as a file and as a function of exact numbers.
struct ExactDecoder {
  std::string name;
  std::string norm = {};
  bool reciprocal = false;
  std::vector<std::vector<double>> relations = {};  // for mlp: one row, the weights of both rows

  double Score(const std::vector<double>& a, const std::vector<double>& r,
               const std::vector<double>& b) const {
    double sum = 0;
    for (std::size_t d = 0; d < kLinkDim; ++d) {
      if (name == "dot") sum += a[d] * b[d];
      if (name == "distmult") sum += a[d] * r[d] * b[d];
      if (name == "transe" && norm == "1") sum -= std::abs(a[d] + r[d] - b[d]);
      if (name == "transe" && norm == "2") sum -= std::pow(a[d] + r[d] - b[d], 2);
      if (name == "mlp") sum += r[d] * a[d] + r[kLinkDim + d] * b[d];
    }
    for (std::size_t d = 0, half = kLinkDim / 2; d < half && name == "complex"; ++d) {
      sum += (a[d] * r[d] - a[half + d] * r[half + d]) * b[d] +
             (a[d] * r[half + d] + a[half + d] * r[d]) * b[half + d];
    }
    return sum;
  }

  /// Scores an edge whose end `open` was replaced.
  double ScoreOf(const LinkModel& model, const VertexPair& edge, EdgeEnd open) const {
    const auto& a = model.rows[static_cast<std::size_t>(edge.src)];
    const auto& b = model.rows[static_cast<std::size_t>(edge.dst)];
    if (name == "mlp") return Score(a, relations[0], b);
    if (relations.empty()) return Score(a, {}, b);
    if (reciprocal && open == EdgeEnd::kSrc)
      return Score(b, relations[relations.size() / 2 + edge.type], a);
    return Score(a, relations[edge.type], b);
  }

  TensorFile File() const {
    TensorFile file;
    file.metadata["decoder"] = name;
    if (!norm.empty()) file.metadata["norm"] = norm;
    if (reciprocal) file.metadata["reciprocal"] = "true";
    NamedTensor tensor;
    for (const std::vector<double>& relation : relations)
      tensor.values.insert(tensor.values.end(), relation.begin(), relation.end());
    if (relations.empty()) return file;
    tensor.shape = {static_cast<std::int64_t>(relations.size()),
                    static_cast<std::int64_t>(relations[0].size())};
    if (name != "mlp") {
      file.tensors["relations"] = std::move(tensor);
      return file;
    }
    file.tensors["layers.0.weight"] = std::move(tensor);
    file.tensors["layers.0.bias"] = {.shape = {1}, .values = {0}};
    return file;
  }
};

/// Returns a source of all `items`, in order.
template <typename T>
auto SourceOf(std::vector<T> items) {
  auto given = std::make_shared<std::size_t>(0);
  return [items = std::move(items), given](std::span<T> out) -> Result<std::size_t> {
    const std::size_t count = std::min(out.size(), items.size() - *given);
    std::copy_n(items.begin() + static_cast<std::ptrdiff_t>(*given), count, out.begin());
    *given += count;
    return count;
  };
}

/// A store with two vertex types, three edge types and the rows of a LinkModel in two layouts, with
/// a delta: rows that were put, new vertices and edges, and deleted vertices.
class LinkFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVertices = 500;

  void SetUp() override {
    GraphInput input;
    input.vertex_count = kVertices;
    input.vertex_type_names = {"person", "place"};
    input.edge_type_names = {"a", "b", "visits"};
    for (std::uint64_t v = 0; v < kVertices; ++v) AddVertex();
    input.vertex_type = model_.vertex_type;
    for (int e = 0; e < 2500; ++e) {
      const VertexPair edge = AnyEdge();
      input.edges.src.push_back(edge.src);
      input.edges.dst.push_back(edge.dst);
      input.edges.type.push_back(edge.type);
      model_.known.insert({edge.src, edge.type, edge.dst});
    }
    std::vector<float> rows;
    for (const auto& row : model_.rows) rows.insert(rows.end(), row.begin(), row.end());
    for (const char* name : {"row", "chunk"}) {
      input.arrays.push_back(MakeArray(name, kLinkDim, DataType::kFloat32, rows));
      input.arrays.back().chunk_rows = 64;
    }
    input.arrays.back().layout = ArrayLayout::kChunk;
    input.arrays.back().codec = {.kind = CodecKind::kBloscLz4, .level = 5};
    BuildOptions build;
    build.partition.partitions = 3;
    const JobControl control;
    ASSERT_OK(
        IngestGraph(FileSystem::Posix(), path(), std::move(input), build, StoreId(), control));
    WriteDelta();
    Open();
  }

  Path path() const { return folder_ / "s"; }

  std::vector<double> WholeNumbers(std::size_t count, int most) {
    std::vector<double> numbers(count);
    for (double& number : numbers)
      number = static_cast<double>(random_() % static_cast<unsigned>(2 * most + 1)) - most;
    return numbers;
  }

  void AddVertex() {
    model_.vertex_type.push_back(model_.rows.size() % 3 == 0 ? 1 : 0);
    model_.rows.push_back(WholeNumbers(kLinkDim, 2));
  }

  VertexId AnyVertex(int type = -1) {
    while (true) {
      const auto vertex = static_cast<VertexId>(random_() % model_.rows.size());
      const bool fits = type < 0 || model_.vertex_type[static_cast<std::size_t>(vertex)] ==
                                        static_cast<TypeId>(type);
      if (fits && !model_.deleted.contains(vertex)) return vertex;
    }
  }

  /// Edges of type `visits` go from a person to a place; others have any ends. A few vertices have
  /// no edge.
  VertexPair AnyEdge() {
    while (true) {
      const auto type = static_cast<TypeId>(random_() % 3);
      const VertexPair edge{
          .src = AnyVertex(type == 2 ? 0 : -1), .dst = AnyVertex(type == 2 ? 1 : -1), .type = type};
      if (edge.src % 50 != 7 && edge.dst % 50 != 7) return edge;
    }
  }

  /// Returns edges that are not known, among them edges of vertices without edges.
  std::vector<VertexPair> NewEdges(std::size_t count) {
    std::vector<VertexPair> edges;
    while (edges.size() < count) {
      VertexPair edge = AnyEdge();
      if (edges.size() % 20 == 0 && edge.type != 2) edge.src = 7;
      if (!model_.IsKnown(edge)) edges.push_back(edge);
    }
    return edges;
  }

  void WriteDelta() {
    auto graph = Graph::Open(path(), {.mode = Mode::kWrite});
    ASSERT_OK(graph);
    WriteBatch batch;
    const auto put_row = [&](VertexId vertex) {
      const auto& row = model_.rows[static_cast<std::size_t>(vertex)];
      const std::vector<float> floats(row.begin(), row.end());
      for (const char* name : {"row", "chunk"})
        batch.PutRow(ExternalId(vertex), name, std::span<const float>(floats));
    };
    for (int i = 0; i < 9; ++i) {
      AddVertex();
      const auto vertex = static_cast<VertexId>(model_.rows.size() - 1);
      batch.PutVertex(ExternalId(vertex), model_.vertex_type.back() == 1 ? "place" : "person");
      put_row(vertex);
    }
    for (int i = 0; i < 20; ++i) {
      const VertexId vertex = AnyVertex();
      model_.rows[static_cast<std::size_t>(vertex)] = WholeNumbers(kLinkDim, 2);
      put_row(vertex);
    }
    const std::array<const char*, 3> names = {"a", "b", "visits"};
    for (int i = 0; i < 40; ++i) {
      const VertexPair edge = AnyEdge();
      batch.PutEdge(ExternalId(edge.src), ExternalId(edge.dst), {.type = names[edge.type]});
      model_.known.insert({edge.src, edge.type, edge.dst});
    }
    ASSERT_OK((*graph)->Write(batch));
    WriteBatch deletes;
    for (int i = 0; i < 5; ++i) {
      const VertexId vertex = AnyVertex();
      if (vertex == 7 || !model_.deleted.insert(vertex).second) continue;
      deletes.DeleteVertex(ExternalId(vertex));
    }
    std::erase_if(model_.known, [&](const auto& edge) {
      return model_.deleted.contains(std::get<0>(edge)) ||
             model_.deleted.contains(std::get<2>(edge));
    });
    ASSERT_OK((*graph)->Write(deletes));
  }

  void Open() {
    auto graph = Graph::Open(path());
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }

  std::vector<ExactDecoder> Decoders() {
    const auto relations = [&](std::size_t count) {
      std::vector<std::vector<double>> rows;
      for (std::size_t i = 0; i < count; ++i) rows.push_back(WholeNumbers(kLinkDim, 2));
      return rows;
    };
    return {{.name = "dot"},
            {.name = "distmult", .relations = relations(3)},
            {.name = "complex", .relations = relations(3)},
            {.name = "complex", .reciprocal = true, .relations = relations(6)},
            {.name = "transe", .norm = "1", .relations = relations(3)},
            {.name = "transe", .norm = "2", .relations = relations(3)},
            {.name = "mlp", .relations = {WholeNumbers(2 * kLinkDim, 3)}}};
  }

  Path Save(const ExactDecoder& decoder) const {
    const Path path = folder_ / "decoder.safetensors";
    EXPECT_OK(SaveSafetensors(path, decoder.File()));
    return path;
  }

  const TempDir folder_;
  std::mt19937_64 random_{TestSeed()};
  LinkModel model_;
  std::unique_ptr<Graph> graph_;
};

}  // namespace rhizome::testing
