#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "rhizome/graph.h"
#include "rhizome/ingest.h"
#include "testing/compressed.h"
#include "testing/test_store.h"
#include "testing/testing.h"

// Feature columns and random splits of an ingestion, in memory and spilled.

namespace rhizome {
namespace {

class NodeArraysTest : public ::testing::Test {
 protected:
  Path Write(const std::string& name, std::string_view text) {
    testing::WriteInput(dir_ / name, text);
    return dir_ / name;
  }
  Result<testing::OpenGraph> Make(IngestOptions options, bool spilled) {
    options.spill = spilled ? IngestOptions::Spill::kAlways : IngestOptions::Spill::kNever;
    if (spilled) options.memory_bytes = std::uint64_t{64} << 20;
    std::filesystem::remove_all(path_);
    RHIZOME_RETURN_IF_ERROR(Ingest(FileSystem::Posix(), path_, options, JobControl()));
    return testing::OpenStoreGraph(path_);
  }
  template <typename T>
  static std::vector<T> RowOf(const testing::OpenGraph& open, const std::string& array,
                              const std::string& id, std::size_t dim) {
    const auto vertex = open.graph->FindText(id);
    EXPECT_OK(vertex);
    std::vector<T> row(dim);
    EXPECT_OK(open.graph->ReadRows(array, std::span(&*vertex, 1),
                                   std::as_writable_bytes(std::span(row))));
    return row;
  }

  testing::TempDir dir_;
  const Path path_ = dir_ / "g.rz";
};

constexpr char kPeople[] =
    "id,label,age,height,member,note\n"
    "ann,blue,31,1.5,true,\"a, b\"\n"
    "bob,red,,2.25,false,\n"
    "eve,blue,-7,inf,true,x\n";

TEST_F(NodeArraysTest, NamedColumnsBecomeOneArray) {
  IngestOptions options{.edges = {Write("e.csv", "src,dst\nann,bob\nbob,joe\n")},
                        .nodes = Write("n.csv", kPeople)};
  options.feature_columns = {"member", "age", "height"};
  for (const bool spilled : {false, true}) {
    const auto open = Make(options, spilled);
    ASSERT_OK(open);
    const Manifest& manifest = open->store->manifest();
    for (const char* name : {"age", "height", "member"})
      EXPECT_EQ(manifest.FindArray(name), nullptr) << name;
    EXPECT_NE(manifest.FindArray("note"), nullptr);
    // In the order of the file.
    EXPECT_EQ(RowOf<float>(*open, "feat", "ann", 3), (std::vector<float>{31, 1.5, 1}));
    const auto bob = RowOf<float>(*open, "feat", "bob", 3);
    EXPECT_TRUE(std::isnan(bob[0]));
    EXPECT_EQ(bob[1], 2.25F);
    EXPECT_EQ(bob[2], 0.0F);
    EXPECT_EQ(RowOf<float>(*open, "feat", "eve", 3),
              (std::vector<float>{-7, std::numeric_limits<float>::infinity(), 1}));
  }
}

TEST_F(NodeArraysTest, AllMeansEveryColumnOfNumbers) {
  IngestOptions options{.edges = {Write("e.csv", "src,dst\nann,bob\nbob,eve\n")},
                        .nodes = Write("n.csv", kPeople)};
  options.feature_columns = {"all"};
  const auto open = Make(options, false);
  ASSERT_OK(open);
  EXPECT_EQ(RowOf<float>(*open, "feat", "ann", 3), (std::vector<float>{31, 1.5, 1}));
  EXPECT_EQ(RowOf<std::int64_t>(*open, "label", "bob", 1), std::vector<std::int64_t>{1});
}

TEST_F(NodeArraysTest, WrongColumnsAreRefused) {
  IngestOptions options{.edges = {Write("e.csv", "src,dst\nann,bob\n")},
                        .nodes = Write("n.csv", kPeople)};
  const auto refused = [&](std::vector<std::string> columns, const std::string& part) {
    options.feature_columns = std::move(columns);
    const auto open = Make(options, false);
    ASSERT_FALSE(open);
    EXPECT_EQ(open.error().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(open.error().message().find(part), std::string::npos) << open.error().message();
    EXPECT_FALSE(std::filesystem::exists(path_));
  };
  refused({"agee"}, "no column 'agee'");
  refused({"label"}, "no column 'label'");
  refused({"age", "note"}, "'note' has texts");
  options.nodes = Write("t.csv", "id,note\nann,x\nbob,y\n");
  refused({"all"}, "no column of numbers");
  options.nodes = std::nullopt;
  refused({"age"}, "node file");
}

TEST_F(NodeArraysTest, RandomSetsHaveTheirSharesOfLabelledVertices) {
  std::string nodes = "id,label\n";
  std::string edges = "src,dst\n";
  constexpr int kAll = 1000;
  for (int i = 0; i < kAll; ++i) {
    nodes += fmt::format("v{},{}\n", i, i % 4 == 0 ? "" : i % 2 == 0 ? "even" : "odd");
    edges += fmt::format("v{},v{}\n", i, (i + 1) % kAll);
  }
  IngestOptions options{.edges = {Write("e.csv", edges)}, .nodes = Write("n.csv", nodes)};
  options.random_split = {.5, .2, .1};
  options.build.partition.seed = 5;
  std::vector<std::uint8_t> first;
  for (const bool spilled : {false, true}) {
    const auto open = Make(options, spilled);
    ASSERT_OK(open);
    std::vector<std::uint8_t> sets;
    std::vector<int> counts(256);
    for (int i = 0; i < kAll; ++i) {
      sets.push_back(RowOf<std::uint8_t>(*open, "split", fmt::format("v{}", i), 1)[0]);
      ++counts[sets.back()];
      if (i % 4 == 0) {
        EXPECT_EQ(sets.back(), 255);
      }
    }
    EXPECT_EQ(counts[0], 375);
    EXPECT_EQ(counts[1], 150);
    EXPECT_EQ(counts[2], 75);
    if (first.empty()) first = sets;
    EXPECT_EQ(sets, first);
  }
  options.build.partition.seed = 6;
  const auto other = Make(options, false);
  ASSERT_OK(other);
  int moved = 0;
  for (int i = 0; i < kAll; ++i) {
    const auto set = RowOf<std::uint8_t>(*other, "split", fmt::format("v{}", i), 1)[0];
    if (set != first[static_cast<std::size_t>(i)]) ++moved;
  }
  EXPECT_GT(moved, 100);
}

TEST_F(NodeArraysTest, WrongSharesAreRefused) {
  IngestOptions options{.edges = {Write("e.csv", "src,dst\n0,1\n")}};
  for (const std::vector<double>& shares :
       {std::vector<double>{.8, .1}, {.8, .2, .1}, {-.1, .5, .5}, {NAN, .1, .1}}) {
    options.random_split = shares;
    EXPECT_STATUS(Make(options, false), kInvalidArgument);
  }
  options.random_split = {.8, .1, .1};
  options.nodes = Write("n.csv", "id,split\n0,train\n1,test\n");
  EXPECT_STATUS(Make(options, false), kInvalidArgument);  // two arrays `split`
}

}  // namespace
}  // namespace rhizome
