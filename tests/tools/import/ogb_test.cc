#include "tools/import/ogb.h"

#include "import_testing.h"
#include "storage/array/array_facts.h"

// Tests of the OGB importer: random data sets, written in OGB's layout, become the same graph with
// one vertex type and with several; inconsistent, missing and truncated files are refused.

namespace rhizome {
namespace {

using testing::RandomDataset;
using testing::TypedEdges;
using testing::TypedVertices;
using testing::WriteInput;

/// Writes a random data set in OGB's layout, and imports it.
class OgbTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const Path path = dir_ / name;
    std::filesystem::create_directories(path.parent_path());
    WriteInput(path, text);
  }

  static std::string Pairs(const TypedEdges& edges) {
    std::string text;
    for (const auto& [src, dst] : edges.ends) text += fmt::format("{},{}\n", src, dst);
    return text;
  }

  /// Returns rows of `dim` values that are exact in float32, and records them by vertex.
  std::string Features(const TypedVertices& type, std::size_t dim) {
    std::string text;
    for (std::uint64_t v = 0; v < type.count; ++v) {
      for (std::size_t c = 0; c < dim; ++c) {
        const float value = static_cast<float>(random_() % 4096) / 16 - 100;
        features_[type.first + v].push_back(value);
        text += fmt::format("{}{}", c == 0 ? "" : ",", value);
      }
      text += '\n';
    }
    return text;
  }

  /// Returns the labels of a type as pandas writes them: with a decimal point, because some are
  /// missing.
  static std::string Labels(const RandomDataset& data, const TypedVertices& type) {
    std::string text;
    for (std::uint64_t v = type.first; v < type.first + type.count; ++v)
      text += data.label[v] == -1 ? "nan\n" : fmt::format("{}.0\n", data.label[v]);
    return text;
  }

  void WriteSplit(const RandomDataset& data, const TypedVertices& type, const std::string& folder) {
    const std::vector<std::string> names = {"train", "valid", "test"};
    for (std::size_t split = 0; split < names.size(); ++split) {
      std::vector<std::uint64_t> members;
      for (std::uint64_t v = 0; v < type.count; ++v)
        if (data.split[type.first + v] == split) members.push_back(v);
      std::shuffle(members.begin(), members.end(), random_);
      std::string text;
      for (const std::uint64_t v : members) text += fmt::format("{}\n", v);
      Write(folder + names[split] + ".csv.gz", text);
    }
  }

  /// Writes a table with `dim` values for each edge, multiples of one half or integers.
  template <typename T>
  void WriteEdgeTable(const TypedEdges& edges, const std::string& name, std::size_t dim,
                      std::vector<std::vector<T>>& rows) {
    std::string text;
    rows.clear();
    for (std::size_t e = 0; e < edges.ends.size(); ++e) {
      rows.emplace_back();
      for (std::size_t c = 0; c < dim; ++c) {
        const auto drawn = static_cast<T>(random_() % 2048);
        rows.back().push_back(std::is_same_v<T, float> ? drawn / 2 : drawn);
        text += fmt::format("{}{}", c == 0 ? "" : ",", rows.back().back());
      }
      text += '\n';
    }
    Write(name, text);
  }

  void WriteUntyped(const RandomDataset& data) {
    features_.resize(data.total);
    const TypedVertices& type = data.types[0];
    Write("raw/edge.csv.gz", Pairs(data.relations[0]));
    Write("raw/num-node-list.csv.gz", fmt::format("{}\n", data.total));
    Write("raw/num-edge-list.csv.gz", fmt::format("{}\n", data.relations[0].ends.size()));
    Write("raw/node-feat.csv.gz", Features(type, 3));
    Write("raw/node-label.csv.gz", Labels(data, type));
    WriteSplit(data, type, "split/time/");
  }

  void WriteTyped(const RandomDataset& data) {
    features_.resize(data.total);
    // The importer must not depend on the order of types and triplets.
    Write("raw/num-node-dict.csv.gz",
          fmt::format("{},{},{}\n{},{},{}\n", data.types[2].name, data.types[0].name,
                      data.types[1].name, data.types[2].count, data.types[0].count,
                      data.types[1].count));
    std::string triplets;
    for (const TypedEdges& edges : data.relations) {
      const std::string& src = data.types[edges.src_type].name;
      const std::string& dst = data.types[edges.dst_type].name;
      triplets = fmt::format("{},{},{}\n", src, edges.relation, dst) + triplets;
      const std::string folder =
          fmt::format("raw/relations/{}___{}___{}/", src, edges.relation, dst);
      Write(folder + "edge.csv.gz", Pairs(edges));
      Write(folder + "num-edge-list.csv.gz", fmt::format("{}\n", edges.ends.size()));
    }
    Write("raw/triplet-type-list.csv.gz", triplets);
    const TypedVertices& paper = data.types[2];
    Write("raw/node-feat/paper/node-feat.csv.gz", Features(paper, 2));
    std::string years;
    for (std::uint64_t v = 0; v < paper.count; ++v) years += fmt::format("{}\n", 1990 + v);
    Write("raw/node-feat/paper/node_year.csv.gz", years);
    Write("raw/node-label/paper/node-label.csv.gz", Labels(data, paper));
    WriteSplit(data, paper, "split/time/paper/");
  }

  Result<Dataset> Read() { return ReadOgb(FileSystem::Posix(), dir_.path(), ""); }

  void ExpectRefused(StatusCode code, const std::vector<std::string>& parts) {
    auto dataset = Read();
    Status status = dataset ? Status::Ok() : dataset.error();
    if (dataset) {
      const auto made = testing::MakeStore(*std::move(dataset), dir_ / "refused.rz", false);
      ASSERT_FALSE(made) << fmt::format("{}", fmt::join(parts, "; "));
      status = made.error();
    }
    EXPECT_EQ(status.code(), code) << status.ToString();
    for (const std::string& part : parts)
      EXPECT_NE(status.message().find(part), std::string::npos)
          << status.message() << " lacks " << part;
    EXPECT_FALSE(std::filesystem::exists(dir_ / "refused.rz"));
  }

  Result<testing::OpenGraph> Make(const std::string& name, bool spilled) {
    RHIZOME_ASSIGN_OR_RETURN(Dataset dataset, Read());
    EXPECT_TRUE(dataset.left_out.empty());
    return testing::MakeStore(std::move(dataset), dir_ / name, spilled);
  }

  /// Compares the store with the data set, whose features begin with vertex `first`.
  void ExpectDataset(const RandomDataset& data, const testing::OpenGraph& open,
                     std::uint64_t first = 0) const {
    testing::ExpectGraph(data, open);
    std::vector<float> features;
    for (const auto& row : features_) features.insert(features.end(), row.begin(), row.end());
    EXPECT_EQ(RowsFrom<float>(open, "feat", first), features);
    EXPECT_EQ(testing::ValuesByVertex<std::int64_t>(open, "label"), data.label);
    EXPECT_EQ(testing::ValuesByVertex<std::uint8_t>(open, "split"), data.split);
  }

  /// Returns the values of the vertices from `first` on.
  template <typename T>
  static std::vector<T> RowsFrom(const testing::OpenGraph& open, std::string_view name,
                                 std::uint64_t first) {
    std::vector<T> all = testing::ValuesByVertex<T>(open, name);
    const std::uint64_t dim = all.size() / open.graph->vertex_count();
    all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first * dim));
    return all;
  }

  /// Returns the vertex type that an array is bound to.
  static std::string TypeOfArray(const testing::OpenGraph& open, std::string_view name) {
    const ArrayEntry* entry = open.store->manifest().FindArray(name);
    return entry == nullptr ? "no array" : std::string(BoundType(*entry));
  }

  testing::TempDir dir_;
  std::mt19937_64 random_{testing::TestSeed()};
  std::vector<std::vector<float>> features_;  // by vertex; empty: none
};

TEST_F(OgbTest, OneTypeBecomesTheSameGraph) {
  const RandomDataset data(random_, /*typed=*/false);
  WriteUntyped(data);
  for (const bool spilled : {false, true}) {
    auto dataset = Read();
    ASSERT_OK(dataset);
    EXPECT_TRUE(dataset->left_out.empty());
    const auto open =
        testing::MakeStore(*std::move(dataset), dir_ / (spilled ? "s.rz" : "h.rz"), spilled);
    ASSERT_OK(open);
    ExpectDataset(data, *open);
  }
}

TEST_F(OgbTest, TypesFollowOneAnother) {
  RandomDataset data(random_, /*typed=*/true);
  WriteTyped(data);
  const TypedVertices& paper = data.types[2];
  for (std::uint64_t v = 0; v < paper.first; ++v) {
    data.label[v] = -1;
    data.split[v] = 255;
  }
  for (const bool spilled : {false, true}) {
    auto dataset = Read();
    ASSERT_OK(dataset);
    const auto open =
        testing::MakeStore(*std::move(dataset), dir_ / (spilled ? "s.rz" : "h.rz"), spilled);
    ASSERT_OK(open);
    ExpectDataset(data, *open, paper.first);
    const auto years = RowsFrom<std::int64_t>(*open, "node_year", paper.first);
    for (std::uint64_t v = 0; v < paper.count; ++v)
      EXPECT_EQ(years[v], static_cast<std::int64_t>(1990 + v));
    for (const char* name : {"feat", "node_year"}) EXPECT_EQ(TypeOfArray(*open, name), "paper");
    for (const char* name : {"label", "split"}) EXPECT_EQ(TypeOfArray(*open, name), "");
  }
}

// Several columns of labels (ogbn-proteins) are bits, as training for several labels needs them.
TEST_F(OgbTest, SeveralColumnsOfLabelsAreBits) {
  const RandomDataset data(random_, /*typed=*/false);
  WriteUntyped(data);
  std::string text;
  std::vector<std::uint8_t> bits;
  for (std::uint64_t v = 0; v < 3 * data.total; ++v) {
    const std::uint64_t drawn = random_() % 3;
    bits.push_back(drawn == 2 ? 255 : static_cast<std::uint8_t>(drawn));
    text += drawn == 2 ? "nan" : fmt::format("{}.0", drawn);
    text += v % 3 == 2 ? '\n' : ',';
  }
  Write("raw/node-label.csv.gz", text);
  for (const bool spilled : {false, true}) {
    const auto open = Make(spilled ? "s.rz" : "h.rz", spilled);
    ASSERT_OK(open);
    EXPECT_EQ(testing::ValuesByVertex<std::uint8_t>(*open, "label"), bits);
  }
  Write("raw/node-label.csv.gz", "0,2,1\n" + text.substr(text.find('\n') + 1));
  ExpectRefused(StatusCode::kInvalidArgument, {"node-label.csv.gz:1", "label 2", "0, 1 or empty"});
}

TEST_F(OgbTest, FeaturesOfDifferentWidthsAreArraysOfTheirOwn) {
  const RandomDataset data(random_, /*typed=*/true);
  WriteTyped(data);
  Write("raw/node-feat/author/node-feat.csv.gz", Features(data.types[0], 5));
  auto dataset = Read();
  ASSERT_OK(dataset);
  const auto open = testing::MakeStore(*std::move(dataset), dir_ / "g.rz", false);
  ASSERT_OK(open);
  EXPECT_EQ(testing::ValuesByVertex<float>(*open, "feat.author").size(), 5 * data.total);
  EXPECT_EQ(testing::ValuesByVertex<float>(*open, "feat.paper").size(), 2 * data.total);
  EXPECT_EQ(TypeOfArray(*open, "feat.author"), "author");
  EXPECT_EQ(TypeOfArray(*open, "feat.paper"), "paper");
  EXPECT_STATUS(open->store->OpenArray("feat"), kNotFound);
}

TEST_F(OgbTest, EdgesKeepTheirValues) {
  const RandomDataset data(random_, /*typed=*/false);
  WriteUntyped(data);
  testing::EdgeValues<float> feat(1);
  testing::EdgeValues<std::int64_t> year(1);
  WriteEdgeTable(data.relations[0], "raw/edge-feat.csv.gz", 8, feat[0]);
  WriteEdgeTable(data.relations[0], "raw/edge_year.csv.gz", 1, year[0]);
  for (const bool spilled : {false, true}) {
    const auto open = Make(spilled ? "s.rz" : "h.rz", spilled);
    ASSERT_OK(open);
    if (data.relations[0].ends.empty()) {
      EXPECT_TRUE(open->graph->edge_attributes().empty());
      continue;
    }
    EXPECT_EQ(testing::EdgeRowsOf<float>(*open, "edge_feat"), testing::ExpectedRows(data, feat, 8));
    EXPECT_EQ(testing::EdgeRowsOf<std::int64_t>(*open, "edge_year"),
              testing::ExpectedRows(data, year, 1));
  }
}

TEST_F(OgbTest, EdgesOfEveryRelationKeepTheirValues) {
  RandomDataset data(random_, /*typed=*/true);
  for (TypedEdges& edges : data.relations) edges.ends.emplace_back(0, 0);
  WriteTyped(data);
  const auto name = [&](std::size_t r, const char* table) {
    const TypedEdges& edges = data.relations[r];
    return fmt::format("raw/relations/{}___{}___{}/{}.csv.gz", data.types[edges.src_type].name,
                       edges.relation, data.types[edges.dst_type].name, table);
  };
  testing::EdgeValues<float> feat(4);
  testing::EdgeValues<std::int64_t> reltype(4);
  testing::EdgeValues<std::int64_t> pair(4);
  testing::EdgeValues<float> wide(4);
  for (std::size_t r = 0; r < 4; ++r)
    WriteEdgeTable(data.relations[r], name(r, "edge_reltype"), 1, reltype[r]);
  for (const std::size_t r : {0, 2})  // the other relations have none
    WriteEdgeTable(data.relations[r], name(r, "edge-feat"), 3, feat[r]);
  WriteEdgeTable(data.relations[1], name(1, "edge_mixed"), 2, pair[1]);
  WriteEdgeTable(data.relations[0], name(0, "edge_mixed"), 5, wide[0]);
  wide[0][0][0] = 0.5F;  // the first line decides that the values are not integers
  {
    std::string text;
    for (const auto& row : wide[0]) text += fmt::format("{}\n", fmt::join(row, ","));
    Write(name(0, "edge_mixed"), text);
  }
  for (const bool spilled : {false, true}) {
    const auto open = Make(spilled ? "s.rz" : "h.rz", spilled);
    ASSERT_OK(open);
    testing::ExpectGraph(data, *open);
    EXPECT_EQ(testing::EdgeRowsOf<float>(*open, "edge_feat"), testing::ExpectedRows(data, feat, 3));
    EXPECT_EQ(testing::EdgeRowsOf<std::int64_t>(*open, "edge_reltype"),
              testing::ExpectedRows(data, reltype, 1));
    EXPECT_EQ(testing::EdgeRowsOf<float>(*open, "edge_mixed." + data.NameOf(data.relations[0])),
              testing::ExpectedRows(data, wide, 5));
    EXPECT_EQ(
        testing::EdgeRowsOf<std::int64_t>(*open, "edge_mixed." + data.NameOf(data.relations[1])),
        testing::ExpectedRows(data, pair, 2));
  }
}

TEST_F(OgbTest, SeveralSplitsNeedAName) {
  const RandomDataset data(random_, /*typed=*/false);
  WriteUntyped(data);
  WriteSplit(data, data.types[0], "split/random/");
  ExpectRefused(StatusCode::kInvalidArgument, {"--split", "random, time"});
  EXPECT_OK(ReadOgb(FileSystem::Posix(), dir_ / "raw", "random"));
  EXPECT_STATUS(ReadOgb(FileSystem::Posix(), dir_.path(), "sales"), kInvalidArgument);
}

TEST_F(OgbTest, WhatDoesNotFitTogetherIsRefused) {
  RandomDataset data(random_, /*typed=*/false);
  data.relations[0].ends.emplace_back(0, 0);
  const std::uint64_t edges = data.relations[0].ends.size();
  const auto refuse = [&](const std::string& name, const std::string& text, StatusCode code,
                          const std::vector<std::string>& parts) {
    features_.clear();
    WriteUntyped(data);
    Write(name, text);
    ExpectRefused(code, parts);
  };
  const StatusCode bad = StatusCode::kInvalidArgument;
  refuse("raw/num-node-list.csv.gz", "3\n4\n", bad, {"num-node-list", "2 graphs"});
  refuse("raw/num-node-list.csv.gz", "many\n", bad, {"num-node-list.csv.gz:1", "integer"});
  refuse("raw/num-node-list.csv.gz", "9223372036854775807\n", bad, {"too many"});
  refuse("raw/num-edge-list.csv.gz", fmt::format("{}\n", edges + 1), bad,
         {"edge.csv.gz", fmt::format("{} edges are expected, but there are {}", edges + 1, edges)});
  refuse("raw/edge.csv.gz", fmt::format("0,{}\n", data.total), bad, {"edge.csv.gz:1", "not below"});
  refuse("raw/edge.csv.gz", "0,x\n", bad, {"edge.csv.gz:1", "'x'"});
  refuse("raw/edge.csv.gz", "0\n", bad, {"edge.csv.gz:1", "1 field found"});
  refuse("raw/node-feat.csv.gz", "1,2\n3\n", bad, {"node-feat.csv.gz"});
  refuse("raw/node-feat.csv.gz", "", bad, {"node-feat.csv.gz", "there are 0"});
  refuse("raw/node-label.csv.gz", "a\n", bad, {"node-label.csv.gz:1", "'a'"});
  std::string rows;
  for (std::uint64_t e = 0; e + 1 < edges; ++e) rows += "1\n";
  refuse("raw/edge-feat.csv.gz", rows + "x\n", bad, {"edge-feat.csv.gz", "'x'"});
  refuse("raw/edge-feat.csv.gz", rows + "1\n2\n", bad, {"edge-feat.csv.gz", "there are more"});
  if (edges > 1)
    refuse("raw/edge-feat.csv.gz", rows, bad,
           {"edge-feat.csv.gz", fmt::format("are {}", edges - 1)});
  std::filesystem::remove(dir_ / "raw/edge-feat.csv.gz");
  refuse("split/time/test.csv.gz", fmt::format("{}\n", data.total), bad,
         {"test.csv.gz", "entry 0"});
  refuse("split/time/test.csv.gz", "-1\n", bad, {"test.csv.gz", "entry 0"});
}

TEST_F(OgbTest, MissingAndTruncatedFilesAreNamed) {
  const RandomDataset data(random_, /*typed=*/false);
  WriteUntyped(data);
  for (const char* name : {"raw/edge.csv.gz", "raw/num-node-list.csv.gz",
                           "raw/num-edge-list.csv.gz", "split/time/valid.csv.gz"}) {
    const Path path = dir_ / name;
    std::filesystem::rename(path, dir_ / "away");
    ExpectRefused(StatusCode::kNotFound, {path.filename().string()});
    std::filesystem::rename(dir_ / "away", path);
  }
  for (const char* name : {"raw/edge.csv.gz", "raw/node-feat.csv.gz", "raw/node-label.csv.gz"}) {
    const Path path = dir_ / name;
    std::filesystem::copy(path, dir_ / "away");
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 9);
    ExpectRefused(StatusCode::kInvalidArgument, {path.filename().string(), "truncated"});
    std::filesystem::remove(path);
    std::filesystem::rename(dir_ / "away", path);
  }
  std::filesystem::remove_all(dir_ / "raw");
  std::filesystem::create_directories(dir_ / "raw");
  Write("raw/data.npz", "zip");
  ExpectRefused(StatusCode::kInvalidArgument, {"data.npz"});
}

}  // namespace
}  // namespace rhizome
