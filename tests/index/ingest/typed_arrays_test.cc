// Arrays of one vertex type at ingestion: which vertex gets which row, in memory and through spill
// files; what is refused; the note on chunks with rows of several types; export and back.

#include "index/ingest/typed_arrays.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>

#include "index/input/npy.h"
#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "rhizome/store_folder.h"
#include "storage/array/array_facts.h"
#include "testing/compressed.h"
#include "testing/test_store.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::WriteInput;

std::string NpyBytes(std::uint64_t dim, const std::vector<float>& values) {
  const std::vector<std::uint64_t> shape = {values.size() / dim, dim};
  const auto header = EncodeNpyHeader(DataType::kFloat32, shape);
  std::string bytes(reinterpret_cast<const char*>(header.data()), header.size());
  return bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

/// A random graph with the vertex types paper, author and venue, mixed in the nodes file. The
/// papers have rows of two numbers, the authors of three.
class TypedArraysTest : public ::testing::Test {
 protected:
  void Draw(std::size_t vertices, std::uint64_t paper_dim = 2) {
    constexpr const char* kTypes[] = {"paper", "author", "venue"};
    std::string nodes;
    std::string edges;
    std::vector<float> of_papers;
    std::vector<float> of_authors;
    for (std::size_t v = 0; v < vertices; ++v) {
      const std::string id = fmt::format("v{}", v * 7919 % vertices);
      const std::size_t type = v < 3 ? v : rng_() % 3;
      nodes += fmt::format("{}\t{}\n", id, kTypes[type]);
      edges += fmt::format("{}\tv{}\n", id, rng_() % vertices);
      std::vector<float>& own = rows_[id];
      if (type == 2) continue;
      for (std::uint64_t c = 0; c < (type == 0 ? paper_dim : 3); ++c)
        own.push_back(static_cast<float>(rng_() % 1000) / 8);
      std::vector<float>& all = type == 0 ? of_papers : of_authors;
      all.insert(all.end(), own.begin(), own.end());
    }
    options_.edges = {Write("e.tsv", edges)};
    options_.nodes = Write("n.tsv", nodes);
    options_.node_columns = {"id", "type"};
    options_.header = false;
    options_.arrays = {{.name = "feat",
                        .path = Write("p.npy", NpyBytes(paper_dim, of_papers)),
                        .vertex_type = "paper"},
                       {.name = "author_feat",
                        .path = Write("a.npy", NpyBytes(3, of_authors)),
                        .vertex_type = "author"}};
    options_.build.partition.partitions = 2;
    options_.build.partition.kind = PartitionerKind::kHdrf;
  }
  Path Write(const std::string& name, std::string_view text) {
    WriteInput(dir_ / name, text);
    return dir_ / name;
  }
  Result<IngestReport> Run(const IngestOptions& options) {
    std::filesystem::remove_all(store_);
    return Ingest(FileSystem::Posix(), store_, options, JobControl());
  }
  std::string Refused(const IngestOptions& options) {
    const auto report = Run(options);
    EXPECT_STATUS(report, kInvalidArgument);
    EXPECT_FALSE(std::filesystem::exists(store_));
    return report ? std::string() : report.error().message();
  }

  /// Compares the rows of both arrays with those that were drawn.
  void ExpectRows(const Path& path) {
    const auto graph = Graph::Open(path);
    ASSERT_OK(graph);
    const auto types = (*graph)->vertex_types();
    for (const std::string name : {"feat", "author_feat"}) {
      const ArrayEntry* entry = (*graph)->Snapshot()->store().manifest().FindArray(name);
      ASSERT_NE(entry, nullptr);
      const std::string type(BoundType(*entry));
      EXPECT_EQ(type, name == "feat" ? "paper" : "author");
      std::size_t compared = 0;
      for (const auto& [id, wanted] : rows_) {
        const auto vertex = (*graph)->FindText(id);
        ASSERT_OK(vertex);
        std::vector<float> row(entry->dim);
        const VertexId one[] = {*vertex};
        const Status read = (*graph)->ReadRows(name, one, std::as_writable_bytes(std::span(row)));
        if (types[*(*graph)->TypeOf(*vertex)] != type) {
          EXPECT_STATUS(read, kInvalidArgument);
          continue;
        }
        ASSERT_OK(read);
        EXPECT_EQ(row, wanted) << name << " of " << id;
        ++compared;
      }
      EXPECT_GT(compared, 0U);
    }
  }

  std::mt19937_64 rng_{testing::TestSeed()};
  testing::TempDir dir_;
  Path store_ = dir_ / "g.rz";
  IngestOptions options_;
  std::map<std::string, std::vector<float>> rows_;  // by id
};

TEST_F(TypedArraysTest, RowsBelongToTheVerticesOfTheTypeInTheirOrder) {
  Draw(200);
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways})
    for (const auto layout : {ArrayLayout::kRow, ArrayLayout::kChunk})
      for (const auto order : {OrderKind::kPds, OrderKind::kNatural}) {
        options_.spill = spill;
        options_.memory_bytes = spill == IngestOptions::Spill::kAlways ? 8 << 20 : 0;
        options_.layout = layout;
        options_.build.order = order;
        const auto report = Run(options_);
        ASSERT_OK(report);
        EXPECT_THAT(report->notes, Not(Contains(HasSubstr("chunks of"))));  // all is small
        ExpectRows(store_);
      }
}

TEST_F(TypedArraysTest, BothMethodsWriteTheSameBytes) {
  Draw(300);
  options_.store_id = StoreId::Parse("000102030405060708090a0b0c0d0e0f").value();
  ASSERT_OK(Run(options_));
  const auto in_memory = testing::GenerationBytes(store_);
  options_.spill = IngestOptions::Spill::kAlways;
  options_.memory_bytes = 8 << 20;
  ASSERT_OK(Run(options_));
  EXPECT_EQ(testing::GenerationBytes(store_), in_memory);
}

TEST_F(TypedArraysTest, AnExportedFolderKeepsTheTypesOfArrays) {
  Draw(100);
  ASSERT_OK(Run(options_));
  {
    const auto graph = Graph::Open(store_);
    ASSERT_OK(graph);
    ASSERT_OK(ExportFolder(**graph, dir_ / "folder", {}, JobControl()));
  }
  auto options = ReadStoreFolder(FileSystem::Posix(), dir_ / "folder");
  ASSERT_OK(options);
  ASSERT_OK(Run(*options));
  ExpectRows(store_);
}

TEST_F(TypedArraysTest, RangesGiveTheOrderWithoutANodesFile) {
  EdgeFile edges(Write("e.tsv", "0\t1\n2\t0\n"));
  edges.src = IdRange{4, 3};
  edges.dst = IdRange{0, 4};
  options_ = {.edges = {edges},
              .arrays = {{.name = "feat",
                          .path = Write("p.npy", NpyBytes(1, {7, 8, 9})),
                          .vertex_type = "paper"}},
              .columns = {"src", "dst"},
              .header = false,
              .vertices = 7,
              .vertex_ranges = {{"author", 4}, {"paper", 3}}};
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    options_.spill = spill;
    ASSERT_OK(Run(options_));
    const auto graph = Graph::Open(store_);
    ASSERT_OK(graph);
    std::vector<float> rows(3);
    const VertexId papers[] = {4, 5, 6};
    ASSERT_OK((*graph)->ReadRows("feat", papers, std::as_writable_bytes(std::span(rows))));
    EXPECT_EQ(rows, (std::vector<float>{7, 8, 9}));
    const VertexId author[] = {3};
    EXPECT_STATUS(
        (*graph)->ReadRows("feat", author, std::as_writable_bytes(std::span(rows).first(1))),
        kInvalidArgument);
  }
}

TEST_F(TypedArraysTest, TheOnlyTypeBindsNothing) {
  options_ = {.edges = {Write("e.tsv", "a\tb\n")},
              .nodes = Write("n.tsv", "a\tpaper\nb\tpaper\n"),
              .arrays = {{.name = "feat",
                          .path = Write("p.npy", NpyBytes(1, {7, 8})),
                          .vertex_type = "paper"}},
              .node_columns = {"id", "type"},
              .header = false};
  ASSERT_OK(Run(options_));
  const auto graph = Graph::Open(store_);
  ASSERT_OK(graph);
  EXPECT_THAT(BoundType(*(*graph)->Snapshot()->store().manifest().FindArray("feat")), IsEmpty());
  options_.arrays[0].path = Write("p.npy", NpyBytes(1, {7, 8, 9}));
  EXPECT_THAT(Refused(options_), HasSubstr("3 rows"));
}

TEST_F(TypedArraysTest, RefusalsSayWhatIsWrong) {
  Draw(60);
  const IngestOptions good = options_;
  options_.arrays[0].vertex_type = "papers";
  EXPECT_THAT(Refused(options_), AllOf(HasSubstr("'papers'"), HasSubstr("paper, author, venue")));

  options_ = good;
  options_.arrays[0].path = Write("short.npy", NpyBytes(2, {1, 2}));
  const auto papers = std::count_if(rows_.begin(), rows_.end(),
                                    [](const auto& row) { return row.second.size() == 2; });
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    options_.spill = spill;
    EXPECT_THAT(Refused(options_),
                AllOf(HasSubstr("has 1 rows"),
                      HasSubstr(fmt::format("there are {} vertices of type 'paper'", papers))));
  }

  options_ = good;
  options_.arrays[1].name = "feat";
  EXPECT_THAT(Refused(options_), HasSubstr("author:author_feat for author:feat"));

  options_ = good;
  options_.nodes.reset();
  options_.node_columns.clear();
  EXPECT_THAT(Refused(options_), AllOf(HasSubstr("'paper'"), HasSubstr("its types: vertex")));
  options_.end_types = {"paper", "author"};
  EXPECT_THAT(Refused(options_), HasSubstr("give a nodes file with a column of types"));
}

TEST_F(TypedArraysTest, ANoteSaysThatTheOrderMixesTypes) {
  Draw(6000, 512);
  options_.build.partition.partitions = 1;
  options_.build.order = OrderKind::kNatural;
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    options_.spill = spill;
    const auto report = Run(options_);
    ASSERT_OK(report);
    EXPECT_THAT(report->notes,
                Contains(AllOf(HasSubstr("array 'feat' has chunks of 11.7 MiB for rows of"),
                               HasSubstr("`order=pds`"))));
    EXPECT_THAT(report->notes, Not(Contains(HasSubstr("author_feat"))));  // little is wasted
  }
  options_.build.order = OrderKind::kPds;
  const auto report = Run(options_);
  ASSERT_OK(report);
  EXPECT_THAT(report->notes, Not(Contains(HasSubstr("chunks of"))));
}

}  // namespace
}  // namespace rhizome
