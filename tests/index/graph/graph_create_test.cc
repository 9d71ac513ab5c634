// Empty stores and changes of the schema: Graph::Create, ParseSchema, SchemaText, SchemaOf, and
// Graph::Alter.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "rhizome/array_add.h"
#include "rhizome/array_change.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_types.h"
#include "testing/update_history.h"

namespace rhizome {
namespace {

using testing::DrawBase;
using testing::ExpectVerifies;
using testing::RandomBase;
using testing::TempDir;
using testing::UpdateModel;

constexpr DataType kDtypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                                DataType::kInt32,   DataType::kUint32,  DataType::kUint8,
                                DataType::kBool,    DataType::kInt8,    DataType::kInt16,
                                DataType::kFloat64, DataType::kBfloat16};

constexpr DataType kEdgeDtypes[] = {DataType::kInt64, DataType::kFloat32, DataType::kFloat64};

/// Draws a schema whose attributes and arrays are in the order of a store, by name.
GraphSchema DrawSchema(std::mt19937_64& rng) {
  GraphSchema schema{
      .text_ids = rng() % 2 == 0, .undirected = rng() % 3 == 0, .weighted = rng() % 2 == 0};
  constexpr Direction kDirections[] = {Direction::kOut, Direction::kIn, Direction::kBoth};
  if (!schema.undirected) schema.directions = kDirections[rng() % 3];
  for (std::uint64_t i = rng() % 3; i > 0; --i)
    schema.vertex_types.push_back("v" + std::to_string(i));
  for (std::uint64_t i = rng() % 3; i > 0; --i)
    schema.edge_types.push_back("e" + std::to_string(i));
  for (std::uint64_t i = 0; i < rng() % 3; ++i)
    schema.edge_attributes.push_back(
        {"a" + std::to_string(i), kEdgeDtypes[rng() % std::size(kEdgeDtypes)], 1 + rng() % 4});
  for (std::uint64_t i = 0; i < rng() % 4; ++i)
    schema.arrays.push_back({.name = "b" + std::to_string(i),
                             .dtype = kDtypes[rng() % std::size(kDtypes)],
                             .dim = 1 + rng() % 9,
                             .layout = rng() % 2 == 0 ? ArrayLayout::kRow : ArrayLayout::kChunk});
  if (!schema.arrays.empty()) schema.arrays[0].attributes = {{"label_names", "[\"a\", \"b\"]"}};
  return schema;
}

/// Returns the schema without attributes of arrays that the engine chooses.
GraphSchema WithoutMissing(GraphSchema schema) {
  for (ArraySchema& array : schema.arrays)
    std::erase_if(array.attributes, [](const auto& fact) { return fact.first == "missing"; });
  return schema;
}

void ExpectEmpty(const Graph& graph) {
  EXPECT_EQ(graph.vertex_count(), 0U);
  EXPECT_EQ(graph.live_vertex_count(), 0U);
  const auto edges = graph.CountEdges();
  ASSERT_OK(edges);
  EXPECT_EQ(*edges, 0U);
  EXPECT_STATUS(graph.FindText("1"), kNotFound);
  for (const ArrayEntry& array : graph.Snapshot()->store().manifest().arrays)
    EXPECT_EQ(array.rows, 0U) << array.name;
}

TEST(GraphSchemaTest, TextReadsBack) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 200; ++round) {
    const GraphSchema schema = DrawSchema(rng);
    const auto parsed = ParseSchema(SchemaText(schema));
    ASSERT_OK(parsed);
    EXPECT_EQ(*parsed, schema) << SchemaText(schema);
  }
}

TEST(GraphSchemaTest, DefaultsAndErrors) {
  EXPECT_EQ(ParseSchema("{}").value(), GraphSchema());
  const auto schema = ParseSchema(
      R"({"ids": "text", "edge_attributes": [{"name": "time"}], "arrays": [{"name": "f"}]})");
  ASSERT_OK(schema);
  EXPECT_TRUE(schema->text_ids);
  EXPECT_EQ(schema->edge_attributes, (std::vector<EdgeAttributeSchema>{{.name = "time"}}));
  EXPECT_EQ(schema->arrays, (std::vector<ArraySchema>{{.name = "f"}}));
  const std::pair<const char*, const char*> wrong[] = {
      {"", "not JSON"},
      {"[]", "not a JSON object"},
      {R"({"id": "text"})", "\"id\""},
      {R"({"ids": "words"})", "\"integer\" or \"text\""},
      {R"({"ids": 1})", "\"ids\" is not a text"},
      {R"({"weighted": "yes"})", "true or false"},
      {R"({"vertex_types": "a"})", "a list of texts"},
      {R"({"vertex_types": [1]})", "a list of texts"},
      {R"({"edge_attributes": {"a": 1}})", "a list of objects"},
      {R"({"edge_attributes": [{"name": "a", "dtype": "int63"}]})", "int63"},
      {R"({"edge_attributes": [{"name": "a", "dim": -1}]})", "a whole number"},
      {R"({"arrays": [{"name": "a", "layout": "rows"}]})", "\"row\" or \"chunk\""},
      {R"({"arrays": [{"name": "a"}, {"nam": "b"}]})", "arrays 1"},
      {R"({"arrays": [{"name": "a", "attributes": {"k": 1}}]})", "attributes"},
  };
  for (const auto& [text, why] : wrong) {
    const auto parsed = ParseSchema(text);
    EXPECT_STATUS(parsed, kInvalidArgument);
    EXPECT_NE(parsed.error().message().find(why), std::string::npos) << parsed.error().message();
  }
}

TEST(GraphCreateTest, HasItsSchemaAndNothingElse) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    const TempDir dir;
    const GraphSchema schema = DrawSchema(rng);
    {
      const auto made = Graph::Create(dir / "g.rz", schema);
      ASSERT_OK(made);
      ExpectEmpty(**made);
      EXPECT_STATUS(Graph::Open(dir / "g.rz", {.mode = Mode::kWrite}), kBusy);
    }
    ExpectVerifies(dir / "g.rz");
    const auto opened = Graph::Open(dir / "g.rz");
    ASSERT_OK(opened);
    ExpectEmpty(**opened);
    EXPECT_EQ(WithoutMissing(SchemaOf(*(*opened)->Snapshot())), schema) << SchemaText(schema);
    EXPECT_STATUS(Graph::Create(dir / "g.rz", schema), kAlreadyExists);
  }
}

TEST(GraphCreateTest, RefusesWhatNoStoreCanHave) {
  const TempDir dir;
  const auto refused = [&](const GraphSchema& schema, StatusCode code) {
    const auto made = Graph::Create(dir / "g.rz", schema);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), code) << made.error().ToString();
    EXPECT_FALSE(std::filesystem::exists(dir / "g.rz")) << made.error().ToString();
  };
  refused({.vertex_types = {}}, StatusCode::kInvalidArgument);
  refused({.edge_types = {"a", "a"}}, StatusCode::kInvalidArgument);
  refused({.edge_attributes = {{.name = "weight"}}}, StatusCode::kAlreadyExists);
  refused({.edge_attributes = {{.name = "a"}, {.name = "a"}}}, StatusCode::kAlreadyExists);
  refused({.edge_attributes = {{.name = "a", .dtype = DataType::kUint8}}},
          StatusCode::kInvalidArgument);
  refused({.edge_attributes = {{.name = "a", .dim = 0}}}, StatusCode::kInvalidArgument);
  refused({.edge_attributes = {{.name = "a", .dim = ~std::uint64_t{0}}}},
          StatusCode::kInvalidArgument);
  refused({.edge_attributes = {{.name = "time", .dtype = DataType::kFloat32}}},
          StatusCode::kInvalidArgument);
  refused({.arrays = {{.name = "a.v1"}}}, StatusCode::kInvalidArgument);
  refused({.arrays = {{.name = "a"}, {.name = "a"}}}, StatusCode::kInvalidArgument);
  refused({.arrays = {{.name = "a", .dim = 0}}}, StatusCode::kInvalidArgument);
  refused({.arrays = {{.name = "a", .dtype = DataType::kInvalid}}}, StatusCode::kInvalidArgument);
}

/// Fills an empty store by random batches and compactions, next to a model.
TEST(GraphCreateTest, GrowsLikeAnyStore) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const TempDir dir;
    GraphSchema schema = DrawSchema(rng);
    schema.edge_attributes.clear();
    schema.arrays = {{.name = "feat", .dim = UpdateModel::kDim}};
    GraphInput like;
    like.undirected = schema.undirected;
    like.vertex_type_names = schema.vertex_types;
    like.edge_type_names = schema.edge_types;
    UpdateModel model(like);
    auto graph = Graph::Create(dir / "g.rz", schema);
    ASSERT_OK(graph);
    for (int step = 0; step < 8; ++step) {
      const WriteBatch batch = model.DrawBatch(rng, schema.text_ids, 1 + rng() % 12);
      model.Apply(batch);
      ASSERT_OK((*graph)->Write(batch, {.sync = false, .create_types = true}));
      model.ExpectAgrees(**graph, schema.undirected ? Direction::kBoth : schema.directions);
      if (step % 3 == 2) {
        ASSERT_OK((*graph)->Compact({}, JobControl()));
        model.ExpectAgrees(**graph, schema.undirected ? Direction::kBoth : schema.directions);
      }
      if (step == 4) {
        graph->reset();
        graph = Graph::Open(dir / "g.rz", {.mode = Mode::kWrite});
        ASSERT_OK(graph);
      }
    }
    graph->reset();
    ExpectVerifies(dir / "g.rz");
  }
}

/// Returns a column of all edges of a snapshot, sorted.
template <typename T>
std::vector<T> Column(const GraphSnapshot& graph, const std::string& name) {
  const auto column = FindEdgeColumn(graph, name);
  EXPECT_OK(column);
  if (!column) return {};
  std::vector<std::int64_t> edges(graph.generation_edge_count());
  for (std::size_t i = 0; i < edges.size(); ++i) edges[i] = static_cast<std::int64_t>(i);
  std::vector<T> values(edges.size() * column->dim);
  EXPECT_OK(ReadEdgeRows(graph, name, edges, std::as_writable_bytes(std::span(values))));
  std::sort(values.begin(), values.end());
  return values;
}

TEST(GraphAlterTest, KeepsEverythingAndAddsColumns) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    const TempDir dir;
    RandomBase base = DrawBase(rng);
    UpdateModel model(base.input);
    const Direction directions = base.options.directions;
    const bool string_ids = base.string_ids();
    const bool weighted = !base.input.edges.weight.empty();
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(base.input), base.options));
    auto graph = Graph::Open(dir / "g.rz", {.mode = Mode::kWrite});
    ASSERT_OK(graph);
    const auto reader = Graph::Open(dir / "g.rz");
    ASSERT_OK(reader);
    for (std::uint64_t i = rng() % 3; i > 0; --i) {
      const WriteBatch batch = model.DrawBatch(rng, string_ids, 1 + rng() % 20);
      model.Apply(batch);
      ASSERT_OK((*graph)->Write(batch, {.sync = false, .create_types = true}));
    }
    ASSERT_OK((*reader)->Refresh());
    const UpdateModel before = model;
    const auto snapshot = (*graph)->Snapshot();
    const auto edges = (*graph)->CountEdges();
    ASSERT_OK(edges);

    const SchemaChange change{
        .weighted = !weighted,
        .edge_attributes = {{.name = "time"},
                            {.name = "amount", .dtype = DataType::kFloat32, .dim = 3}}};
    CompactOptions options = testing::DrawCompaction(rng);
    if (options.repartition && rng() % 2 == 0)
      options.memory_bytes = testing::JustNotHolding(*snapshot, options) + (1 << 20);
    const auto altered = (*graph)->Alter(change, options, JobControl());
    ASSERT_OK(altered);
    EXPECT_TRUE(altered->compacted);
    model.ExpectAgrees(**graph, directions);
    before.ExpectAgrees(*snapshot, directions);
    ASSERT_OK((*reader)->Refresh());
    model.ExpectAgrees(**reader, directions);

    const auto after = (*graph)->Snapshot();
    EXPECT_TRUE(after->info().weighted);
    EXPECT_EQ(Column<std::int64_t>(*after, "time"), std::vector<std::int64_t>(*edges, 0));
    EXPECT_EQ(Column<float>(*after, "amount"), std::vector<float>(3 * *edges, 0));
    if (!weighted) {
      EXPECT_EQ(Column<float>(*after, "weight"), std::vector<float>(*edges, 1));
    }

    EXPECT_STATUS((*graph)->Alter({.weighted = true}, {}, JobControl()), kAlreadyExists);
    EXPECT_STATUS((*graph)->Alter({.edge_attributes = {{.name = "time"}}}, {}, JobControl()),
                  kAlreadyExists);
    EXPECT_STATUS((*graph)->Alter({.edge_attributes = {{.name = "a", .dim = 0}}}, {}, JobControl()),
                  kInvalidArgument);
    const WriteBatch batch = model.DrawBatch(rng, string_ids, 10);
    model.Apply(batch);
    ASSERT_OK((*graph)->Write(batch, {.sync = false, .create_types = true}));
    WriteBatch valued;
    valued.PutEdge(ExternalId("7"), ExternalId("7"),
                   {.weight = 2, .attributes = {0.5, 1.5, 2.5, 17}});
    const auto id = (*graph)->FindText("7");
    if (!string_ids && id) {
      const auto written = (*graph)->Write(valued);
      ASSERT_OK(written);
      ASSERT_OK((*graph)->Compact({}, JobControl()));
      const auto times = Column<std::int64_t>(*(*graph)->Snapshot(), "time");
      EXPECT_NE(std::find(times.begin(), times.end(), 17), times.end());
    } else {
      ASSERT_OK((*graph)->Compact({}, JobControl()));
      model.ExpectAgrees(**graph, directions);
    }
    EXPECT_FALSE((*graph)->Alter({}, {}, JobControl())->compacted);
    ExpectVerifies(dir / "g.rz");
    EXPECT_STATUS((*reader)->Alter(change, {}, JobControl()), kInvalidArgument);
  }
}

/// Writers that run at the same time wait: each of their edges is in the store, with its values.
TEST(GraphAlterTest, WritersWait) {
  const TempDir dir;
  const auto graph = Graph::Create(dir / "g.rz", {});
  ASSERT_OK(graph);
  std::atomic<bool> end = false;
  std::atomic<int> written = 0;
  std::thread writer([&] {
    while (!end || written < 20) {
      WriteBatch batch;
      batch.PutEdge(std::int64_t{written}, std::int64_t{written + 1});
      EXPECT_OK((*graph)->Write(batch, {.sync = false}));
      ++written;
    }
  });
  EXPECT_TRUE(testing::Eventually([&] { return written > 3; }));
  const char* const names[] = {"a", "b", "c", "d"};
  for (const char* const name : names)
    EXPECT_OK((*graph)->Alter({.edge_attributes = {{.name = name}}}, {}, JobControl()));
  end = true;
  writer.join();
  const auto edges = (*graph)->CountEdges();
  ASSERT_OK(edges);
  EXPECT_EQ(*edges, static_cast<std::uint64_t>(written));
  ASSERT_OK((*graph)->Compact({}, JobControl()));
  const auto after = (*graph)->Snapshot();
  for (const char* const name : names)
    EXPECT_EQ(Column<std::int64_t>(*after, name), std::vector<std::int64_t>(*edges, 0)) << name;
  ExpectVerifies(dir / "g.rz");
}

/// An edge attribute is dropped only if no commit of the delta has values of it, which could not be
/// read any more; a reader that is open then follows.
TEST(GraphAlterTest, DroppedAttributesLeaveTheDeltaReadable) {
  const TempDir dir;
  const Path path = dir / "g.rz";
  FileSystem& fs = FileSystem::Posix();
  const auto put = [&](std::vector<EdgeValue> values) {
    const auto graph = Graph::Open(path, {.mode = Mode::kWrite});
    ASSERT_OK(graph);
    WriteBatch batch;
    batch.PutEdge(std::int64_t{1}, std::int64_t{2}, {.attributes = std::move(values)});
    ASSERT_OK((*graph)->Write(batch));
  };
  const auto drop = [&](const std::string& name) {
    return ArrayChange::Run(fs, path, {}, [&](ArrayChange& change) { return change.Drop(name); });
  };
  ASSERT_OK(Graph::Create(path, {.edge_attributes = {{.name = "a"}, {.name = "b"}}}));
  put({7, 8});
  const auto reader = Graph::Open(path);
  ASSERT_OK(reader);
  const Status refused = drop("a");
  EXPECT_STATUS(refused, kInvalidArgument);
  EXPECT_NE(refused.message().find("compact"), std::string::npos) << refused.message();
  {
    const auto store = testing::OpenStore(path, Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    ASSERT_OK((*graph)->Compact({}, JobControl()));
    auto change = ArrayChange::Begin(**store);
    ASSERT_OK(change);
    EXPECT_STATUS(change->Drop("a"), kBusy);
  }
  ASSERT_OK((*reader)->Refresh());
  ASSERT_OK(drop("a"));
  put({9});
  ASSERT_OK((*reader)->Refresh());
  ASSERT_EQ((*reader)->edge_attributes().size(), 1U);
  EXPECT_EQ((*reader)->edge_attributes()[0].name, "b");
  EXPECT_EQ((*reader)->CountEdges().value(), 2U);
  {
    const auto graph = Graph::Open(path, {.mode = Mode::kWrite});
    ASSERT_OK(graph);
    ASSERT_OK((*graph)->Compact({}, JobControl()));
    EXPECT_EQ(Column<std::int64_t>(*(*graph)->Snapshot(), "b"), (std::vector<std::int64_t>{8, 9}));
  }
  ExpectVerifies(path);
}

TEST(GraphAlterTest, CancelledChangesNothing) {
  const TempDir dir;
  const auto graph = Graph::Create(dir / "g.rz", {});
  ASSERT_OK(graph);
  WriteBatch batch;
  batch.PutEdge(std::int64_t{1}, std::int64_t{2});
  ASSERT_OK((*graph)->Write(batch));
  JobControl control;
  control.Cancel();
  EXPECT_STATUS((*graph)->Alter({.weighted = true}, {}, control), kInterrupted);
  EXPECT_FALSE((*graph)->Snapshot()->info().weighted);
  ASSERT_OK((*graph)->Write(batch));
  EXPECT_EQ((*graph)->CountEdges().value(), 2U);
}

/// An array without rows: later rows are put, and compaction keeps them.
TEST(EmptyArrayTest, RowsArePutLater) {
  const TempDir dir;
  {
    const auto graph = Graph::Create(dir / "g.rz", {});
    ASSERT_OK(graph);
    WriteBatch batch;
    for (std::int64_t i = 0; i < 5; ++i) batch.PutVertex(i);
    batch.DeleteVertex(std::int64_t{1});
    ASSERT_OK((*graph)->Write(batch));
    ASSERT_OK((*graph)->Compact({}, JobControl()));
  }
  AddArrayOptions options{
      .file = {.name = "x", .path = {}, .open = EmptyRows(DataType::kFloat32, 2)}};
  const auto added = AddArray(FileSystem::Posix(), dir / "g.rz", options, JobControl());
  ASSERT_OK(added);
  EXPECT_EQ(added->rows_given, 0U);
  const auto graph = Graph::Open(dir / "g.rz", {.mode = Mode::kWrite});
  ASSERT_OK(graph);
  WriteBatch batch;
  batch.PutRow(std::int64_t{3}, "x", {1.5F, -2.0F});
  ASSERT_OK((*graph)->Write(batch));
  for (int round = 0; round < 2; ++round) {
    const VertexId vertices[] = {2, 3};
    float rows[4] = {9, 9, 9, 9};
    ASSERT_OK((*graph)->ReadRows("x", vertices, std::as_writable_bytes(std::span(rows))));
    EXPECT_EQ(std::vector(std::begin(rows), std::end(rows)), (std::vector<float>{0, 0, 1.5, -2}));
    ASSERT_OK((*graph)->Compact({}, JobControl()));
  }
  ExpectVerifies(dir / "g.rz");
}

}  // namespace
}  // namespace rhizome
