#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "index/ingest/column_roles.h"
#include "index/input/npy.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::WriteInput;
using Names = std::vector<std::string>;
using Edges = std::multiset<std::pair<std::string, std::string>>;

template <typename T>
std::string NpyBytes(DataType dtype, const std::vector<std::uint64_t>& shape,
                     const std::vector<T>& values) {
  const auto header = EncodeNpyHeader(dtype, shape);
  std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class SniffTest : public ::testing::Test {
 protected:
  Path Write(const std::string& name, std::string_view text) {
    WriteInput(dir_ / name, text);
    return dir_ / name;
  }

  Result<InputPlan> SniffOf(const IngestOptions& options) {
    return Sniff(FileSystem::Posix(), options);
  }
  Result<InputPlan> SniffText(const std::string& name, std::string_view text) {
    return SniffOf({.edges = {Write(name, text)}});
  }

  /// Expects that Sniff refuses the options with a message that has all of `parts`.
  void ExpectRefused(const IngestOptions& options, const Names& parts) {
    const auto plan = SniffOf(options);
    ASSERT_FALSE(plan) << fmt::format("{}", fmt::join(parts, "; "));
    EXPECT_EQ(plan.error().code(), StatusCode::kInvalidArgument);
    for (const std::string& part : parts)
      EXPECT_NE(plan.error().message().find(part), std::string::npos)
          << plan.error().message() << " lacks " << part;
  }

  /// The same of Ingest.
  void ExpectIngestRefused(const IngestOptions& options, const Names& parts) {
    const auto report = Ingest(FileSystem::Posix(), dir_ / "no.rz", options, JobControl());
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument);
    for (const std::string& part : parts)
      EXPECT_NE(report.error().message().find(part), std::string::npos)
          << report.error().message() << " lacks " << part;
  }

  /// Ingests and opens the graph, in memory and spilled, and expects equal edges; returns the
  /// report of the last ingestion.
  IngestReport Ingested(IngestOptions options) {
    IngestReport last;
    std::optional<Edges> before;
    for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
      options.spill = spill;
      const Path path = dir_ / fmt::format("{}.rz", stores_++);
      auto report = Ingest(FileSystem::Posix(), path, options, JobControl());
      EXPECT_OK(report);
      if (!report) return {};
      last = *std::move(report);
      auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kRead);
      EXPECT_OK(store);
      graph_.reset();
      store_ = *std::move(store);
      auto graph = Graph::Open(*store_);
      EXPECT_OK(graph);
      graph_ = *std::move(graph);
      edges_ = EdgesOf();
      if (before) {
        EXPECT_EQ(*before, edges_);
      }
      before = edges_;
    }
    return last;
  }

  std::string IdOf(VertexId vertex) { return ToString(*graph_->ExternalIdOf(vertex)); }
  Edges EdgesOf() {
    Edges edges;
    for (std::uint64_t v = 0; v < graph_->vertex_count(); ++v) {
      const auto vertex = static_cast<VertexId>(v);
      const auto neighbors = graph_->Neighbors(vertex, Direction::kOut);
      EXPECT_OK(neighbors);
      for (const Neighbor& neighbor : *neighbors)
        edges.emplace(IdOf(vertex), IdOf(neighbor.vertex));
    }
    return edges;
  }
  std::vector<float> Weights() {
    std::vector<float> weights;
    for (std::uint64_t v = 0; v < graph_->vertex_count(); ++v) {
      const auto neighbors = graph_->Neighbors(static_cast<VertexId>(v), Direction::kOut);
      EXPECT_OK(neighbors);
      for (const Neighbor& one : *neighbors) weights.push_back(one.weight);
    }
    return weights;
  }
  static bool Says(const Names& notes, std::string_view part) {
    for (const std::string& note : notes)
      if (note.find(part) != note.npos) return true;
    return false;
  }

  testing::TempDir dir_;
  int stores_ = 0;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  Edges edges_;
};

TEST_F(SniffTest, WordsOfNamesIgnoreCaseAndSeparators) {
  for (const char* name : {"FromNodeId", "from_node_id", "FROM NODE-ID", ":from.node.id"})
    EXPECT_EQ(WordsOf(name), (Names{"from", "node", "id"})) << name;
  EXPECT_EQ(WordsOf("uid"), (Names{"uid"}));
  EXPECT_EQ(WordsOf("sourceID"), (Names{"source", "id"}));
  EXPECT_TRUE(WordsOf(" _").empty());
}

TEST_F(SniffTest, NamesGiveTheRolesOfEdgeColumns) {
  const auto roles = [](const Names& names) {
    const auto found = EdgeRoles(names);
    EXPECT_OK(found);
    return found ? found->roles : Names();
  };
  for (const char* src :
       {"src", "Source", "from", "HEAD", "subject", "u", "src_id", "sourceId", "FromNodeId"})
    for (const char* dst : {"dst", "TARGET", "to", "tail", "Object", "v", "dst_id", "toNode"})
      EXPECT_EQ(roles({dst, src}), (Names{"dst", "src"})) << src << " " << dst;
  EXPECT_EQ(roles({"source", "relation", "target", "w", "ts", "Amount (EUR)"}),
            (Names{"src", "type", "dst", "weight", "time", "Amount__EUR_"}));
  EXPECT_EQ(roles({"", "src", "dst"}), (Names{"-", "src", "dst"}));
  EXPECT_EQ(roles({"from_station_id", "to_station_id"}), (Names{"src", "dst"}));
  for (const Names& names : {Names{"src", "source", "dst"}, Names{"a", "b"}, Names{"src", "x"},
                             Names{"start_station_id", "end_station_id"}, Names{"user_id", "x"},
                             Names{"src", "dst", "type", "label"}})
    EXPECT_STATUS(EdgeRoles(names), kInvalidArgument);
}

TEST_F(SniffTest, NamesGiveTheRolesOfNodeColumns) {
  const auto roles = [](const Names& names) {
    const auto found = NodeRoles(names);
    EXPECT_OK(found);
    return found ? found->roles : Names();
  };
  EXPECT_EQ(roles({"id", "name", "label"}), (Names{"id", "name", "label"}));
  EXPECT_EQ(roles({"Name", "class", "split", "age"}), (Names{"id", "label", "split", "age"}));
  EXPECT_EQ(roles({"node_id", "y"}), (Names{"id", "label"}));
  EXPECT_EQ(roles({"key", "x", "y"}), (Names{"id", "x", "y"}));
  EXPECT_EQ(roles({"title", "movieId"}), (Names{"title", "id"}));
  for (const Names& names : {Names{"a", "b"}, Names{"id", "node_id", "id"},
                             Names{"movieId", "imdbId"}, Names{"id", "label", "class"}})
    EXPECT_STATUS(NodeRoles(names), kInvalidArgument);
}

TEST_F(SniffTest, HeadersAreFoundInEachFile) {
  const auto header = [&](std::string_view text) {
    const auto plan = SniffText("e.csv", text);
    EXPECT_OK(plan);
    return plan && plan->edges[0].header;
  };
  EXPECT_TRUE(header("source,target\n1,2\n2,3\n"));
  EXPECT_TRUE(header("source,target\nann,bob\nbob,eve\n"));
  EXPECT_TRUE(header("src,dst\n"));
  EXPECT_FALSE(header("1,2\n2,3\n"));
  EXPECT_FALSE(header("ann,bob\nbob,eve\n"));
  EXPECT_FALSE(header("from,to\nto,from\n"));  // the names recur: words of a language
  EXPECT_FALSE(header("a,1\n1,2\n"));
  EXPECT_FALSE(header(""));
}

// Names that are no roles, above numbers: neither reading is taken in silence.
TEST_F(SniffTest, UnknownNamesAreRefusedWithWhatDecides) {
  const Path edges = Write("e.csv", "person,friend\n1,2\n2,3\n");
  ExpectRefused({.edges = {edges}},
                {"e.csv", "person, friend", "`columns`", "`header=false`", "src, source"});
  const auto named = SniffOf({.edges = {edges}, .columns = {"src", "dst"}});
  ASSERT_OK(named);
  EXPECT_TRUE(named->edges[0].header);
  EXPECT_TRUE(Says(named->notes, "its first line is a header: person, friend"));
  const auto row = SniffOf({.edges = {edges}, .header = false});
  ASSERT_OK(row);
  EXPECT_TRUE(Says(row->notes, "looks like a header"));
  EXPECT_TRUE(row->ids.mixed);
  EXPECT_EQ(row->ids.place, edges.string() + ":1");
}

// --header is true for every file: where the first line looks like a row, a note says so.
TEST_F(SniffTest, AForcedHeaderIsSaid) {
  const auto report = Ingested({.edges = {Write("e.csv", "0,1\n1,2\n2,0\n")}, .header = true});
  EXPECT_TRUE(Says(report.notes, "its first line, 0 | 1, is taken as the header"));
  EXPECT_EQ(edges_, (Edges{{"1", "2"}, {"2", "0"}}));
}

TEST_F(SniffTest, ColumnsWithoutNamesAreRefusedUnlessTheyHaveOneReading) {
  const auto columns = [&](std::string_view text) {
    const auto plan = SniffText("e.tsv", text);
    EXPECT_OK(plan);
    return plan ? plan->options.columns : Names();
  };
  EXPECT_EQ(columns("a\t/people/born\tb\nc\t/people/born\td\n"), (Names{"src", "type", "dst"}));
  EXPECT_EQ(columns("12\tr1\t7\n13\tr2\t8\n14\tr1\t9\n15\tr2\t1\n"), (Names{"src", "type", "dst"}));
  // Relations after the ends, and ids with leading zeros, as WordNet's are.
  EXPECT_EQ(columns("00260881\t_hypernym\t00260622\n00260622\t_hypernym\t01332730\n"),
            (Names{"src", "type", "dst"}));
  EXPECT_EQ(columns("00260881\t00260622\t_hypernym\n00260622\t01332730\t_hypernym\n"),
            (Names{"src", "dst", "type"}));
  // Two columns have few texts. The ends are the columns that share an id; without one, refused.
  EXPECT_EQ(columns("a\tb\tr\nc\tb\tr\nb\ta\tr\nd\ta\tr\n"), (Names{"src", "dst", "type"}));
  ExpectRefused({.edges = {Write("q.tsv", "a\tr\tx\nb\tr\tx\nc\tr\tx\nd\tr\tx\n")}},
                {"q.tsv", "3 columns and no header"});
  ExpectRefused({.edges = {Write("w.tsv", "0\t1\t0.5\n1\t2\t1.5\n")}},
                {"w.tsv", "3 columns and no header", "0 | 1 | 0.5", "`columns=src,dst,weight`"});
  ExpectRefused({.edges = {Write("t.tsv", "a\tx\tb\nb\ty\tc\nc\tz\td\n")}},
                {"`columns=src,type,dst`"});
  ExpectRefused({.edges = {Write("u.tsv", "a\tx\tb\nb\ty\tc\nc\tz\td\n")}},
                {"for example `columns=src,type,dst` or `columns=src,dst,type`"});
  ExpectRefused({.inputs = {Write("i.csv", ",label,age\n0,a,1\n1,b,2\n")}},
                {"i.csv", "no column for src", "ids of vertices (such as id"});
  ExpectRefused({.edges = {Write("o.tsv", "1\n2\n")}}, {"an edge has two ends", "`nodes`"});
  ExpectRefused({.nodes = Write("n.tsv", "0\t5\n1\t6\n")}, {"n.tsv", "`node_columns=id,label`"});
}

TEST_F(SniffTest, CompressedFilesMayBeEmptyInside) {
  const Path nodes = Write("n.tsv", "1\n2\n");
  for (const auto& [name, bytes] :
       {std::pair("e.tsv.gz", testing::Gzip("")), std::pair("e.tsv.zst", testing::Zstd("")),
        std::pair("e.tsv.bz2", testing::Bzip2("")), std::pair("e.tsv.xz", testing::Xz(""))}) {
    std::ofstream(dir_ / name, std::ios::binary) << bytes;
    EXPECT_EQ(Ingested({.edges = {dir_ / name}, .nodes = nodes}).info.vertices, 2U) << name;
  }
}

TEST_F(SniffTest, FilesMayDifferInDelimiterHeaderAndOrder) {
  const auto report = Ingested({.edges = {Write("a.csv", "weight,target,source,age\n0.5,2,1,7\n"),
                                          Write("b.txt", "# x\nage src w to\n8 3 2 1\n")}});
  EXPECT_EQ(edges_, (Edges{{"1", "2"}, {"3", "1"}}));
  EXPECT_EQ(Weights(), (std::vector<float>{0.5, 2}));
  EXPECT_TRUE(Says(report.notes, "are read as weight,dst,src,age"));
  EXPECT_TRUE(Says(report.notes, "separated by blanks"));
  EXPECT_TRUE(Says(report.notes, "lines that begin with # are comments"));
  ExpectRefused({.edges = {Write("c.csv", "source,target,w\n1,2,3\n"), Write("d.csv", "1,2\n")}},
                {"d.csv", "src,dst", "c.csv", "src,dst,weight"});
}

TEST_F(SniffTest, BlanksAroundIdsAreNotPartOfThem) {
  for (const auto& [name, text] :
       std::map<std::string, std::string>{{"a.csv", "1, 2\n2, 3\n3, 1\n"},
                                          {"b.csv", "1,2 \n2 ,3\n3,1\n"},
                                          {"c.tsv", "1\t2 \n2\t3\n3\t1\n"},
                                          {"d.tsv", "1\t 2\n2\t 3\n3\t 1\n"}}) {
    const auto report = Ingested({.edges = {Write(name, text)}});
    EXPECT_EQ(report.info.vertices, 3U) << name;
    EXPECT_TRUE(report.notes.empty()) << name;
  }
}

TEST_F(SniffTest, TheFirstTextAmongIntegersIsNamed) {
  const auto report = Ingested({.edges = {Write("e.csv", "1,2\n2,3\n3.0,1\n01,3\n")}});
  EXPECT_EQ(report.info.id_kind, ExternalIdKind::kString);
  EXPECT_TRUE(Says(report.notes, "'3.0' at " + (dir_ / "e.csv").string() + ":3"));
  EXPECT_TRUE(Says(report.notes, "decimal point"));
  EXPECT_TRUE(Says(report.notes, "'3' (" + (dir_ / "e.csv").string() + ":2) and '3.0'"));
  EXPECT_TRUE(Says(report.notes, "and '01' ("));
}

// Beyond the sampled lines, the reader notices it.
TEST_F(SniffTest, ALateTextIsNamedToo) {
  std::string text;
  for (int i = 0; i < 12'000; ++i) text += fmt::format("{}\t{}\n", i, i + 1);
  const auto report = Ingested({.edges = {Write("e.tsv", text + "x7\t3\n")}});
  EXPECT_TRUE(Says(report.notes, "'x7' at " + (dir_ / "e.tsv").string() + ":12001"));
}

TEST_F(SniffTest, SkippedLinesAreListed) {
  std::string text = "0\t1\n";
  for (int i = 0; i < 12; ++i) text += fmt::format("{}\n", i);
  const auto report =
      Ingested({.edges = {Write("e.tsv", text)}, .columns = {"src", "dst"}, .max_bad_lines = 20});
  EXPECT_EQ(report.bad_lines, 12U);
  EXPECT_TRUE(Says(report.notes, "e.tsv:2: 1 field found"));
  EXPECT_TRUE(Says(report.notes, "e.tsv:11: "));
  EXPECT_FALSE(Says(report.notes, "e.tsv:12: "));
  EXPECT_TRUE(Says(report.notes, "skipped 2 more lines"));
}

// The form of MovieLens' ratings.csv.
TEST_F(SniffTest, TwoKindsOfIdsAreTwoTypesOfVertices) {
  IngestOptions options{
      .edges = {Write("r.csv", "userId,movieId,rating,timestamp\n1,1,4.5,9\n1,2,3,8\n2,1,5,7\n")}};
  const auto report = Ingested(options);
  EXPECT_EQ(report.info.vertex_types, (Names{"user", "movie"}));
  EXPECT_EQ(edges_, (Edges{{"user:1", "movie:1"}, {"user:1", "movie:2"}, {"user:2", "movie:1"}}));
  EXPECT_EQ(*graph_->TypeOf(*graph_->Find(ExternalId(std::string("movie:2")))), 1);
  EXPECT_EQ(*graph_->TypeOf(*graph_->Find(ExternalId(std::string("user:2")))), 0);
  EXPECT_TRUE(Says(report.notes, "'user:1' and 'movie:1'"));

  // A node file of one of the types, by the name of its ids; vertex 9 has no edge.
  options.nodes = Write("m.csv", "movieId,year\n2,1999\n9,2001\n");
  const auto with_nodes = Ingested(options);
  EXPECT_EQ(with_nodes.info.vertices, 5U);
  EXPECT_EQ(*graph_->TypeOf(*graph_->Find(ExternalId(std::string("movie:9")))), 1);
  // Columns that are given, as the plan of a dry run gives them, leave the type to the header.
  options.columns = {"src", "dst", "rating", "time"};
  options.node_columns = {"id", "year"};
  options.header = true;
  options.end_types = {"user", "movie"};
  EXPECT_EQ(Ingested(options).info.vertices, 5U);
  EXPECT_EQ(*graph_->TypeOf(*graph_->Find(ExternalId(std::string("movie:9")))), 1);
  options.columns.clear();
  options.node_columns.clear();
  options.end_types.clear();
  options.nodes = Write("n.csv", "id,year\n2,1999\n");
  ExpectRefused(options, {"n.csv", "user and movie", "type of each vertex"});
}

// Users and movies with equal ids become one vertex, which a note says.
TEST_F(SniffTest, ChosenColumnsOfTwoKindsOfIdsAreNoted) {
  IngestOptions options{.edges = {Write("r.csv", "rating,userId,movieId\n4.5,1,1\n3,1,2\n5,2,1\n")},
                        .columns = {"weight", "src", "dst"}};
  const auto report = Ingested(options);
  EXPECT_EQ(edges_, (Edges{{"1", "1"}, {"1", "2"}, {"2", "1"}}));
  EXPECT_TRUE(Says(report.notes, "`end_types=user,movie` keeps them apart"));
  options.end_types = {"user", "movie"};
  EXPECT_FALSE(Says(Ingested(options).notes, "keeps them apart"));
  EXPECT_EQ(edges_, (Edges{{"user:1", "movie:1"}, {"user:1", "movie:2"}, {"user:2", "movie:1"}}));
  options.end_types = {};
  options.columns = {"src", "dst", "weight"};  // the names do not describe these ends
  EXPECT_FALSE(Says(Ingested(options).notes, "keeps them apart"));
}

// The form of MovieLens' u.data, which has no names.
TEST_F(SniffTest, TypesOfEndsMayBeGiven) {
  const auto report = Ingested({.edges = {Write("u.data", "196\t242\t3\t881250949\n")},
                                .columns = {"src", "dst", "rating", "time"},
                                .end_types = {"user", "movie"}});
  EXPECT_EQ(edges_, (Edges{{"user:196", "movie:242"}}));
  EXPECT_EQ(report.info.vertex_types, (Names{"user", "movie"}));
  Ingested({.edges = {Write("e.npy",
                            NpyBytes<std::int64_t>(DataType::kInt64, {3, 2}, {1, 1, 1, 2, 2, 1}))},
            .end_types = {"a", "b"}});
  EXPECT_EQ(edges_, (Edges{{"a:1", "b:1"}, {"a:1", "b:2"}, {"a:2", "b:1"}}));
  const Path edges = Write("e.tsv", "1\t2\n");
  ExpectRefused({.edges = {edges}, .end_types = {"a"}}, {"`end_types=a`"});
  ExpectRefused({.edges = {edges}, .end_types = {"a", "a"}}, {"two different types"});
  ExpectRefused({.edges = {edges}, .end_types = {"a", "b"}, .id_type = IdType::kInteger},
                {"`id_type=string`"});
  ExpectRefused({.edges = {edges}, .end_types = {"a", "b"}, .vertices = 9}, {"`vertices`"});
}

// The names of types follow one rule, so that a type may contain ':'. An id must have one reading.
TEST_F(SniffTest, TypesOfEndsMayHaveColons) {
  IngestOptions options{.edges = {Write("e.tsv", "1\tx:2\n")}, .end_types = {"a::b", "/part of"}};
  EXPECT_EQ(Ingested(options).info.vertex_types, (Names{"a::b", "/part of"}));
  EXPECT_EQ(edges_, (Edges{{"a::b:1", "/part of:x:2"}}));
  options.end_types = {"a", "a::b"};
  ExpectRefused(options, {"'a::b:7'", "of the type 'a::b' or of the type 'a'", "rename"});
  options.end_types = {"a:", "a::b"};
  ExpectRefused(options, {"of the type 'a::b' or of the type 'a:'"});
  options.end_types = {"a", "ab:c"};
  Ingested(options);
  EXPECT_EQ(edges_, (Edges{{"a:1", "ab:c:x:2"}}));
  options.end_types = {"a", "tab\tbed"};
  ExpectRefused(options, {"not a valid name", "control characters"});
  options.end_types = {"a", "b"};
  options.nodes = Write("n.csv", "id,type\n1,a\n2,b:c\n");
  ExpectIngestRefused(options, {"'b:c:7' could be of the type"});
}

// The right edges were computed by scipy.io.mmread(F).tocoo() for these files.
TEST_F(SniffTest, MatrixMarketFilesAreReadAsSciPyReadsThem) {
  const auto general = Ingested({.edges = {Write("g.mtx",
                                                 "%%MatrixMarket matrix coordinate real general\n% "
                                                 "c\n4 4 3\n1 2 0.5\n3 1 -2\n2 2 7\n")}});
  EXPECT_EQ(general.info.vertices, 4U);
  EXPECT_EQ(edges_, (Edges{{"0", "1"}, {"2", "0"}, {"1", "1"}}));
  EXPECT_EQ(Weights(), (std::vector<float>{0.5, 7, -2}));
  EXPECT_FALSE(general.info.symmetric);

  const auto symmetric = Ingested(
      {.edges = {
           Write("s.mtx.gz",
                 "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n2 1\n3 3\n3 2\n")}});
  EXPECT_TRUE(symmetric.info.symmetric);
  EXPECT_EQ(edges_, (Edges{{"0", "1"}, {"1", "0"}, {"2", "2"}, {"1", "2"}, {"2", "1"}}));

  Ingested(
      {.edges = {Write(
           "k.mtx",
           "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 5\n3 1 -4\n")}});
  EXPECT_EQ(edges_, (Edges{{"1", "0"}, {"0", "1"}, {"2", "0"}, {"0", "2"}}));
  EXPECT_EQ(Weights(), (std::vector<float>{-5, 4, 5, -4}));

  const Path wide =
      Write("w.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 3 2\n1 3\n2 1\n");
  ExpectRefused({.edges = {wide}}, {"w.mtx", "2 x 3", "`end_types=row,column`"});
  const auto typed = Ingested({.edges = {wide}, .end_types = {"row", "column"}});
  EXPECT_EQ(edges_, (Edges{{"row:0", "column:2"}, {"row:1", "column:0"}}));
  EXPECT_EQ(typed.info.vertex_types, (Names{"row", "column"}));
}

TEST_F(SniffTest, OtherMatrixMarketFilesAreNamed) {
  const auto refuse = [&](std::string_view banner, std::string_view rest, const Names& parts) {
    ExpectRefused({.edges = {Write("m.mtx", fmt::format("%%MatrixMarket {}\n{}", banner, rest))}},
                  parts);
  };
  refuse("matrix array real general", "2 2\n1\n2\n3\n4\n", {"m.mtx", "'array'"});
  refuse("matrix coordinate complex general", "1 1 1\n1 1 1 2\n", {"complex"});
  refuse("matrix coordinate real hermitian", "1 1 1\n1 1 1\n", {"hermitian"});
  refuse("matrix coordinate real general", "x\n", {"m.mtx:2", "rows, columns and entries"});
  const auto ingest = [&](std::string_view text) {
    return Ingest(FileSystem::Posix(), dir_ / "no.rz", {.edges = {Write("b.mtx", text)}},
                  JobControl());
  };
  const auto few = ingest("%%MatrixMarket matrix coordinate pattern general\n2 2 3\n1 1\n");
  EXPECT_STATUS(few, kInvalidArgument);
  EXPECT_NE(few.error().message().find("3 entries are expected, but there are 1"),
            std::string::npos);
  const auto beyond = ingest("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n3 1\n");
  EXPECT_STATUS(beyond, kInvalidArgument);
  EXPECT_NE(beyond.error().message().find("b.mtx:3"), std::string::npos);
}

TEST_F(SniffTest, NpyEdgesMayHaveEitherShapeAndAnyIntegers) {
  const Edges expected = {{"0", "1"}, {"1", "2"}, {"2", "0"}};
  Ingested({.edges = {Write(
                "a.npy", NpyBytes<std::int64_t>(DataType::kInt64, {3, 2}, {0, 1, 1, 2, 2, 0}))}});
  EXPECT_EQ(edges_, expected);
  Ingested({.edges = {Write(
                "b.npy", NpyBytes<std::int32_t>(DataType::kInt32, {2, 3}, {0, 1, 2, 1, 2, 0}))}});
  EXPECT_EQ(edges_, expected);
  Ingested({.edges = {Write(
                "c.npy", NpyBytes<std::uint8_t>(DataType::kUint8, {3, 2}, {0, 1, 1, 2, 2, 0}))}});
  EXPECT_EQ(edges_, expected);
  const Path square =
      Write("d.npy", NpyBytes<std::int64_t>(DataType::kInt64, {2, 2}, {0, 1, 1, 2}));
  const auto either =
      Ingest(FileSystem::Posix(), dir_ / "no.rz", {.edges = {square}}, JobControl());
  EXPECT_STATUS(either, kInvalidArgument);
  EXPECT_NE(either.error().message().find("two edges, or the sources"), std::string::npos);
  EdgeFile file(square);
  file.sources_first = true;
  Ingested({.edges = {file}});
  EXPECT_EQ(edges_, (Edges{{"0", "1"}, {"1", "2"}}));
}

TEST_F(SniffTest, KindsOfFilesAreFound) {
  const Path edges = Write("links.csv", "source,target\na,b\nb,c\n");
  const Path nodes = Write("people.tsv", "id\tage\na\t3\nb\t4\nc\t5\n");
  const Path more = Write("more.txt", "c a\n");
  const Path array =
      Write("feat.npy", NpyBytes<float>(DataType::kFloat32, {3, 2}, {1, 2, 3, 4, 5, 6}));
  const auto plan = SniffOf({.inputs = {array, nodes, edges, more}});
  ASSERT_OK(plan);
  ASSERT_EQ(plan->options.edges.size(), 2U);
  EXPECT_EQ(plan->options.edges[0].path, edges);
  EXPECT_EQ(plan->options.edges[1].path, more);
  EXPECT_EQ(plan->options.nodes, nodes);
  ASSERT_EQ(plan->options.arrays.size(), 1U);
  EXPECT_EQ(plan->options.arrays[0].name, "feat");
  EXPECT_TRUE(plan->options.inputs.empty());
  Ingested({.inputs = {array, nodes, edges, more}});
  EXPECT_EQ(edges_, (Edges{{"a", "b"}, {"b", "c"}, {"c", "a"}}));
  ExpectRefused({.inputs = {nodes, Write("n2.tsv", "id\n1\n")}}, {"n2.tsv", "one node file"});
  ExpectRefused({.inputs = {Write("x.csv", "a,b\n1,2\n")}}, {"x.csv", "a, b"});
  ExpectRefused({.inputs = {dir_.path()}}, {"is a folder"});
}

TEST_F(SniffTest, TextArraysHaveARowOnEachLineUnlessTripletsAreNamed) {
  const Path edges = Write("e.tsv", "0\t1\n1\t2\n2\t0\n");
  const Path rows = Write("x.csv", "0,1,2\n1,0,5\n2,2,7\n");
  const auto values = [&](const ArrayFile& file) {
    Ingested({.edges = {edges}, .arrays = {file}});
    auto array = store_->OpenArray("x");
    EXPECT_OK(array);
    const ArrayEntry& entry = (*array)->entry();
    std::vector<std::byte> bytes(entry.rows * entry.dim * DataTypeBytes(entry.dtype));
    EXPECT_OK((*array)->ReadRows(0, entry.rows, bytes));
    std::vector<double> numbers;
    for (std::size_t i = 0; i < entry.rows * entry.dim; ++i) {
      float number = 0;
      std::int64_t integer = 0;
      if (entry.dtype == DataType::kFloat32) {
        std::memcpy(&number, bytes.data() + 4 * i, 4);
      } else {
        std::memcpy(&integer, bytes.data() + 8 * i, 8);
      }
      numbers.push_back(number + static_cast<double>(integer));
    }
    std::vector<double> by_vertex(numbers.size());
    for (std::size_t row = 0; row < entry.rows; ++row)
      for (std::size_t i = 0; i < entry.dim; ++i)
        by_vertex[static_cast<std::size_t>(*graph_->VertexAt(static_cast<Row>(row))) * entry.dim +
                  i] = numbers[row * entry.dim + i];
    return by_vertex;
  };
  EXPECT_EQ(values({.name = "x", .path = rows}), (std::vector<double>{0, 1, 2, 1, 0, 5, 2, 2, 7}));
  EXPECT_EQ(values({.name = "x", .path = Write("h.tsv", "a\tb\n0.5\t1\n2\t3\n4\t5\n")}),
            (std::vector<double>{0.5, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values({.name = "x", .path = rows, .dim = 8, .triplets = true}),
            (std::vector<double>{0, 2, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0,
                                 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0}));
  // Only triplets have three numbers if the array has another width.
  EXPECT_EQ(values({.name = "x", .path = rows, .dim = 8}).size(), 24U);
  ExpectRefused({.edges = {edges}, .arrays = {{.name = "x", .path = rows, .dim = 3}}},
                {"x.csv", "`triplets=false` or `triplets=true`"});
  ExpectIngestRefused({.edges = {edges}, .arrays = {{.name = "x", .path = rows, .triplets = true}}},
                      {"x.csv", "number of columns", "`dim`"});
}

}  // namespace
}  // namespace rhizome
