// Round trips: a store is exported as a folder and ingested again. Both stores are compared through
// the API, and the second one with the model of the updates.

#include <algorithm>
#include <bit>
#include <fstream>
#include <map>
#include <random>
#include <tuple>

#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "rhizome/store_folder.h"
#include "storage/array/array_facts.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::OpenStore;
using testing::RandomBase;
using testing::TempDir;
using testing::UpdateModel;

/// An edge with the bits of its weight and attributes.
using Edge = std::tuple<std::string, std::string, std::string, std::uint32_t,
                        std::vector<std::vector<std::byte>>>;

/// Everything that a round trip keeps, by external id and by name.
struct Content {
  bool undirected = false;
  bool weighted = false;
  bool text_ids = false;
  Direction directions = Direction::kBoth;
  std::vector<std::string> vertex_types;
  std::vector<std::string> edge_types;
  std::map<std::string, std::string> vertices;  // type by id
  std::vector<Edge> edges;                      // sorted
  std::map<std::string,
           std::tuple<DataType, std::uint64_t, std::vector<std::pair<std::string, std::string>>>>
      edge_attributes;

  /// An array: dtype, columns, attributes, and the row of each vertex.
  struct Array {
    DataType dtype = DataType::kInvalid;
    std::uint64_t dim = 0;
    std::vector<std::pair<std::string, std::string>> attributes;
    std::map<std::string, std::vector<std::byte>> rows;
    friend bool operator==(const Array&, const Array&) = default;
  };
  std::map<std::string, Array> arrays;
  std::vector<ArraySeries> series;
};

void ReadArrays(const GraphSnapshot& graph, const std::vector<VertexId>& vertices,
                Content& content) {
  for (const ArrayEntry& entry : graph.store().manifest().arrays) {
    if (entry.name.ends_with(kSidecarSuffix) || IsOfEdges(entry)) continue;
    Content::Array& array = content.arrays[entry.name];
    array.dtype = entry.dtype;
    array.dim = entry.dim;
    array.attributes = entry.attributes;
    std::erase_if(array.attributes, [](const auto& fact) { return fact.first == "rows_given"; });
    std::vector<std::byte> rows(vertices.size() * entry.row_bytes());
    ASSERT_OK(graph.ReadRows(entry.name, vertices, rows));
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const auto row = std::span(rows).subspan(i * entry.row_bytes(), entry.row_bytes());
      array.rows[graph.NameOf(vertices[i])] = {row.begin(), row.end()};
    }
  }
}

void ReadEdges(const GraphSnapshot& graph, Content& content) {
  for (const EdgeAttributeInfo& attribute : graph.edge_attributes())
    content.edge_attributes[attribute.name] = {attribute.dtype, attribute.dim,
                                               attribute.attributes};
  auto scan = EdgeScan::Open(graph);
  ASSERT_OK(scan);
  while (true) {
    const auto edge = scan->Next();
    ASSERT_OK(edge);
    if (!*edge) break;
    std::vector<std::vector<std::byte>> values;
    for (const EdgeAttributeInfo& attribute : graph.edge_attributes()) {
      values.emplace_back(attribute.dim * DataTypeBytes(attribute.dtype));
      ASSERT_OK(ReadEdgeRows(graph, attribute.name, std::span(&(*edge)->number, 1), values.back()));
    }
    content.edges.emplace_back(graph.NameOf((*edge)->src), graph.NameOf((*edge)->dst),
                               graph.edge_types()[(*edge)->type],
                               std::bit_cast<std::uint32_t>((*edge)->weight), std::move(values));
  }
  std::sort(content.edges.begin(), content.edges.end());
}

Content ContentOf(const Graph& live) {
  const auto graph = live.Snapshot();
  Content content;
  content.undirected = graph->info().symmetric;
  content.weighted = graph->info().weighted;
  content.text_ids = graph->info().id_kind == ExternalIdKind::kString;
  content.directions = graph->info().directions;
  content.vertex_types = graph->vertex_types();
  content.edge_types = graph->edge_types();
  content.series = graph->store().manifest().series;
  std::vector<VertexId> vertices;
  for (VertexId v = 0; v < static_cast<VertexId>(graph->vertex_count()); ++v) {
    if (graph->IsDeleted(v)) continue;
    vertices.push_back(v);
    content.vertices[graph->NameOf(v)] = content.vertex_types[*graph->TypeOf(v)];
  }
  ReadEdges(*graph, content);
  ReadArrays(*graph, vertices, content);
  return content;
}

void ExpectSame(const Content& found, const Content& expected) {
  EXPECT_EQ(found.undirected, expected.undirected);
  EXPECT_EQ(found.weighted, expected.weighted);
  EXPECT_EQ(found.text_ids, expected.text_ids);
  EXPECT_EQ(found.directions, expected.directions);
  EXPECT_EQ(found.vertex_types, expected.vertex_types);
  EXPECT_EQ(found.edge_types, expected.edge_types);
  EXPECT_EQ(found.vertices, expected.vertices);
  EXPECT_EQ(found.edge_attributes, expected.edge_attributes);
  EXPECT_TRUE(found.edges == expected.edges)
      << found.edges.size() << " and " << expected.edges.size();
  EXPECT_EQ(found.series, expected.series);
  ASSERT_EQ(found.arrays.size(), expected.arrays.size());
  for (const auto& [name, array] : expected.arrays) {
    ASSERT_TRUE(found.arrays.contains(name)) << name;
    EXPECT_TRUE(found.arrays.at(name) == array) << name;
  }
}

/// Exports the graph, ingests the folder and compares.
void RoundTrip(const Graph& graph, const Path& dir, std::uint64_t memory_bytes,
               IngestOptions::Spill spill) {
  const Path folder = dir / "folder";
  const Path again = dir / "again.rz";
  const JobControl control;
  ASSERT_OK(ExportFolder(graph, folder, {.memory_bytes = memory_bytes}, control));
  EXPECT_TRUE(IsStoreFolder(FileSystem::Posix(), folder));
  IngestOptions options{.inputs = {folder}, .spill = spill};
  options.build.partition.partitions = 2;
  if (spill == IngestOptions::Spill::kAlways) options.memory_bytes = 64 << 20;
  ASSERT_OK(Ingest(FileSystem::Posix(), again, options, control));
  const auto open = testing::OpenStoreGraph(again);
  ASSERT_OK(open);
  ExpectSame(ContentOf(*open->graph), ContentOf(graph));
  testing::ExpectVerifies(again);
  std::filesystem::remove_all(folder);
}

const std::vector<std::string> kNames = {"/location/country",
                                         "DRUGBANK::treats::Compound:Disease",
                                         "has part",
                                         "<isMarriedTo>, \"x\"",
                                         "naît_à",
                                         " #1 "};

/// Adds an array of each dtype, narrow and wide, with random bits, and two versions of another.
void AddArrays(std::mt19937_64& rng, GraphInput& input) {
  const auto add = [&](std::string name, DataType dtype, std::uint64_t dim,
                       std::vector<std::pair<std::string, std::string>> attributes) {
    auto bytes =
        std::make_shared<std::vector<std::byte>>(input.vertex_count * dim * DataTypeBytes(dtype));
    for (std::byte& byte : *bytes)
      byte = static_cast<std::byte>(dtype == DataType::kBool ? rng() % 2 : rng());
    ArrayInput array;
    array.name = std::move(name);
    array.dim = dim;
    array.dtype = dtype;
    array.attributes = std::move(attributes);
    if (rng() % 2 == 0) array.layout = ArrayLayout::kChunk;
    array.read_rows = [bytes, row = dim * DataTypeBytes(dtype)](std::span<const VertexId> vertices,
                                                                std::span<std::byte> out) {
      for (std::size_t i = 0; i < vertices.size(); ++i)
        std::copy_n(bytes->begin() + vertices[i] * static_cast<std::int64_t>(row), row,
                    out.begin() + static_cast<std::ptrdiff_t>(i * row));
      return Status::Ok();
    };
    input.arrays.push_back(std::move(array));
  };
  for (const DataType dtype :
       {DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16, DataType::kFloat64,
        DataType::kInt64, DataType::kInt32, DataType::kInt16, DataType::kInt8, DataType::kUint32,
        DataType::kUint8, DataType::kBool}) {
    const std::string name(DataTypeName(dtype));
    add(name, dtype, 1, {});
    add(name + "_wide", dtype, 1 + rng() % 5, {{"note", "a, \"b\" höhle\n"}});
  }
  add("label", DataType::kInt64, 1, {});
  add("split", DataType::kUint8, 1, {{"missing", "255"}});
  add("born", DataType::kInt64, 1, {{"null", "-1"}, {"type", "timestamp"}});
  add("emb.v1", DataType::kFloat32, 2, {});
  add("emb.v3", DataType::kFloat32, 2, {{"made_by", "hand"}});
  input.series = {{.name = "emb",
                   .last_version = 4,
                   .aliases = {{.name = "live", .history = {1, 3}}, {"old", {1}}}}};
}

/// The attributes of the edge between two vertices: the same for both directions.
std::vector<EdgeValue> ValuesOf(const std::string& a, const std::string& b, std::uint64_t dim) {
  const auto number = static_cast<std::int64_t>(std::hash<std::string>()(std::min(a, b)) * 31 +
                                                std::hash<std::string>()(std::max(a, b)));
  std::vector<EdgeValue> values;
  values.emplace_back(number);
  for (std::uint64_t i = 0; i < dim; ++i)
    values.emplace_back(static_cast<float>(number % 1000) / 7.0F + static_cast<float>(i));
  return values;
}

std::string ModelIdOf(const GraphInput& input, VertexId vertex) {
  const auto v = static_cast<std::size_t>(vertex);
  if (input.id_kind == ExternalIdKind::kString) return input.string_ids[v];
  if (input.id_kind == ExternalIdKind::kInteger) return std::to_string(input.integer_ids[v]);
  return std::to_string(vertex);
}

/// Adds the attributes "a" (int64) and "b" (floats [dim]) to the edges.
void AddEdgeAttributes(GraphInput& input, DataType floats, std::uint64_t dim) {
  EdgeAttribute a("a");
  a.attributes = {{"null", "-9223372036854775808"}, {"type", "timestamp"}};
  EdgeAttribute b("b", floats, dim);
  for (std::size_t e = 0; e < input.edges.size(); ++e) {
    const auto values =
        ValuesOf(ModelIdOf(input, input.edges.src[e]), ModelIdOf(input, input.edges.dst[e]), dim);
    a.Add(*values[0].BitsAs(DataType::kInt64));
    for (std::uint64_t i = 1; i <= dim; ++i)
      b.Add(static_cast<float>(std::bit_cast<double>(*values[i].BitsAs(floats))));
  }
  input.edges.attributes = {std::move(a), std::move(b)};
}

/// Gives the edges of a batch their attributes.
WriteBatch WithAttributes(const WriteBatch& drawn, std::uint64_t dim) {
  WriteBatch batch;
  for (const WriteBatch::Operation& one : drawn.operations()) {
    const EdgeFields fields{.type = one.name,
                            .weight = one.weight,
                            .attributes = ValuesOf(ToString(one.id), ToString(one.dst), dim)};
    if (one.kind == WriteBatch::Kind::kPutEdge) batch.PutEdge(one.id, one.dst, fields);
    if (one.kind == WriteBatch::Kind::kUpsertEdge) batch.UpsertEdge(one.id, one.dst, fields);
    if (one.kind == WriteBatch::Kind::kDeleteEdge) batch.DeleteEdge(one.id, one.dst, one.name);
    if (one.kind == WriteBatch::Kind::kPutVertex) batch.PutVertex(one.id, one.name);
    if (one.kind == WriteBatch::Kind::kDeleteVertex) batch.DeleteVertex(one.id);
    if (one.kind == WriteBatch::Kind::kPutRow) batch.PutRow(one.id, one.name, std::span(one.row));
  }
  return batch;
}

/// Checks the values of every edge of a graph against the rule that produced them.
void ExpectValues(const Graph& graph, std::uint64_t dim) {
  const Content content = ContentOf(graph);
  for (const Edge& edge : content.edges) {
    const auto& [src, dst, type, weight, values] = edge;
    const auto expected = ValuesOf(src, dst, dim);
    std::int64_t a = 0;
    std::memcpy(&a, values[0].data(), sizeof(a));
    EXPECT_EQ(a, *expected[0].BitsAs(DataType::kInt64)) << src << " to " << dst;
    for (std::uint64_t i = 0; i < dim; ++i) {
      double b = 0;
      float narrow = 0;
      if (values[1].size() == dim * sizeof(b)) {
        std::memcpy(&b, values[1].data() + i * sizeof(b), sizeof(b));
      } else {
        std::memcpy(&narrow, values[1].data() + i * sizeof(narrow), sizeof(narrow));
        b = narrow;
      }
      EXPECT_EQ(b, std::bit_cast<double>(*expected[i + 1].BitsAs(DataType::kFloat64)));
    }
  }
}

void RenameAll(std::mt19937_64& rng, GraphInput& input) {
  for (std::string& name : input.edge_type_names) name = kNames[name.back() - '0'];
  for (std::string& name : input.vertex_type_names) name = kNames[5 - (name.back() - '0')];
  constexpr std::array<const char*, 9> kOdd = {",", "\"",           "\n", "\r\n", " ",
                                               "#", "\xEF\xBB\xBF", "\t", "a;b|"};
  for (std::string& id : input.string_ids) {
    const std::uint64_t odd = rng() % 20;
    if (odd < kOdd.size()) id = kOdd[odd] + id;
    if (odd == 10) id += " ";
  }
}

TEST(ExportFolderTest, IngestionOfTheFolderGivesTheSameStore) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(round);
    const TempDir dir;
    RandomBase base = testing::DrawBase(rng);
    const std::uint64_t dim = 1 + rng() % 3;
    const bool attributed = rng() % 3 != 0;
    RenameAll(rng, base.input);
    if (attributed)
      AddEdgeAttributes(base.input, rng() % 2 == 0 ? DataType::kFloat32 : DataType::kFloat64, dim);
    AddArrays(rng, base.input);
    UpdateModel model(base.input);
    const bool string_ids = base.string_ids();
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(base.input), base.options));
    const auto store = OpenStore(dir / "g.rz", Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(
        **store, {.topology = rng() % 2 == 0 ? TopologyPlace::kMemory : TopologyPlace::kDirect});
    ASSERT_OK(graph);
    for (int step = 0; step < 3; ++step) {
      RoundTrip(**graph, dir.path(), rng() % 2 == 0 ? 1 : 1 << 20,
                rng() % 3 == 0 ? IngestOptions::Spill::kAlways : IngestOptions::Spill::kNever);
      const auto again = testing::OpenStoreGraph(dir / "again.rz");
      ASSERT_OK(again);
      model.ExpectAgrees(*again->graph, again->graph->info().directions);
      if (attributed) ExpectValues(*again->graph, dim);
      if (HasFailure()) return;
      std::filesystem::remove_all(dir / "again.rz");
      const WriteBatch drawn = model.DrawBatch(rng, string_ids, 1 + rng() % 12);
      model.Apply(drawn);
      ASSERT_OK((*graph)->Write(attributed ? WithAttributes(drawn, dim) : drawn,
                                {.sync = false, .create_types = true}));
      if (model.vertices().empty()) break;
    }
  }
}

TEST(ExportFolderTest, WritesNothingWhereItMustNot) {
  std::mt19937_64 rng(5);
  const TempDir dir;
  ASSERT_OK(testing::BuildStore(dir / "g.rz", testing::RandomGraph(rng, {}), {}));
  const auto open = testing::OpenStoreGraph(dir / "g.rz");
  ASSERT_OK(open);
  const JobControl control;
  EXPECT_STATUS(ExportFolder(*open->graph, dir / "g.rz" / "out", {}, control), kInvalidArgument);
  std::filesystem::create_directory(dir / "empty");
  EXPECT_STATUS(ExportFolder(*open->graph, dir / "empty", {}, control), kAlreadyExists);
  EXPECT_STATUS(ExportFolder(*open->graph, dir / "no" / "such", {}, control), kNotFound);
  EXPECT_FALSE(IsStoreFolder(FileSystem::Posix(), dir / "empty"));
  EXPECT_STATUS(ReadStoreFolder(FileSystem::Posix(), dir / "empty"), kNotFound);
  // A cancelled export leaves neither a folder nor a part of one.
  JobControl cancelled;
  cancelled.Cancel();
  EXPECT_STATUS(ExportFolder(*open->graph, dir / "out", {}, cancelled), kInterrupted);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"empty", "g.rz"}));
}

TEST(ExportFolderTest, ALossInTheFolderIsNoticed) {
  std::mt19937_64 rng(6);
  const TempDir dir;
  GraphInput input = testing::RandomGraph(rng, {.weighted = true});
  AddEdgeAttributes(input, DataType::kFloat32, 1);
  ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(input), {}));
  const auto open = testing::OpenStoreGraph(dir / "g.rz");
  ASSERT_OK(open);
  const JobControl control;
  ASSERT_OK(ExportFolder(*open->graph, dir / "out", {}, control));
  // The rows of an attribute may be compared with the edges before their number is.
  for (const auto& [file, named] :
       {std::pair("vertices.csv", "vertices.csv"), {"edges.csv", "edge"}}) {
    const Path path = dir / "out" / file;
    std::ifstream in(path);
    const std::string whole((std::istreambuf_iterator<char>(in)), {});
    const std::size_t last = whole.rfind('\n', whole.size() - 2);
    std::ofstream(path) << whole.substr(0, last + 1);
    const auto options = ReadStoreFolder(FileSystem::Posix(), dir / "out");
    ASSERT_OK(options);
    const auto made = Ingest(FileSystem::Posix(), dir / "again.rz", *options, control);
    EXPECT_STATUS(made, kInvalidArgument);
    if (!made) {
      EXPECT_NE(made.error().message().find(named), std::string::npos) << made.error().message();
    }
    EXPECT_FALSE(std::filesystem::exists(dir / "again.rz"));
    std::ofstream(path) << whole;
  }
}

// The data sets of RHIZOME_TEST_DATA, with labels, splits, features, types and weights.
TEST(ExportFolderTest, DataSetsSurviveARoundTrip) {
  const auto data = testing::TestData();
  if (!data) GTEST_SKIP() << "RHIZOME_TEST_DATA is not set";
  struct Case {
    const char* name;
    std::vector<std::string> columns;
    bool undirected;
    bool features;
  };
  for (const Case& one : {Case{"cora", {"src", "dst"}, true, true},
                          Case{"wn18rr", {"src", "dst", "type"}, false, false},
                          Case{"codex_m", {"src", "dst", "type"}, false, false}}) {
    SCOPED_TRACE(one.name);
    const TempDir dir;
    IngestOptions options;
    options.edges = {*data / one.name / "edges.tsv.zst"};
    options.nodes = *data / one.name / "nodes.tsv.zst";
    options.node_columns = {"id", "label", "split"};
    if (!one.undirected) options.node_columns.emplace_back("-");
    options.columns = one.columns;
    options.undirected = one.undirected;
    if (one.features) options.arrays = {{"feat", *data / one.name / "features.npy.zst"}};
    const JobControl control;
    ASSERT_OK(Ingest(FileSystem::Posix(), dir / "g.rz", options, control));
    const auto open = testing::OpenStoreGraph(dir / "g.rz");
    ASSERT_OK(open);
    RoundTrip(*open->graph, dir.path(), 1 << 20, IngestOptions::Spill::kNever);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace rhizome
