// Edges that an ingestion holds out. The store and the files together have the edges of the input,
// and all edges of a pair of vertices are in one of them.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "index/chi_square.h"
#include "index/input/npy.h"
#include "index/input/table_reader.h"
#include "rhizome/graph.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "rhizome/ingest.h"
#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::WriteInput;
using By = HoldOutOptions::By;

/// Source, type, target, and the number of the edge in its column `time`.
using TextEdge = std::tuple<std::string, std::string, std::string, std::string>;
using TextEdges = std::multiset<TextEdge>;

std::pair<std::string, std::string> PairOf(const TextEdge& edge) {
  return std::minmax({std::get<0>(edge), std::get<2>(edge)});
}

/// Returns the lines of a file that was written, by the names in its header.
std::vector<std::map<std::string, std::string>> ReadTable(const Path& path) {
  std::vector<std::map<std::string, std::string>> lines;
  auto reader = TableReader::Open(FileSystem::Posix(), path, /*header=*/false);
  EXPECT_OK(reader);
  std::vector<std::string> header;
  while (reader) {
    const auto next = (*reader)->ReadLine();
    EXPECT_OK(next);
    if (!next || *next == TableReader::Next::kEnd) break;
    EXPECT_EQ(*next, TableReader::Next::kFields);
    const auto fields = (*reader)->fields();
    if (header.empty()) {
      header.assign(fields.begin(), fields.end());
      continue;
    }
    EXPECT_EQ(fields.size(), header.size());
    auto& line = lines.emplace_back();
    for (std::size_t i = 0; i < std::min(fields.size(), header.size()); ++i)
      line[header[i]] = fields[i];
  }
  return lines;
}

TextEdges ReadHeldOut(const Path& path) {
  TextEdges edges;
  for (auto& line : ReadTable(path))
    edges.emplace(line["src"], line["type"], line["dst"], line["time"]);
  return edges;
}

/// The edges and the vertices of a store, by external ids.
struct StoreText {
  TextEdges edges;
  std::set<std::string> vertices;
  std::set<std::string> ends;  // vertices with an edge
};

StoreText ReadStore(const Path& path) {
  StoreText text;
  const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kRead);
  EXPECT_OK(store);
  if (!store) return text;
  const auto graph = Graph::Open(std::as_const(**store));
  EXPECT_OK(graph);
  std::map<VertexId, std::string> names;
  VertexScan vertices(**graph);
  while (const auto entry = vertices.Next()) names[entry->vertex] = ToString(entry->id);
  for (const auto& [vertex, name] : names) text.vertices.insert(name);
  auto scan = EdgeScan::Open(**graph);
  EXPECT_OK(scan);
  const std::vector<std::string> types = (*graph)->edge_types();
  const bool times = !(*graph)->edge_attributes().empty();
  std::vector<std::int64_t> numbers;
  std::vector<TextEdge> edges;
  while (true) {
    const auto next = scan->Next();
    EXPECT_OK(next);
    if (!next || !*next) break;
    edges.emplace_back(names[(*next)->src], types[(*next)->type], names[(*next)->dst], "");
    numbers.push_back((*next)->number);
  }
  if (times) {
    std::vector<std::int64_t> values(numbers.size());
    EXPECT_OK(ReadEdgeRows(**graph, "time", numbers, std::as_writable_bytes(std::span(values))));
    for (std::size_t i = 0; i < edges.size(); ++i)
      std::get<3>(edges[i]) = std::to_string(values[i]);
  }
  for (TextEdge& edge : edges) {
    text.ends.insert(std::get<0>(edge));
    text.ends.insert(std::get<2>(edge));
    text.edges.insert(std::move(edge));
  }
  return text;
}

class HoldOutTest : public ::testing::Test {
 protected:
  /// Random edges with loops, parallel and reverse edges.
  std::vector<TextEdge> RandomEdges(std::uint64_t vertices, std::uint64_t count, bool texts) {
    std::vector<TextEdge> edges;
    const auto id = [&] {
      const std::uint64_t v = random_() % vertices;
      return texts ? fmt::format("v{}", v * 31) : std::to_string(v * 3);
    };
    for (std::uint64_t e = 0; e < count; ++e) {
      TextEdge edge{id(), fmt::format("r{}", random_() % 4), id(), std::to_string(random_() % 50)};
      if (!edges.empty() && random_() % 3 == 0) {
        edge = edges[random_() % edges.size()];
        std::get<1>(edge) = fmt::format("r{}", random_() % 4);
        if (random_() % 2 == 0) std::swap(std::get<0>(edge), std::get<2>(edge));
        std::get<3>(edge) = std::to_string(random_() % 50);
      }
      edges.push_back(edge);
    }
    return edges;
  }

  /// Writes the edges to files and returns the options that read them.
  IngestOptions WriteEdges(const std::vector<TextEdge>& edges, std::size_t files) {
    IngestOptions options;
    options.columns = {"src", "type", "dst", "time"};
    std::vector<std::string> texts(files);
    for (std::size_t e = 0; e < edges.size(); ++e) {
      const auto& [src, type, dst, time] = edges[e];
      texts[e * files / edges.size()] += fmt::format("{}\t{}\t{}\t{}\n", src, type, dst, time);
    }
    for (std::size_t i = 0; i < files; ++i) {
      options.edges.emplace_back(dir_ / fmt::format("e{}.tsv", i));
      WriteInput(options.edges.back().path, texts[i]);
    }
    options.edge_types = {"r0", "r1", "r2", "r3"};
    options.hold_out = {.valid = .1, .test = .2};
    options.build.partition.seed = 7;
    return options;
  }

  Result<IngestReport> Run(const IngestOptions& options) {
    return Ingest(FileSystem::Posix(), Store(), options, JobControl());
  }
  Path Store() const { return dir_ / "g.rz"; }
  Path File(std::string_view set) const { return dir_ / fmt::format("g.rz.{}.tsv.zst", set); }
  void Remove() {
    std::filesystem::remove_all(Store());
    std::filesystem::remove(File("valid"));
    std::filesystem::remove(File("test"));
  }
  std::vector<std::string> FilesLeft() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
      if (const std::string name = entry.path().filename().string(); name.find("g.rz") != name.npos)
        names.push_back(name);
    return names;
  }

  /// The outcome of an ingestion: store, valid, test.
  struct Outcome {
    IngestReport report;
    StoreText store;
    TextEdges valid;
    TextEdges test;
  };
  Outcome RunAndRead(const IngestOptions& options) {
    Outcome outcome;
    const auto report = Run(options);
    EXPECT_OK(report);
    if (!report) return outcome;
    outcome = {*report, ReadStore(Store()), ReadHeldOut(File("valid")), ReadHeldOut(File("test"))};
    EXPECT_FALSE(std::filesystem::exists(Store() / "scratch"));
    Remove();
    return outcome;
  }

  static void ExpectWhole(const Outcome& outcome, const std::vector<TextEdge>& input,
                          const std::set<std::string>& held_types) {
    TextEdges all = outcome.store.edges;
    all.insert(outcome.valid.begin(), outcome.valid.end());
    all.insert(outcome.test.begin(), outcome.test.end());
    EXPECT_EQ(all, TextEdges(input.begin(), input.end()));
    std::map<std::pair<std::string, std::string>, int> set_of;
    const auto expect_one_set = [&](const TextEdges& edges, int set) {
      for (const TextEdge& edge : edges) {
        if (!held_types.contains(std::get<1>(edge))) {
          EXPECT_EQ(set, 0) << fmt::format("{}", edge);
          continue;
        }
        EXPECT_EQ(set_of.emplace(PairOf(edge), set).first->second, set) << fmt::format("{}", edge);
      }
    };
    expect_one_set(outcome.store.edges, 0);
    expect_one_set(outcome.valid, 1);
    expect_one_set(outcome.test, 2);
    std::set<std::string> vertices;
    for (const TextEdge& edge : input) vertices.insert({std::get<0>(edge), std::get<2>(edge)});
    EXPECT_EQ(outcome.store.vertices, vertices);
    ExpectReport(outcome);
  }

  static void ExpectReport(const Outcome& outcome) {
    ASSERT_EQ(outcome.report.held_out.size(), 2U);
    for (const auto& [set, edges] : {std::pair(outcome.report.held_out[0], outcome.valid),
                                     std::pair(outcome.report.held_out[1], outcome.test)}) {
      EXPECT_EQ(set.edges, edges.size());
      std::map<std::string, std::uint64_t> by_type;
      std::uint64_t unseen = 0;
      for (const TextEdge& edge : edges) {
        ++by_type[std::get<1>(edge)];
        unseen += outcome.store.ends.contains(std::get<0>(edge)) &&
                          outcome.store.ends.contains(std::get<2>(edge))
                      ? 0
                      : 1;
      }
      EXPECT_EQ(set.unseen_ends, unseen);
      EXPECT_EQ((std::map<std::string, std::uint64_t>(set.by_type.begin(), set.by_type.end())),
                by_type);
    }
  }

  const testing::TempDir dir_;
  std::mt19937_64 random_{testing::TestSeed()};
};

const std::set<std::string> kAllTypes = {"r0", "r1", "r2", "r3"};

class HoldOutWaysTest
    : public HoldOutTest,
      public ::testing::WithParamInterface<std::tuple<IngestOptions::Spill, By, bool>> {};

// The same edges in another order, in other files, and by more threads, are divided in the same
// way.
TEST_P(HoldOutWaysTest, DividesTheInputByPairs) {
  const auto [spill, by, texts] = GetParam();
  std::vector<TextEdge> edges = RandomEdges(20 + random_() % 200, 1000 + random_() % 2000, texts);
  IngestOptions options = WriteEdges(edges, 1);
  options.spill = spill;
  options.hold_out.by = by;
  const Outcome outcome = RunAndRead(options);
  ExpectWhole(outcome, edges, kAllTypes);
  EXPECT_FALSE(outcome.valid.empty());
  EXPECT_FALSE(outcome.test.empty());

  std::shuffle(edges.begin(), edges.end(), random_);
  options = WriteEdges(edges, 1 + random_() % 4);
  options.spill = spill;
  options.hold_out.by = by;
  options.build.partition.threads = 3;
  options.build.partition.partitions = 2;
  const Outcome again = RunAndRead(options);
  EXPECT_EQ(again.valid, outcome.valid);
  EXPECT_EQ(again.test, outcome.test);
  EXPECT_EQ(again.store.edges, outcome.store.edges);
}
INSTANTIATE_TEST_SUITE_P(
    All, HoldOutWaysTest,
    ::testing::Values(std::tuple(IngestOptions::Spill::kNever, By::kRandom, false),
                      std::tuple(IngestOptions::Spill::kNever, By::kRandom, true),
                      std::tuple(IngestOptions::Spill::kAlways, By::kRandom, false),
                      std::tuple(IngestOptions::Spill::kAlways, By::kRandom, true),
                      std::tuple(IngestOptions::Spill::kAuto, By::kTime, false),
                      std::tuple(IngestOptions::Spill::kAlways, By::kTime, true)));

TEST_F(HoldOutTest, BothWaysOfIngestionWriteTheSameBytes) {
  const auto edges = RandomEdges(100, 2000, true);
  IngestOptions options = WriteEdges(edges, 2);
  options.store_id = *StoreId::Parse("000102030405060708090a0b0c0d0e0f");
  options.build.partition.kind = PartitionerKind::kHdrf;
  options.spill = IngestOptions::Spill::kNever;
  ASSERT_OK(Run(options));
  const auto bytes = testing::GenerationBytes(Store());
  const TextEdges test = ReadHeldOut(File("test"));
  Remove();
  options.spill = IngestOptions::Spill::kAlways;
  ASSERT_OK(Run(options));
  EXPECT_EQ(testing::GenerationBytes(Store()), bytes);
  EXPECT_EQ(ReadHeldOut(File("test")), test);
}

// Vertices have the numbers that they have without holding out.
TEST_F(HoldOutTest, DoesNotChangeTheNumbersOfVertices) {
  const auto edges = RandomEdges(100, 500, true);
  IngestOptions options = WriteEdges(edges, 1);
  options.build.order = OrderKind::kNatural;
  const auto ids = [&] {
    std::vector<std::string> by_vertex;
    const auto store = Store::Open(FileSystem::Posix(), Store(), Store::Mode::kRead);
    const auto graph = Graph::Open(std::as_const(**store));
    for (std::uint64_t v = 0; v < (*graph)->vertex_count(); ++v)
      by_vertex.push_back(ToString(*(*graph)->ExternalIdOf(static_cast<VertexId>(v))));
    return by_vertex;
  };
  ASSERT_OK(Run(options));
  const auto held = ids();
  Remove();
  options.hold_out = {};
  ASSERT_OK(Run(options));
  EXPECT_EQ(ids(), held);
}

TEST_F(HoldOutTest, SharesAreThoseOfPairs) {
  std::vector<TextEdge> edges;
  for (int a = 0; a < 200; ++a)
    for (int b = a; b < 200; ++b)
      edges.emplace_back(std::to_string(a), "r0", std::to_string(b), "0");
  IngestOptions options = WriteEdges(edges, 1);
  options.build.partition.seed = random_();
  const Outcome outcome = RunAndRead(options);
  const auto total = static_cast<double>(edges.size());
  double chi_square = 0;
  for (const auto& [found, share] :
       {std::pair(outcome.store.edges.size(), .7), std::pair(outcome.valid.size(), .1),
        std::pair(outcome.test.size(), .2)}) {
    const double difference = static_cast<double>(found) - share * total;
    chi_square += difference * difference / (share * total);
  }
  EXPECT_LT(chi_square, testing::ChiSquareBound(2));
}

TEST_F(HoldOutTest, NamedRelationsAndTheirInversesAreHeldOut) {
  const auto edges = RandomEdges(60, 2000, false);
  IngestOptions options = WriteEdges(edges, 1);
  options.hold_out.relations = {"r1"};
  options.hold_out.inverse = {{"r2", "r1"}, {"r0", "r3"}};
  const Outcome outcome = RunAndRead(options);
  ExpectWhole(outcome, edges, {"r1", "r2"});
  for (const TextEdges& held : {outcome.valid, outcome.test})
    EXPECT_TRUE(std::any_of(held.begin(), held.end(),
                            [](const TextEdge& edge) { return std::get<1>(edge) == "r2"; }));
  // The draw depends on the pair alone.
  options.hold_out.relations = {};
  options.hold_out.inverse = {};
  const Outcome all = RunAndRead(options);
  for (const TextEdge& edge : outcome.test) EXPECT_TRUE(all.test.contains(edge));
}

// A pair is as late as its latest edge.
TEST_F(HoldOutTest, ByTimeTheLatestPairsAreHeldOut) {
  std::vector<TextEdge> edges = RandomEdges(1000, 3000, false);
  for (TextEdge& edge : edges) std::get<3>(edge) = std::to_string(random_() % 100000);
  std::map<std::pair<std::string, std::string>, std::int64_t> latest;
  const auto time = [](const TextEdge& edge) { return std::stoll(std::get<3>(edge)); };
  for (const TextEdge& edge : edges) {
    auto& known = latest.emplace(PairOf(edge), time(edge)).first->second;
    known = std::max<std::int64_t>(known, time(edge));
  }
  IngestOptions options = WriteEdges(edges, 3);
  options.hold_out.by = By::kTime;
  const Outcome outcome = RunAndRead(options);
  ExpectWhole(outcome, edges, kAllTypes);
  const auto range = [&](const TextEdges& set) {
    std::pair<std::int64_t, std::int64_t> found{INT64_MAX, INT64_MIN};
    for (const TextEdge& edge : set) {
      found.first = std::min(found.first, latest[PairOf(edge)]);
      found.second = std::max(found.second, latest[PairOf(edge)]);
    }
    return found;
  };
  EXPECT_LE(range(outcome.store.edges).second, range(outcome.valid).first);
  EXPECT_LE(range(outcome.valid).second, range(outcome.test).first);
  const auto total = static_cast<double>(edges.size());
  for (const auto& [held, share] :
       {std::pair(outcome.valid.size(), .1), std::pair(outcome.test.size(), .2)}) {
    EXPECT_LE(static_cast<double>(held), share * total);
    EXPECT_GT(static_cast<double>(held), share * total - 60);  // a pair has few edges
  }
}

TEST_F(HoldOutTest, ByTimeDatesAndEqualTimesWork) {
  std::string text = "src,dst,time\n";
  for (int i = 0; i < 100; ++i)
    text += fmt::format("{},{},2024-0{}-01\n", i, i + 1, i < 50 ? 1 : i < 90 ? 2 : 3);
  WriteInput(dir_ / "e.csv", text);
  IngestOptions options{.edges = {dir_ / "e.csv"}};
  options.hold_out = {.valid = .2, .test = .1, .by = By::kTime};
  ASSERT_OK(Run(options));
  const auto test = ReadTable(File("test"));
  const auto valid = ReadTable(File("valid"));
  EXPECT_EQ(test.size(), 10U);
  EXPECT_EQ(valid.size(), 20U);  // drawn from the 40 of February
  for (const auto& line : test) EXPECT_EQ(line.at("time"), "2024-03-01");
  for (const auto& line : valid) EXPECT_EQ(line.at("time"), "2024-02-01");
}

// Files have the other columns, so that they can be ingested as the input was.
TEST_F(HoldOutTest, FilesHaveAllColumns) {
  std::string text = "src,dst,rel,weight,time,note\n";
  for (int i = 0; i < 200; ++i) text += fmt::format("a {0},{1},r,{0}.5,{0},\"n, {0}\"\n", i, i + 1);
  WriteInput(dir_ / "e.csv", text);
  IngestOptions options{.edges = {dir_ / "e.csv"}};
  options.hold_out = {.test = .5};
  const auto report = Run(options);
  ASSERT_OK(report);
  ASSERT_EQ(report->held_out.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(File("valid")));
  const auto lines = ReadTable(File("test"));
  EXPECT_FALSE(lines.empty());
  for (const auto& line : lines) {
    const std::string i = line.at("time");
    EXPECT_EQ(line.at("src"), "a " + i);
    EXPECT_EQ(line.at("type"), "r");
    EXPECT_EQ(line.at("weight"), i + ".5");
    EXPECT_EQ(line.at("note"), "n, " + i);
  }
  IngestOptions again{.edges = {File("test")}};
  ASSERT_OK(Ingest(FileSystem::Posix(), dir_ / "again.rz", again, JobControl()));
}

TEST_F(HoldOutTest, SpansAndEdgeArraysAreHeldOut) {
  const std::size_t count = 1000;
  std::vector<std::int64_t> src(count), dst(count), time(count);
  std::string lines;
  for (std::size_t e = 0; e < count; ++e) {
    src[e] = static_cast<std::int64_t>(random_() % 90);
    dst[e] = static_cast<std::int64_t>(random_() % 90);
    time[e] = static_cast<std::int64_t>(random_() % 10);
    lines += fmt::format("{}\t{}\t{}\n", src[e], dst[e], time[e]);
  }
  WriteInput(dir_ / "e.tsv", lines);
  IngestOptions files{.edges = {dir_ / "e.tsv"}, .columns = {"src", "dst", "time"}};
  files.hold_out = {.valid = .1, .test = .2};
  const Outcome expected = RunAndRead(files);

  IngestOptions spans;
  spans.edges = {Path("edges")};
  spans.edges[0].spans = EdgeSpans{.src = {.integers = src}, .dst = {.integers = dst}};
  spans.columns = {"src", "dst"};
  spans.hold_out = files.hold_out;
  const std::vector<std::uint64_t> shape = {count, 1};
  const auto header = EncodeNpyHeader(DataType::kInt64, shape);
  std::string times(reinterpret_cast<const char*>(header.data()), header.size());
  times.append(reinterpret_cast<const char*>(time.data()), count * sizeof(std::int64_t));
  WriteInput(dir_ / "t.npy", times);
  spans.edge_arrays = {{.name = "time",
                        .dtype = DataType::kInt64,
                        .files = {{.name = "time", .path = dir_ / "t.npy"}}}};
  const Outcome found = RunAndRead(spans);
  EXPECT_EQ(found.valid, expected.valid);
  EXPECT_EQ(found.test, expected.test);
  EXPECT_EQ(found.store.edges, expected.store.edges);
  EXPECT_EQ(found.store.edges.size() + found.valid.size() + found.test.size(), count);

  spans.hold_out.by = files.hold_out.by = By::kTime;
  const Outcome latest = RunAndRead(spans);
  EXPECT_EQ(latest.test, RunAndRead(files).test);
  EXPECT_FALSE(latest.test.empty());
}

TEST_F(HoldOutTest, SkippedLinesDoNotShiftTheChoices) {
  std::string text;
  for (int i = 0; i < 300; ++i)
    text += i % 7 == 3 ? "bad\n" : fmt::format("{}\t{}\t{}\n", i, i + 1, i);
  WriteInput(dir_ / "e.tsv", text);
  IngestOptions options{.edges = {dir_ / "e.tsv"}, .columns = {"src", "dst", "time"}};
  options.max_bad_lines = 100;
  options.hold_out = {.test = .1, .by = By::kTime};
  const auto report = Run(options);
  ASSERT_OK(report);
  EXPECT_EQ(report->bad_lines, 43U);
  const auto lines = ReadTable(File("test"));
  EXPECT_EQ(lines.size(), 25U);
  for (const auto& line : lines) EXPECT_GE(std::stoi(line.at("time")), 270);
}

class HoldOutBadTest : public HoldOutTest {
 protected:
  void Expect(const IngestOptions& options, StatusCode code, std::string_view part) {
    const auto refused = Run(options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), code) << refused.error().ToString();
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << refused.error().message();
    EXPECT_TRUE(FilesLeft().empty()) << FilesLeft().front();
  }
};

TEST_F(HoldOutBadTest, BadOptionsAreRefused) {
  const IngestOptions good = WriteEdges(RandomEdges(20, 200, false), 1);
  const auto with = [&](const HoldOutOptions& hold_out) {
    IngestOptions options = good;
    options.hold_out = hold_out;
    return options;
  };
  constexpr auto kBad = StatusCode::kInvalidArgument;
  Expect(with({.valid = .5, .test = .5}), kBad, "sum must be below 1");
  Expect(with({.valid = -.1, .test = .5}), kBad, "the share -0.1 of 'valid'");
  Expect(with({.valid = std::numeric_limits<double>::quiet_NaN()}), kBad, "is not in [0, 1)");
  Expect(with({.relations = {"r1"}}), kBad, "but no share of edges");
  Expect(with({.by = By::kTime}), kBad, "but no share of edges");
  Expect(with({.test = .1, .relations = {"r1", "r9"}}), kBad, "'r9', but no edge has it");
  Expect(with({.test = .1, .relations = {"r1"}, .inverse = {{"r1", "r8"}}}), kBad, "`inverse`");
  IngestOptions options = with({.test = .1, .by = By::kTime});
  options.columns.back() = "when";
  Expect(options, kBad, "no column of the edges is 'time'");
  options = with({.test = .1, .by = By::kTime});
  options.spill = IngestOptions::Spill::kNever;
  Expect(options, kBad, "scratch files");
  options = with({.test = .1});
  options.spill = IngestOptions::Spill::kAlways;
  options.hold_out.relations = {"r9"};
  Expect(options, kBad, "'r9'");
}

TEST_F(HoldOutBadTest, FilesThatExistAreKept) {
  IngestOptions options = WriteEdges(RandomEdges(20, 200, false), 1);
  WriteInput(dir_ / "mine", "mine");
  std::filesystem::rename(dir_ / "mine", File("test"));
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    options.spill = spill;
    const auto refused = Run(options);
    ASSERT_FALSE(refused);
    EXPECT_STATUS(refused, kAlreadyExists);
    EXPECT_EQ(FilesLeft(), std::vector<std::string>{"g.rz.test.tsv.zst"});
    EXPECT_EQ(std::filesystem::file_size(File("test")), 4U);
  }
  options.hold_out.overwrite = true;
  ASSERT_OK(Run(options));
  EXPECT_FALSE(ReadHeldOut(File("test")).empty());
}

// A cancellation at any step leaves neither a store nor a file.
TEST_F(HoldOutBadTest, CancellationLeavesNothing) {
  IngestOptions options = WriteEdges(RandomEdges(50, 500, true), 2);
  for (const auto by : {By::kRandom, By::kTime}) {
    options.hold_out.by = by;
    options.spill = by == By::kTime ? IngestOptions::Spill::kAuto : IngestOptions::Spill::kNever;
    int steps = 0;
    for (int at = 1;; ++at) {
      steps = 0;
      JobControl* job = nullptr;
      JobControl control([&](const JobControl::Progress&) {
        if (++steps == at) job->Cancel();
      });
      job = &control;
      const auto report = Ingest(FileSystem::Posix(), Store(), options, control);
      if (report) break;
      EXPECT_STATUS(report, kInterrupted);
      EXPECT_TRUE(FilesLeft().empty()) << FilesLeft().front() << " after step " << at;
      ASSERT_LT(at, 1000);
    }
    EXPECT_GT(steps, 5);
    EXPECT_EQ(FilesLeft().size(), 3U);
    Remove();
  }
}

TEST_F(HoldOutBadTest, AFolderInTheWayLeavesNothing) {
  IngestOptions options = WriteEdges(RandomEdges(50, 500, true), 1);
  options.hold_out.files = dir_ / "no/such/folder/g.rz";
  const auto refused = Run(options);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(FilesLeft().empty()) << FilesLeft().front();
}

}  // namespace
}  // namespace rhizome
