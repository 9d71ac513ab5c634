// Ingesting edges and ids from memory produces the same store, byte by byte, as ingesting files of
// them.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "index/topology/id_limit.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/write_batch.h"
#include "testing/compressed.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::GenerationBytes;
using testing::TempDir;
using testing::WriteInput;

StoreId StoreOfSpans() { return *StoreId::Parse("000102030405060708090a0b0c0d0e0f"); }

/// Random edges in memory and as text.
struct SpanInput {
  std::vector<std::int64_t> src, dst, ids;
  std::vector<std::string> src_names, dst_names, names;
  std::string lines, nodes;

  SpanInput(std::mt19937_64& rng, bool texts) {
    for (int v = 0; v < 40; ++v) {
      ids.push_back(v * 3 - 20);
      names.push_back(fmt::format("v{}", v));
      nodes += fmt::format("{}\n", texts ? names.back() : std::to_string(ids.back()));
    }
    for (int e = 0; e < 300; ++e) {
      const std::size_t from = rng() % 40;
      const std::size_t to = rng() % 40;
      src.push_back(ids[from]);
      dst.push_back(ids[to]);
      src_names.push_back(names[from]);
      dst_names.push_back(names[to]);
      lines += texts ? fmt::format("{}\t{}\n", names[from], names[to])
                     : fmt::format("{}\t{}\n", ids[from], ids[to]);
    }
  }
};

class IngestSpansTest : public ::testing::TestWithParam<bool> {};

TEST_P(IngestSpansTest, MakeTheStoreThatFilesMake) {
  std::mt19937_64 rng(testing::TestSeed());
  const JobControl control;
  for (const auto spill :
       {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways, IngestOptions::Spill::kAuto}) {
    const TempDir dir;
    const SpanInput input(rng, GetParam());
    WriteInput(dir / "e.tsv", input.lines);
    WriteInput(dir / "n.tsv", input.nodes);
    IngestOptions options{.edges = {dir / "e.tsv"}, .nodes = dir / "n.tsv"};
    options.spill = spill;
    options.memory_bytes = std::uint64_t{256} << 20;
    options.store_id = StoreOfSpans();
    ASSERT_OK(Ingest(FileSystem::Posix(), dir / "files.rz", options, control));
    const std::vector<std::string_view> src(input.src_names.begin(), input.src_names.end());
    const std::vector<std::string_view> dst(input.dst_names.begin(), input.dst_names.end());
    const std::vector<std::string_view> names(input.names.begin(), input.names.end());
    if (GetParam()) {
      options.edges[0].spans = EdgeSpans{.src = {.texts = src}, .dst = {.texts = dst}};
      options.node_ids = IdSpan{.texts = names};
    } else {
      options.edges[0].spans =
          EdgeSpans{.src = {.integers = input.src}, .dst = {.integers = input.dst}};
      options.node_ids = IdSpan{.integers = input.ids};
    }
    options.edges[0].path = "edges";
    options.nodes = "ids";
    ASSERT_OK(Ingest(FileSystem::Posix(), dir / "spans.rz", options, control));
    EXPECT_EQ(GenerationBytes(dir / "spans.rz"), GenerationBytes(dir / "files.rz"));
  }
}

INSTANTIATE_TEST_SUITE_P(Ids, IngestSpansTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Texts" : "Integers"; });

TEST_P(IngestSpansTest, TypesOfIdsMakeTheStoreThatATypeColumnMakes) {
  std::mt19937_64 rng(testing::TestSeed());
  const JobControl control;
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    const TempDir dir;
    const SpanInput input(rng, GetParam());
    const std::vector<std::string_view> names(input.names.begin(), input.names.end());
    std::vector<std::string_view> types;
    std::string nodes;
    for (std::size_t v = 0; v < names.size(); ++v) {
      types.push_back(rng() % 3 == 0 ? "author" : "paper");
      nodes += GetParam() ? fmt::format("{}\t{}\n", names[v], types[v])
                          : fmt::format("{}\t{}\n", input.ids[v], types[v]);
    }
    WriteInput(dir / "e.tsv", input.lines);
    WriteInput(dir / "n.tsv", nodes);
    IngestOptions options{.edges = {dir / "e.tsv"}, .nodes = dir / "n.tsv"};
    options.node_columns = {"id", "type"};
    options.spill = spill;
    options.memory_bytes = std::uint64_t{256} << 20;
    options.store_id = StoreOfSpans();
    ASSERT_OK(Ingest(FileSystem::Posix(), dir / "files.rz", options, control));
    options.node_ids = GetParam() ? IdSpan{.texts = names} : IdSpan{.integers = input.ids};
    options.node_types = types;
    options.nodes = "ids";
    ASSERT_OK(Ingest(FileSystem::Posix(), dir / "spans.rz", options, control));
    EXPECT_EQ(GenerationBytes(dir / "spans.rz"), GenerationBytes(dir / "files.rz"));
  }
}

TEST(IngestSpansRefusedTest, SaysWhatIsWrong) {
  const TempDir dir;
  const JobControl control;
  const std::vector<std::int64_t> numbers = {0, 1};
  const std::vector<std::string_view> texts = {"a", ""};
  const auto refuse = [&](const IngestOptions& options, std::string_view part) {
    const auto report = Ingest(FileSystem::Posix(), dir / "g.rz", options, control);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument) << report.error().ToString();
    EXPECT_NE(report.error().message().find(part), std::string::npos) << report.error().message();
    EXPECT_FALSE(std::filesystem::exists(dir / "g.rz"));
  };
  IngestOptions options{.edges = {Path("edges")}};
  options.edges[0].spans = EdgeSpans{.src = {.integers = numbers}, .dst = {}};
  refuse(options, "2 sources and 0 targets");
  options.edges[0].spans = EdgeSpans{.src = {.texts = texts}, .dst = {.texts = texts}};
  refuse(options, "edges: edge 1: an id is empty");
  options.edges[0].spans = EdgeSpans{.src = {.integers = numbers}, .dst = {.integers = numbers}};
  options.columns = {"src", "dst", "weight"};
  refuse(options, "only the columns src and dst");
  options.columns = {"src", "dst"};
  const std::vector<std::int64_t> twice = {5, 5};
  options.node_ids = IdSpan{.integers = twice};
  refuse(options, "set `nodes`");
  options.nodes = "ids";
  refuse(options, "ids: node 1: the id '5' is repeated");
  const std::vector<std::string_view> types = {"a", "b", "c"};
  options.node_types = types;
  refuse(options, "ids in memory, and their types, must be the only columns");
  options.node_columns = {"id", "type"};
  refuse(options, "ids: there are 2 ids, but 3 types");
  options.node_ids = std::nullopt;
  refuse(options, "types of vertices in memory need the ids in memory");
}

// Ingestion and updates accept ids up to the same length, so that a follower can put everything
// that its leader ingested.
TEST(IngestSpansRefusedTest, IdsHaveOneLimitInIngestionAndUpdates) {
  const TempDir dir;
  const JobControl control;
  const std::string longest(kMaxIdBytes, 'a');
  const std::string longer(kMaxIdBytes + 1, 'a');
  for (const bool node : {false, true}) {
    for (const std::string& id : {longest, longer}) {
      const std::vector<std::string_view> texts = {"b", node ? std::string_view("c") : id};
      const std::vector<std::string_view> nodes = {id};
      IngestOptions options{.edges = {Path("edges")}};
      options.edges[0].spans = EdgeSpans{.src = {.texts = texts}, .dst = {.texts = texts}};
      options.nodes = "ids";
      if (node) options.node_ids = IdSpan{.texts = nodes};
      if (!node) options.nodes = std::nullopt;
      const Path path = dir / fmt::format("{}{}.rz", node, id.size());
      const auto report = Ingest(FileSystem::Posix(), path, options, control);
      EXPECT_EQ(report.has_value(), id == longest);
      if (report) continue;
      EXPECT_STATUS(report, kInvalidArgument);
      EXPECT_NE(report.error().message().find("1048577 bytes, but at most 1048576"),
                std::string::npos)
          << report.error().message().substr(0, 300);
    }
  }
  const Path path = dir / fmt::format("{}{}.rz", false, longest.size());
  const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  WriteBatch batch;
  batch.PutEdge(longest, std::string(kMaxIdBytes, 'n'));
  EXPECT_OK((*graph)->Write(batch));
  batch.Clear();
  batch.PutEdge("b", longer);
  const auto written = (*graph)->Write(batch);
  EXPECT_STATUS(written, kInvalidArgument);
  EXPECT_NE(written.error().message().find("one has 1048577"), std::string::npos)
      << written.error().message().substr(0, 300);
}

}  // namespace
}  // namespace rhizome
