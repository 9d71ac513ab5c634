#include "rhizome/ingest.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>

#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_graph.h"
#include "index/input/npy.h"
#include "rhizome/graph.h"
#include "rhizome/text_values.h"
#include "storage/array/array_rules.h"
#include "testing/compressed.h"
#include "testing/testing.h"

// Tests of ingestion in memory: numbering of ids, columns, types, arrays, errors and their
// messages, and random graphs in all input formats, compared with a store built from memory.

namespace rhizome {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using testing::GenerationBytes;
using ::testing::HasSubstr;
using testing::WriteInput;

StoreId FixedId() { return *StoreId::Parse("000102030405060708090a0b0c0d0e0f"); }

template <typename T>
std::string NpyBytes(DataType dtype, std::uint64_t dim, const std::vector<T>& values) {
  const std::vector<std::uint64_t> shape = {values.size() / dim, dim};
  const auto header = EncodeNpyHeader(dtype, shape);
  std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class IngestTest : public ::testing::Test {
 protected:
  Path Write(const std::string& name, std::string_view text) {
    WriteInput(dir_ / name, text);
    return dir_ / name;
  }
  Result<IngestReport> Run(const IngestOptions& options) {
    return Ingest(FileSystem::Posix(), store_path_, options, control_);
  }
  /// Expects a failure with `code` whose message contains all of `parts`, and that no file is left.
  void ExpectRefused(const IngestOptions& options, StatusCode code,
                     const std::vector<std::string>& parts) {
    const auto report = Run(options);
    ASSERT_FALSE(report) << fmt::format("{}", fmt::join(parts, "; "));
    EXPECT_EQ(report.error().code(), code) << report.error().ToString();
    for (const std::string& part : parts)
      EXPECT_NE(report.error().message().find(part), std::string::npos)
          << report.error().message() << " lacks " << part;
    EXPECT_FALSE(std::filesystem::exists(store_path_));
  }
  void OpenStore() {
    auto store = Store::Open(FileSystem::Posix(), store_path_, Store::Mode::kRead);
    ASSERT_OK(store);
    store_ = *std::move(store);
    auto graph = Graph::Open(*store_);
    ASSERT_OK(graph);
    graph_ = *std::move(graph);
  }
  /// Returns the texts of an array of texts by vertex id.
  std::vector<std::string> Texts(std::string_view name) {
    auto texts = TextValues::Open(*graph_, name);
    EXPECT_OK(texts);
    if (!texts) return {};
    std::vector<VertexId> vertices(graph_->vertex_count());
    std::iota(vertices.begin(), vertices.end(), VertexId{0});
    auto values = (*texts)->TextsOfVertices(vertices);
    EXPECT_OK(values);
    return values ? *std::move(values) : std::vector<std::string>();
  }
  /// Returns the rows of an array by vertex id.
  template <typename T>
  std::vector<T> Values(std::string_view name) {
    auto array = store_->OpenArray(name);
    EXPECT_OK(array);
    if (!array) return {};
    const ArrayEntry& entry = (*array)->entry();
    EXPECT_EQ(DataTypeBytes(entry.dtype), sizeof(T));
    std::vector<T> rows(entry.rows * entry.dim);
    EXPECT_OK((*array)->ReadRows(0, entry.rows, std::as_writable_bytes(std::span(rows))));
    std::vector<T> by_vertex(rows.size());
    for (std::size_t row = 0; row < entry.rows; ++row) {
      const auto vertex = static_cast<std::size_t>(*graph_->VertexAt(static_cast<Row>(row)));
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row * entry.dim), entry.dim,
                  by_vertex.begin() + static_cast<std::ptrdiff_t>(vertex * entry.dim));
    }
    return by_vertex;
  }
  std::vector<std::string> Ids() {
    std::vector<std::string> ids;
    for (std::uint64_t v = 0; v < graph_->vertex_count(); ++v)
      ids.push_back(ToString(*graph_->ExternalIdOf(static_cast<VertexId>(v))));
    return ids;
  }

  testing::TempDir dir_;
  Path store_path_ = dir_ / "graph.rz";
  JobControl control_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
};

TEST_F(IngestTest, DenseIntegersAreTheVertexIds) {
  const auto report = Run({.edges = {Write("e.tsv", "2\t0\n1\t2\n")}});
  ASSERT_OK(report);
  EXPECT_EQ(report->generation, 1U);
  EXPECT_EQ(report->info.vertices, 3U);
  EXPECT_EQ(report->info.edges, 2U);
  EXPECT_EQ(report->info.id_kind, ExternalIdKind::kDense);
  OpenStore();
  EXPECT_EQ(*graph_->Find(ExternalId(std::int64_t{2})), 2);
  EXPECT_EQ(*graph_->Neighbors(2, Direction::kOut), (std::vector<Neighbor>{{.vertex = 0}}));
}

TEST_F(IngestTest, OtherIntegersAreNumberedAtFirstSight) {
  IngestOptions options{.edges = {Write("e.tsv", "9\t-4\n7\t9\n5\t7\n")},
                        .nodes = Write("n.tsv", "7\n3\n")};
  const auto report = Run(options);
  ASSERT_OK(report);
  EXPECT_EQ(report->info.id_kind, ExternalIdKind::kInteger);
  OpenStore();
  EXPECT_EQ(Ids(), (std::vector<std::string>{"7", "3", "9", "-4", "5"}));
}

// The first id that is not a canonical decimal turns all ids into strings, so "7" and "07" differ.
TEST_F(IngestTest, OneStringMakesAllIdsStrings) {
  IngestOptions options{
      .edges = {Write("a.tsv", "1\t0\n2\t1\n"), Write("b.tsv", "07\t9223372036854775808\n")},
      .nodes = Write("n.tsv", "7\n")};
  const auto report = Run(options);
  ASSERT_OK(report);
  EXPECT_EQ(report->info.id_kind, ExternalIdKind::kString);
  OpenStore();
  EXPECT_EQ(Ids(), (std::vector<std::string>{"7", "1", "0", "2", "07", "9223372036854775808"}));
  EXPECT_EQ(*graph_->Neighbors(4, Direction::kOut), (std::vector<Neighbor>{{.vertex = 5}}));
}

TEST_F(IngestTest, IdTypeDecides) {
  const Path edges = Write("e.tsv", "1\t0\n");
  ASSERT_OK(Run({.edges = {edges}, .id_type = IdType::kString}));
  OpenStore();
  EXPECT_EQ(Ids(), (std::vector<std::string>{"1", "0"}));
  store_path_ = dir_ / "second.rz";
  for (const char* id : {"01", "x", "9223372036854775808", "1.0", "+1"})
    ExpectRefused(
        {.edges = {Write("b.tsv", fmt::format("1\t0\n2\t{}\n", id))}, .id_type = IdType::kInteger},
        StatusCode::kInvalidArgument, {"b.tsv:2", id});
}

TEST_F(IngestTest, IsolatedVerticesExistByVerticesArraysAndNodes) {
  const Path edges = Write("e.tsv", "0\t3\n");
  ASSERT_OK(Run({.edges = {edges}, .vertices = 6}));
  OpenStore();
  EXPECT_EQ(graph_->vertex_count(), 6U);
  EXPECT_EQ(*graph_->Degree(5, Direction::kBoth), 0U);

  store_path_ = dir_ / "arrays.rz";
  const std::vector<float> x = {0, 1, 2, 3, 4};
  const Path npy = Write("x.npy", NpyBytes(DataType::kFloat32, 1, x));
  ASSERT_OK(Run({.edges = {edges}, .arrays = {{.name = "x", .path = npy}}}));
  OpenStore();
  EXPECT_EQ(Values<float>("x"), x);

  store_path_ = dir_ / "nodes.rz";
  ASSERT_OK(Run({.edges = {edges}, .nodes = Write("n.tsv", "3\n0\n1\n2\n4\n")}));
  OpenStore();
  EXPECT_EQ(graph_->vertex_count(), 5U);
  EXPECT_EQ(graph_->Snapshot()->info().id_kind, ExternalIdKind::kDense);

  store_path_ = dir_ / "sparse-ids.rz";
  ExpectRefused({.edges = {Write("s.tsv", "0\t1000\n")}, .vertices = 6},
                StatusCode::kInvalidArgument, {"`vertices=6`", "0..n-1"});
  ExpectRefused({.edges = {Write("t.tsv", "a\tb\n")}, .vertices = 6}, StatusCode::kInvalidArgument,
                {"`vertices=6`", "strings"});
}

TEST_F(IngestTest, MoreVerticesThanWereSaidAreRefused) {
  const Path edges = Write("e.tsv", "0\t1\n1\t2\n2\t3\n");
  const std::vector<float> x = {0, 1, 2, 3, 4};
  const Path npy = Write("x.npy", NpyBytes(DataType::kFloat32, 1, x));
  const Path nodes = Write("n.tsv", "3\n0\n1\n2\n4\n");
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    ExpectRefused({.edges = {edges}, .vertices = 3, .spill = spill}, StatusCode::kInvalidArgument,
                  {"`vertices=3`", "4 vertices", "up to 3"});
    ExpectRefused(
        {.edges = {edges}, .arrays = {{.name = "x", .path = npy}}, .vertices = 4, .spill = spill},
        StatusCode::kInvalidArgument, {"`vertices=4`", "5 vertices"});
    ExpectRefused({.edges = {edges}, .nodes = nodes, .vertices = 4, .spill = spill},
                  StatusCode::kInvalidArgument, {"`vertices=4`", "5 vertices"});
  }
  ASSERT_OK(Run({.edges = {edges}, .vertices = 4}));
}

TEST_F(IngestTest, UndirectedPairsAreStoredBothWaysAndLoopsOnce) {
  const auto report = Run({.edges = {Write("e.tsv", "0\t1\n1\t1\n2\t1\n")}, .undirected = true});
  ASSERT_OK(report);
  EXPECT_EQ(report->info.edges, 5U);
  EXPECT_TRUE(report->info.symmetric);
  OpenStore();
  EXPECT_EQ(*graph_->Neighbors(1, Direction::kOut),
            (std::vector<Neighbor>{{.vertex = 0}, {.vertex = 1}, {.vertex = 2}}));
}

TEST_F(IngestTest, NodeColumnsBecomeArraysAndTypes) {
  IngestOptions options{
      .edges = {Write("e.csv", "src,kind,dst,w\na,likes,b,0.5\nb,\"hates\",late,2\n")},
      .nodes = Write("n.csv",
                     "id,l,s,t,name,age,size,fold\na,4,train,user,Ann,7,1,val\n"
                     "b,-1,none,item,Bob,-2,2.5,test\nc,0,2,user,\"C, D\",3,4,train\n"),
      .columns = {"src", "type", "dst", "weight"},
      .node_columns = {"id", "label", "split", "ntype", "name", "age", "size", "fold"},
      .header = true};
  const auto report = Run(options);
  ASSERT_OK(report);
  OpenStore();
  EXPECT_EQ(Ids(), (std::vector<std::string>{"a", "b", "c", "late"}));
  EXPECT_EQ(report->info.edge_types, (std::vector<std::string>{"likes", "hates"}));
  EXPECT_EQ(report->info.vertex_types, (std::vector<std::string>{"user", "item", "unknown"}));
  EXPECT_EQ(*graph_->TypeOf(1), 1);
  EXPECT_EQ(*graph_->TypeOf(3), 2);
  EXPECT_EQ(*graph_->Neighbors(1, Direction::kOut),
            (std::vector<Neighbor>{{.vertex = 3, .type = 1, .weight = 2}}));
  EXPECT_EQ(Values<std::int64_t>("label"), (std::vector<std::int64_t>{4, -1, 0, -1}));
  EXPECT_EQ(Values<std::uint8_t>("split"), (std::vector<std::uint8_t>{0, 255, 2, 255}));
  EXPECT_EQ(Values<std::int64_t>("age"), (std::vector<std::int64_t>{7, -2, 3, -1}));
  EXPECT_EQ(Values<float>("size"), (std::vector<float>{1, 2.5, 4, 0}));
  EXPECT_EQ(Values<std::uint8_t>("fold"), (std::vector<std::uint8_t>{1, 2, 0, 255}));
  EXPECT_EQ(Texts("name"), (std::vector<std::string>{"Ann", "Bob", "C, D", ""}));
}

TEST_F(IngestTest, SplitColumnPicksOneOfSeveral) {
  IngestOptions options{.edges = {Write("e.tsv", "0\t1\n")},
                        .nodes = Write("n.tsv", "0\ttrain\ttest\n1\tvalid\tnone\n"),
                        .node_columns = {"id", "split", "split1"},
                        .split_column = "split1"};
  ASSERT_OK(Run(options));
  OpenStore();
  EXPECT_EQ(Values<std::uint8_t>("split"), (std::vector<std::uint8_t>{2, 255}));
  store_path_ = dir_ / "other.rz";
  options.split_column = "absent";
  ExpectRefused(options, StatusCode::kInvalidArgument, {"absent"});
}

TEST_F(IngestTest, LettersOfSeveralSplitsBecomeColumns) {
  IngestOptions options{.edges = {Write("e.tsv", "0\t1\n1\t2\n")},
                        .nodes = Write("n.tsv", "2\ttve\n0\tnet\n"),
                        .node_columns = {"id", "splits"}};
  ASSERT_OK(Run(options));
  OpenStore();
  EXPECT_EQ((*store_->OpenArray("splits"))->entry().dim, 3u);
  EXPECT_EQ(Values<std::uint8_t>("splits"),
            (std::vector<std::uint8_t>{255, 2, 0, 255, 255, 255, 0, 1, 2}));
}

// A word with another length, or with another letter, shows that the column has texts.
TEST_F(IngestTest, LettersOfNoSplitAreTexts) {
  for (const std::string word : {"tv", "tvx", "vents"}) {
    store_path_ = dir_ / (word + ".rz");
    const auto report = Run({.edges = {Write("e.tsv", "0\t1\n1\t2\n")},
                             .nodes = Write("n.tsv", "2\ttve\n0\t" + word + "\n1\tnet\n"),
                             .node_columns = {"id", "splits"}});
    ASSERT_OK(report);
    EXPECT_THAT(report->notes, Contains(AllOf(HasSubstr("splits"), HasSubstr("n.tsv:2"))));
    OpenStore();
    EXPECT_EQ(Texts("splits"), (std::vector<std::string>{word, "net", "tve"}));
  }
}

TEST_F(IngestTest, ArrayRowsFollowTheNodesFile) {
  const std::vector<float> x = {10, 11, 20, 21, 30, 31};
  IngestOptions options{
      .edges = {Write("e.tsv", "2\t0\n1\t2\n")},
      .nodes = Write("n.tsv.bz2", "2\n0\n1\n"),
      .arrays = {{.name = "x", .path = Write("x.npy.bz2", NpyBytes(DataType::kFloat32, 2, x))},
                 {.name = "half",
                  .path = Write("y.npy.zst", NpyBytes(DataType::kFloat32, 2, x)),
                  .dtype = DataType::kFloat16},
                 {.name = "s",
                  .path = Write("s.tsv.xz", "2\t0\t5\n0\t2\t7.5\n"),
                  .dim = 3,
                  .triplets = true}}};
  ASSERT_OK(Run(options));
  OpenStore();
  EXPECT_EQ(Values<float>("x"), (std::vector<float>{20, 21, 30, 31, 10, 11}));
  EXPECT_EQ(Values<std::uint16_t>("half"),
            (std::vector<std::uint16_t>{0x4D00, 0x4D40, 0x4F80, 0x4FC0, 0x4900, 0x4980}));
  EXPECT_EQ(Values<float>("s"), (std::vector<float>{0, 0, 0, 5, 0, 0, 0, 0, 7.5}));
}

// Vertex 3 appears only in an edge.
TEST_F(IngestTest, WhoHasNoLabelIsUnlabelled) {
  IngestOptions options{
      .edges = {Write("e.tsv", "2\t0\n1\t3\n")},
      .nodes = Write("n.tsv", "2\ttest\t5\n0\tvalid\t6\n1\ttrain\t4\n"),
      .arrays = {{.name = "label",
                  .path = Write("l.npy", NpyBytes<std::int64_t>(DataType::kInt64, 1, {7, 8, 9}))},
                 {.name = "split",
                  .path = Write("s.npy", NpyBytes<std::uint8_t>(DataType::kUint8, 1, {1, 0, 2}))}}};
  options.node_columns = {"id", "fold", "grade"};
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    options.spill = spill;
    ASSERT_OK(Run(options));
    OpenStore();
    EXPECT_EQ(Values<std::int64_t>("label"), (std::vector<std::int64_t>{8, 9, 7, -1}));
    EXPECT_EQ(Values<std::uint8_t>("split"), (std::vector<std::uint8_t>{0, 2, 1, 255}));
    EXPECT_EQ(Values<std::uint8_t>("fold"), (std::vector<std::uint8_t>{1, 0, 2, 255}));
    EXPECT_EQ(Values<std::int64_t>("grade"), (std::vector<std::int64_t>{6, 4, 5, -1}));
    EXPECT_EQ(MissingRowOf(*store_->manifest().FindArray("fold")), MissingRow::kNoSplit);
    graph_.reset();
    store_.reset();
    std::filesystem::remove_all(store_path_);
  }
}

TEST_F(IngestTest, NumbersThatWouldChangeAreRefused) {
  const auto refuse = [&](const std::string& lines, const std::vector<std::string>& parts) {
    ExpectRefused({.edges = {Write("e.tsv", lines)}, .columns = {"src", "dst", "amount"}},
                  StatusCode::kInvalidArgument, parts);
    std::string nodes;
    std::istringstream in(lines);
    for (std::string src, dst, value; in >> src >> dst >> value;)
      nodes += src + "\t" + value + "\n";
    ExpectRefused({.edges = {Write("p.tsv", "0\t1\n")},
                   .nodes = Write("n.tsv", nodes),
                   .node_columns = {"id", "amount"}},
                  StatusCode::kInvalidArgument, parts);
  };
  refuse("0\t1\t1\n1\t2\t9223372036854775808\n", {":2", "amount", "beyond int64"});
  refuse("0\t1\t9007199254740993\n1\t2\t0.5\n", {":2", "'0.5'", "amount", "round"});
  refuse("0\t1\t0.5\n1\t2\t-9007199254740993\n", {":2", "'-9007199254740993'", "round"});
  refuse("0\t1\t0.5\n1\t2\t1e400\n", {":2", "'1e400'", "amount"});
  refuse("0\t1\t0.5\n1\t2\ttrue\n", {":2", "'true'", "amount", "numbers"});
  refuse("0\t1\t0.5\n1\t2\t2024-05-01\n", {":2", "'2024-05-01'", "amount", "numbers"});
}

TEST_F(IngestTest, BadLinesAreSkippedAndCountedUpToTheLimit) {
  IngestOptions options{
      .edges = {Write("e.tsv", "a\tb\nbad\nb\t\na\tc\n\xFF\ta\n")},
      .nodes = Write("n.tsv", "a\t1\nb\tx\nc\t3\na\t4\n"),
      .arrays = {{.name = "x",
                  .path = Write("x.npy", NpyBytes<float>(DataType::kFloat32, 1, {1, 2, 3, 4}))}},
      .node_columns = {"id", "label"},
      .types = {{"label", "int64"}},
      .max_bad_lines = 5};
  const auto report = Run(options);
  ASSERT_OK(report);
  EXPECT_EQ(report->bad_lines, 5U);
  OpenStore();
  EXPECT_EQ(Ids(), (std::vector<std::string>{"a", "c", "b"}));
  EXPECT_EQ(*graph_->CountEdges(), 2U);
  EXPECT_EQ(Values<std::int64_t>("label"), (std::vector<std::int64_t>{1, 3, -1}));
  EXPECT_EQ(Values<float>("x"), (std::vector<float>{1, 3, 0}));
  store_path_ = dir_ / "strict.rz";
  options.max_bad_lines = 4;
  ExpectRefused(options, StatusCode::kInvalidArgument, {"e.tsv:5", "4 are allowed"});
}

TEST_F(IngestTest, MalformedEdgesAreNamedAndNothingIsCommitted) {
  const auto refuse = [&](const std::string& text, std::vector<std::string> columns,
                          const std::string& why) {
    ExpectRefused({.edges = {Write("e.tsv", text)}, .columns = std::move(columns)},
                  StatusCode::kInvalidArgument, {"e.tsv:2", why});
  };
  refuse("0\t1\n2\n", {"src", "dst"}, "1 field found, 2 expected");
  refuse("0\t1\n2\t3\t4\n", {"src", "dst"}, "3 fields found");
  refuse("0\t1\n\t3\n", {"src", "dst"}, "empty");
  refuse("0\t1\n\xC3\x28\t3\n", {"src", "dst"}, "UTF-8");
  for (const char* weight : {"nan", "inf", "-inf", "1e99", "x", ""})
    refuse(fmt::format("0\t1\t1\n2\t3\t{}\n", weight), {"src", "dst", "weight"}, "finite");
  for (const char* type : {"", "a\x01", "\x7F", "\xC2\x85"})
    refuse(fmt::format("0\t1\tt\n2\t3\t{}\n", type), {"src", "dst", "type"}, "type");
  std::string many;
  for (int i = 0; i < 65537; ++i) many += fmt::format("0\t1\tt{}\n", i);
  ExpectRefused({.edges = {Write("m.tsv", many)}, .columns = {"src", "dst", "type"}},
                StatusCode::kInvalidArgument, {"m.tsv:65537", "65536"});
}

TEST_F(IngestTest, MalformedNodesAreNamedAndNothingIsCommitted) {
  const Path edges = Write("e.tsv", "0\t1\n");
  const auto refuse = [&](const std::string& text, std::vector<std::string> columns,
                          const std::string& why) {
    ExpectRefused(
        {.edges = {edges}, .nodes = Write("n.tsv", text), .node_columns = std::move(columns)},
        StatusCode::kInvalidArgument, {"n.tsv:2", why});
  };
  refuse("0\n0\n", {"id"}, "'0' is repeated");
  refuse("a\na\n", {"id"}, "'a' is repeated");
  refuse("0\ttrain\n1\ttraining\n", {"id", "split"}, "'training'");
  refuse("0\t0\n1\t3\n", {"id", "split"}, "'3'");
  for (const char* label : {"1.5", "-2.0", "1e3"})
    refuse(fmt::format("0\t1\n1\t{}\n", label), {"id", "label"}, fmt::format("label '{}'", label));
  refuse("0\t1.5\n1\tred\n", {"id", "colour"}, "'red'");
  refuse("0\tuser\n1\tno\x01good\n", {"id", "type"}, "control");
  refuse("0\n1\t2\n", {"id"}, "2 fields found");
}

TEST_F(IngestTest, WordsBecomeTextsAndNamesOfClasses) {
  ASSERT_OK(Run({.edges = {Write("e.tsv", "0\t1\n1\t2\n")},
                 .nodes = Write("n.tsv",
                                "0\t1\t1\ttrain\tuser\n1\tred\tred\tred\ta/b\n"
                                "2\t1.5\t1.5\ttest\tuser\n"),
                 .node_columns = {"id", "label", "number", "word", "type"}}));
  OpenStore();
  EXPECT_EQ(Values<std::int64_t>("label"), (std::vector<std::int64_t>{0, 2, 1}));
  EXPECT_EQ(Texts("label"), (std::vector<std::string>{"1", "red", "1.5"}));
  EXPECT_EQ(Texts("number"), (std::vector<std::string>{"1", "red", "1.5"}));
  EXPECT_EQ(Texts("word"), (std::vector<std::string>{"train", "red", "test"}));
  EXPECT_EQ(graph_->Snapshot()->info().vertex_types, (std::vector<std::string>{"user", "a/b"}));

  store_path_ = dir_ / "typed.rz";
  ASSERT_OK(Run({.edges = {Write("e.tsv", "0\t1\n")},
                 .nodes = Write("n.tsv", "0\t2.5\n1\t1.5\n"),
                 .node_columns = {"id", "label"},
                 .types = {{"label", "text"}}}));
  OpenStore();
  EXPECT_EQ(Texts("label"), (std::vector<std::string>{"2.5", "1.5"}));
}

TEST_F(IngestTest, BadColumnsAreNamed) {
  const Path edges = Write("e.tsv", "0\t1\n");
  const auto with_columns = [&](std::vector<std::string> columns, const std::string& why) {
    ExpectRefused({.edges = {edges}, .columns = std::move(columns)}, StatusCode::kInvalidArgument,
                  {why});
  };
  with_columns({"src", "dst", "../time"}, "../time");
  with_columns({"src", "src", "dst"}, "names 'src' twice");
  with_columns({"src"}, "src and dst");
  const Path nodes = Write("n.tsv", "0\n1\n");
  const auto with_nodes = [&](std::vector<std::string> columns, const std::string& why) {
    ExpectRefused({.edges = {edges}, .nodes = nodes, .node_columns = std::move(columns)},
                  StatusCode::kInvalidArgument, {why});
  };
  with_nodes({"label"}, "id");
  with_nodes({"id", "type", "ntype"}, "type");
  with_nodes({"id", "x", "x"}, "'x'");
  with_nodes({"id", "../x"}, "../x");
  ExpectRefused({}, StatusCode::kInvalidArgument, {"no input"});
  ExpectRefused({.edges = {Write("empty.tsv", "")}}, StatusCode::kInvalidArgument, {"no vertices"});
}

TEST_F(IngestTest, ArraysOfTheWrongShapeTypeOrNameAreRefused) {
  const Path edges = Write("e.tsv", "0\t1\n1\t2\n");
  const Path x = Write("x.npy", NpyBytes<float>(DataType::kFloat32, 2, {1, 2, 3, 4, 5, 6}));
  const auto refuse = [&](const ArrayFile& file, const std::vector<std::string>& parts) {
    ExpectRefused({.edges = {edges}, .arrays = {file}}, StatusCode::kInvalidArgument, parts);
  };
  for (const char* name : {"../../etc/x", "a/b", "", ".x", "a b", "x@1"})
    refuse({.name = name, .path = x}, {"array", name});
  for (const char* name : {"zarr.json", "vertex_id", "external_id_", "row", "x.v2", "x.crc32c"})
    refuse({.name = name, .path = x}, {name, "choose another name"});
  refuse({.name = "x", .path = x, .dim = 3}, {"x.npy", "3 columns", "has 2"});
  refuse({.name = "x", .path = x, .dtype = DataType::kInt64}, {"x.npy", "float32", "int64"});
  const Path c8 =
      Write("c8.npy", std::string("\x93NUMPY\x01\x00\x3e\x00", 10) +
                          "{'descr': '<c8', 'fortran_order': False, 'shape': (3, 1), }  \n");
  refuse({.name = "x", .path = c8}, {"c8.npy", "<c8"});
  const Path big = Write("big.npy", NpyBytes<float>(DataType::kFloat32, 1, {1, 2, 1e9F}));
  refuse({.name = "x", .path = big, .dtype = DataType::kFloat16}, {"big.npy", "row 2", "float16"});
  const Path few = Write("few.npy", NpyBytes<float>(DataType::kFloat32, 1, {1, 2}));
  refuse({.name = "x", .path = few}, {"few.npy", "2 rows", "3 rows are expected"});
  const std::string whole = NpyBytes<float>(DataType::kFloat32, 1, {1, 2, 3});
  const Path cut = Write("cut.npy", whole.substr(0, whole.size() - 3));
  refuse({.name = "x", .path = cut}, {"cut.npy", "12 bytes", "9 found"});
  ExpectRefused(
      {.edges = {edges}, .nodes = Write("n.tsv", "0\n1\n"), .arrays = {{.name = "x", .path = x}}},
      StatusCode::kInvalidArgument, {"x.npy", "3 rows", "2 lines"});
  ExpectRefused({.edges = {edges}, .arrays = {{.name = "x", .path = x}, {.name = "x", .path = x}}},
                StatusCode::kInvalidArgument, {"'x'"});
  ExpectRefused({.edges = {Write("s.tsv", "a\tb\n")}, .arrays = {{.name = "x", .path = x}}},
                StatusCode::kInvalidArgument, {"array 'x'", "nodes file"});
}

TEST_F(IngestTest, BadTripletsAreRefused) {
  const Path edges = Write("e.tsv", "0\t1\n1\t2\n");
  const auto refuse = [&](const std::string& text, std::uint64_t dim,
                          const std::vector<std::string>& parts) {
    ExpectRefused(
        {.edges = {edges},
         .arrays = {{.name = "s", .path = Write("s.tsv", text), .dim = dim, .triplets = true}}},
        StatusCode::kInvalidArgument, parts);
  };
  refuse("0\t0\t1\n", 0, {"s.tsv", "`dim`"});
  refuse("0\t0\t1\n1\t3\t1\n", 3, {"s.tsv:2", "column 3"});
  refuse("0\t0\t1\n-1\t0\t1\n", 3, {"s.tsv:2", "row"});
  refuse("0\t0\t1\n1\t-1\t1\n", 3, {"s.tsv:2", "column"});
  refuse("0\t0\t1\n1\t0\tred\n", 3, {"s.tsv:2", "'red'"});
  refuse("0\t0\t1\n1\t0\t1e400\n", 3, {"s.tsv:2", "'1e400'"});
  refuse("0\t0\t1\n1\t0\n", 3, {"s.tsv:2", "2 fields"});
  refuse("1\t0\t1\n0\t2\t1\n1\t0\t2\n", 3, {"row 1, column 0", "repeated"});
  ExpectRefused(
      {.edges = {edges},
       .nodes = Write("n.tsv", "0\n1\n2\n"),
       .arrays = {{.name = "s", .path = Write("s.tsv", "3\t0\t1\n"), .dim = 3, .triplets = true}}},
      StatusCode::kInvalidArgument, {"s.tsv", "3 lines"});
}

TEST_F(IngestTest, TripletsMayBeNanAndInfinite) {
  ASSERT_OK(Run({.edges = {Write("e.tsv", "0\t1\n")},
                 .arrays = {{.name = "s",
                             .path = Write("s.tsv", "0\t1\tnan\n1\t0\t-inf\n"),
                             .dim = 2,
                             .triplets = true}}}));
  OpenStore();
  const std::vector<float> rows = Values<float>("s");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0], 0);
  EXPECT_TRUE(std::isnan(rows[1]));
  EXPECT_EQ(rows[2], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(rows[3], 0);
}

TEST_F(IngestTest, TypesByFileAndByColumnAreRefused) {
  EdgeFile edges(Write("e.tsv", "1\t2\tb\n"));
  edges.type = "t";
  ExpectRefused({.edges = {edges}, .columns = {"src", "dst", "type"}}, StatusCode::kInvalidArgument,
                {"e.tsv", "'t'", "column 'type'"});
}

TEST_F(IngestTest, BadNpyEdgesAreRefused) {
  const auto refuse = [&](const Path& path, std::vector<std::string> columns,
                          const std::string& why) {
    ExpectRefused({.edges = {path}, .columns = std::move(columns)}, StatusCode::kInvalidArgument,
                  {path.filename().string(), why});
  };
  const std::vector<std::string> two = {"src", "dst"};
  refuse(Write("f.npy", NpyBytes<float>(DataType::kFloat32, 2, {1, 2})), two, "float32");
  refuse(Write("t.npy", NpyBytes<std::int64_t>(DataType::kInt64, 3, {1, 2, 3})), two, "[1, 3]");
  const std::string good = NpyBytes<std::int64_t>(DataType::kInt64, 2, {0, 1, 1, 2, 2, 0});
  refuse(Write("g.npy", good), {"src", "dst", "weight"}, "src,dst,weight");
  refuse(Write("c.npy", good.substr(0, good.size() - 8)), two, "40 found");
  refuse(Write("l.npy", good + "more"), two, "there are more");
}

TEST_F(IngestTest, MissingAndTruncatedFilesLeaveNothing) {
  ExpectRefused({.edges = {dir_ / "absent.tsv"}}, StatusCode::kNotFound, {"absent.tsv"});
  const Path edges = Write("e.tsv", "0\t1\n");
  ExpectRefused({.edges = {edges}, .nodes = dir_ / "absent.tsv"}, StatusCode::kNotFound,
                {"absent.tsv"});
  ExpectRefused({.edges = {edges}, .arrays = {{.name = "x", .path = dir_ / "absent.npy"}}},
                StatusCode::kNotFound, {"absent.npy"});
  const std::string gzip = testing::Gzip("0\t1\n1\t2\n");
  std::ofstream(dir_ / "cut.tsv.gz", std::ios::binary) << gzip.substr(0, gzip.size() / 2);
  ExpectRefused({.edges = {dir_ / "cut.tsv.gz"}}, StatusCode::kInvalidArgument,
                {"cut.tsv.gz", "truncated"});
}

TEST_F(IngestTest, ExistingPathIsNotTouched) {
  const Path edges = Write("e.tsv", "0\t1\n");
  ASSERT_OK(Run({.edges = {edges}}));
  const auto before = GenerationBytes(store_path_);
  EXPECT_STATUS(Run({.edges = {Write("other.tsv", "0\t1\n1\t2\n")}}), kAlreadyExists);
  EXPECT_EQ(GenerationBytes(store_path_), before);
  store_path_ = Write("file.rz", "precious");
  EXPECT_STATUS(Run({.edges = {edges}}), kAlreadyExists);
  store_path_ = dir_ / "folder";
  std::filesystem::create_directory(store_path_);
  WriteInput(store_path_ / "precious", "data");
  EXPECT_STATUS(Run({.edges = {edges}}), kAlreadyExists);
  EXPECT_TRUE(std::filesystem::exists(store_path_ / "precious"));
  store_path_ = dir_ / "empty";
  std::filesystem::create_directory(store_path_);
  EXPECT_OK(Run({.edges = {edges}}));
}

// The builder finds an error that reading could not find. Everything that was created is removed.
TEST_F(IngestTest, FailureWhileBuildingLeavesTheFolderAsItWas) {
  IngestOptions options{.edges = {Write("e.tsv", "0\t1\n")}};
  options.build.partition.partitions = 0;
  EXPECT_FALSE(Run(options));
  EXPECT_FALSE(std::filesystem::exists(store_path_));
  std::filesystem::create_directory(store_path_);
  EXPECT_FALSE(Run(options));
  EXPECT_TRUE(std::filesystem::is_empty(store_path_));
}

TEST_F(IngestTest, MemoryLimitStopsBeforeAnythingIsWritten) {
  std::string text;
  for (int i = 0; i < 200000; ++i) text += fmt::format("{}\t{}\n", i, i + 1);
  ExpectRefused({.edges = {Write("e.tsv", text)}, .memory_bytes = 1 << 20},
                StatusCode::kOutOfMemory, {"MiB", "limit is 1 MiB"});
  std::string header(
      reinterpret_cast<const char*>(
          EncodeNpyHeader(DataType::kInt64, std::vector<std::uint64_t>{1ULL << 50, 2}).data()),
      128);
  ExpectRefused({.edges = {Write("huge.npy", header)},
                 .memory_bytes = 1 << 30,
                 .spill = IngestOptions::Spill::kNever},
                StatusCode::kOutOfMemory, {"huge.npy"});
  ExpectRefused({.edges = {Write("huge.npy", header)}, .memory_bytes = 1 << 30},
                StatusCode::kInvalidArgument, {"huge.npy", "truncated"});
}

TEST_F(IngestTest, CancelLeavesNothing) {
  control_.Cancel();
  ExpectRefused({.edges = {Write("e.tsv", "0\t1\n")}}, StatusCode::kInterrupted, {});
}

TEST_F(IngestTest, ProgressNamesItsPhases) {
  std::vector<std::string> phases;
  JobControl control([&](const JobControl::Progress& progress) {
    if (phases.empty() || phases.back() != progress.phase) phases.emplace_back(progress.phase);
  });
  IngestOptions options{
      .edges = {Write("e.tsv", "0\t1\n")},
      .nodes = Write("n.tsv", "0\n1\n"),
      .arrays = {
          {.name = "x", .path = Write("x.npy", NpyBytes<float>(DataType::kFloat32, 1, {1, 2}))}}};
  ASSERT_OK(Ingest(FileSystem::Posix(), store_path_, options, control));
  ASSERT_GE(phases.size(), 3U);
  EXPECT_EQ((std::vector<std::string>(phases.begin(), phases.begin() + 3)),
            (std::vector<std::string>{"read nodes", "read edges", "read arrays"}));
}

// --- For a random graph, every input format yields the bytes that the builder produces from memory

/// A random typed graph, as text files and as the expected GraphInput.
class RandomFiles {
 public:
  RandomFiles(std::uint64_t seed, ExternalIdKind kind) : random_(seed), kind_(kind) {
    vertices_ = 1 + Pick(40);
    for (std::uint64_t v = 0; v < vertices_; ++v) ids_.push_back(MakeId(v));
    std::shuffle(ids_.begin(), ids_.end(), random_);
    for (std::uint64_t v = 0; v < vertices_; ++v) {
      labels_.push_back(static_cast<std::int64_t>(Pick(5)) - 1);
      splits_.push_back(std::vector<std::uint8_t>{0, 1, 2, 255}[Pick(4)]);
      types_.push_back(Pick(3));
      for (int c = 0; c < 3; ++c) x_.push_back(static_cast<float>(Pick(1000)) / 8);
    }
    for (std::uint64_t e = Pick(200); e > 0; --e)
      edges_.push_back({Pick(vertices_), Pick(vertices_), Pick(4), Pick(16)});
  }

  std::string Edges(char separator) const {
    std::string text;
    for (const Edge& edge : edges_)
      text += fmt::format("{}{}{}{}rel_{}{}{}\n", ids_[edge.src], separator, ids_[edge.dst],
                          separator, edge.type, separator, static_cast<double>(edge.weight) / 4);
    return text;
  }
  std::string NpyEdges() const {
    std::vector<std::int64_t> pairs;
    for (const Edge& edge : edges_)
      for (const std::uint64_t end : {edge.src, edge.dst}) pairs.push_back(std::stoll(ids_[end]));
    return NpyBytes(DataType::kInt64, 2, pairs);
  }
  std::string Nodes(char separator) const {
    std::string text;
    for (std::size_t v = 0; v < vertices_; ++v)
      text += fmt::format("{}{}{}{}{}{}kind{}\n", ids_[v], separator, labels_[v], separator,
                          splits_[v], separator, types_[v]);
    return text;
  }
  std::string Features() const { return NpyBytes(DataType::kFloat32, 3, x_); }
  std::string Triplets(char separator) const {
    std::string text;
    for (std::size_t v = vertices_; v-- > 0;)
      for (std::size_t c = 0; c < 3; ++c)
        if (x_[3 * v + c] != 0)
          text += fmt::format("{}{}{}{}{}\n", v, separator, c, separator, x_[3 * v + c]);
    return text;
  }

  /// Returns the expected GraphInput. `bare` means edges without types and weights.
  GraphInput Input(bool bare) const {
    GraphInput input;
    input.vertex_count = vertices_;
    input.id_kind = kind_;
    input.weighted = !bare;  // even without edges, since the files have the column
    for (std::size_t line = 0; line < vertices_; ++line) {
      if (kind_ == ExternalIdKind::kInteger) input.integer_ids.push_back(std::stoll(ids_[line]));
      if (kind_ == ExternalIdKind::kString) input.string_ids.push_back(ids_[line]);
    }
    std::map<std::uint64_t, TypeId> type_ids;
    input.edge_type_names.clear();
    for (const Edge& edge : edges_) {
      input.edges.src.push_back(VertexOf(edge.src));
      input.edges.dst.push_back(VertexOf(edge.dst));
      if (bare) continue;
      const auto [known, added] = type_ids.emplace(edge.type, type_ids.size());
      if (added) input.edge_type_names.push_back(fmt::format("rel_{}", edge.type));
      input.edges.type.push_back(known->second);
      input.edges.weight.push_back(static_cast<float>(edge.weight) / 4);
    }
    if (input.edge_type_names.empty()) input.edge_type_names = {"edge"};
    if (input.edge_type_names.size() == 1) input.edges.type.clear();
    SetTypes(input);
    std::vector<float> x(x_.size());
    std::vector<std::int64_t> labels(vertices_);
    std::vector<std::uint8_t> splits(vertices_);
    for (std::size_t line = 0; line < vertices_; ++line) {
      const auto v = static_cast<std::size_t>(VertexOf(line));
      labels[v] = labels_[line];
      splits[v] = splits_[line];
      for (std::size_t c = 0; c < 3; ++c) x[3 * v + c] = x_[3 * line + c];
    }
    AddArray(input, "label", DataType::kInt64, 1, labels);
    AddArray(input, "split", DataType::kUint8, 1, splits);
    AddArray(input, "x", DataType::kFloat32, 3, x);
    return input;
  }

 private:
  struct Edge {
    std::uint64_t src, dst, type, weight;
  };
  std::uint64_t Pick(std::uint64_t bound) { return random_() % bound; }
  std::string MakeId(std::uint64_t v) const {
    if (kind_ == ExternalIdKind::kDense) return std::to_string(v);
    // Some ids are negative, so that the ids are never 0..n-1.
    if (kind_ == ExternalIdKind::kInteger)
      return std::to_string(static_cast<std::int64_t>(v) * 3 - 9);
    return fmt::format("w{}\xC3\xA9", v);
  }
  VertexId VertexOf(std::uint64_t line) const {
    return kind_ == ExternalIdKind::kDense ? std::stoll(ids_[line]) : static_cast<VertexId>(line);
  }
  void SetTypes(GraphInput& input) const {
    std::map<std::uint64_t, TypeId> type_ids;
    input.vertex_type_names.clear();
    input.vertex_type.resize(vertices_);
    for (std::size_t line = 0; line < vertices_; ++line) {
      const auto [known, added] = type_ids.emplace(types_[line], type_ids.size());
      if (added) input.vertex_type_names.push_back(fmt::format("kind{}", types_[line]));
      input.vertex_type[static_cast<std::size_t>(VertexOf(line))] = known->second;
    }
  }
  template <typename T>
  static void AddArray(GraphInput& input, std::string name, DataType dtype, std::uint64_t dim,
                       std::vector<T> values) {
    ArrayInput array;
    array.name = std::move(name);
    array.dim = dim;
    array.dtype = dtype;
    array.codec.element_bytes = sizeof(T);
    array.read_rows = [values, dim](std::span<const VertexId> vertices, std::span<std::byte> out) {
      for (std::size_t i = 0; i < vertices.size(); ++i)
        std::memcpy(out.data() + i * dim * sizeof(T),
                    values.data() + static_cast<std::size_t>(vertices[i]) * dim, dim * sizeof(T));
      return Status::Ok();
    };
    input.arrays.push_back(std::move(array));
  }

  std::mt19937_64 random_;
  const ExternalIdKind kind_;
  std::uint64_t vertices_ = 0;
  std::vector<std::string> ids_;  // by line of the nodes file
  std::vector<std::int64_t> labels_;
  std::vector<std::uint8_t> splits_;
  std::vector<std::uint64_t> types_;
  std::vector<float> x_;
  std::vector<Edge> edges_;
};

class IngestFormatsTest : public IngestTest {
 protected:
  void CompareAll(const RandomFiles& graph, bool integers) {
    BuildOptions build;
    build.partition.partitions = 3;
    const auto from_memory = [&](const std::string& name, bool bare) {
      const Path path = dir_ / name;
      EXPECT_OK(
          IngestGraph(FileSystem::Posix(), path, graph.Input(bare), build, FixedId(), control_));
      return GenerationBytes(path);
    };
    const auto expected = from_memory("memory.rz", false);
    ASSERT_FALSE(expected.empty());
    for (const char* format : {"tsv", "tsv.gz", "csv.zst", "tsv.bz2", "csv.xz"}) {
      const char separator = format[0] == 'c' ? ',' : '\t';
      IngestOptions options = Options(graph, format, separator, build);
      options.edges = {Write(fmt::format("e.{}", format), graph.Edges(separator))};
      options.columns = {"src", "dst", "type", "weight"};
      Compare(options, expected, format);
    }
    if (!integers) return;
    const auto bare = from_memory("bare.rz", true);
    for (const char* name : {"e.npy", "e.npy.gz"}) {
      IngestOptions options = Options(graph, "tsv.zst", '\t', build);
      options.edges = {Write(name, graph.NpyEdges())};
      options.edges[0].sources_first = false;  // there may be two edges
      Compare(options, bare, name);
    }
  }

 private:
  IngestOptions Options(const RandomFiles& graph, const std::string& format, char separator,
                        const BuildOptions& build) {
    const bool sparse = format.ends_with("gz");
    const std::string x = sparse ? "x." + format : format.ends_with("zst") ? "x.npy.zst" : "x.npy";
    IngestOptions options;
    options.nodes = Write("n." + format, graph.Nodes(separator));
    options.node_columns = {"id", "label", "split", "type"};
    options.arrays = {{.name = "x",
                       .path = Write(x, sparse ? graph.Triplets(separator) : graph.Features()),
                       .dim = 3,
                       .triplets = sparse}};
    options.build = build;
    options.store_id = FixedId();
    return options;
  }
  void Compare(const IngestOptions& options, const std::map<std::string, std::string>& expected,
               const std::string& what) {
    store_path_ = dir_ / ("file-" + what + ".rz");
    ASSERT_OK(Run(options));
    const auto found = GenerationBytes(store_path_);
    ASSERT_EQ(found.size(), expected.size()) << what;
    for (const auto& [name, bytes] : expected) {
      ASSERT_TRUE(found.contains(name)) << what << " " << name;
      EXPECT_TRUE(found.at(name) == bytes) << what << ": " << name << " differs";
    }
  }
};

TEST_F(IngestFormatsTest, AllFormatsGiveTheStoreThatIsBuiltFromMemory) {
  const std::uint64_t seed = testing::TestSeed();
  CompareAll(RandomFiles(seed, ExternalIdKind::kDense), true);
}
TEST_F(IngestFormatsTest, AllFormatsAgreeForSparseIntegers) {
  CompareAll(RandomFiles(testing::TestSeed(), ExternalIdKind::kInteger), true);
}
TEST_F(IngestFormatsTest, AllFormatsAgreeForStrings) {
  CompareAll(RandomFiles(testing::TestSeed(), ExternalIdKind::kString), false);
}

}  // namespace
}  // namespace rhizome
