#include "tools/import/graphbolt.h"

#include "import_testing.h"

// Tests of the GraphBolt importer: random data sets, written in the layouts that GraphBolt reads,
// become the same graph; wrong metadata and files that do not fit are refused.

namespace rhizome {
namespace {

using testing::NpyBytes;
using testing::RandomDataset;
using testing::TypedEdges;
using testing::TypedVertices;
using testing::WriteInput;

/// Writes a random data set in GraphBolt's layout, and imports it.
class GraphBoltTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    const Path path = dir_ / name;
    std::filesystem::create_directories(path.parent_path());
    WriteInput(path, text);
  }

  /// Writes edges in one of the forms that GraphBolt accepts. Returns the format and path for the
  /// entry.
  std::string WriteEdges(const TypedEdges& edges, std::size_t number) {
    const std::size_t form = random_() % 4;
    const std::string shape = fmt::format("2, {}", edges.ends.size());
    if (form == 0) {
      std::string text;
      for (const auto& [src, dst] : edges.ends) text += fmt::format("{},{}\n", src, dst);
      Write(fmt::format("edges/{}.csv", number), text);
      return fmt::format("format: csv\n    path: edges/{}.csv\n", number);
    }
    const std::string path = fmt::format("edges/{}.npy", number);
    if (form == 1) {  // the layout in which numpy.save writes a transposed array
      std::vector<std::int64_t> pairs;
      for (const auto& [src, dst] : edges.ends)
        pairs.insert(pairs.end(), {static_cast<std::int64_t>(src), static_cast<std::int64_t>(dst)});
      Write(path, NpyBytes("<i8", shape, pairs, /*fortran=*/true));
    } else if (form == 2) {
      Write(path, NpyBytes("<i8", shape, Columns<std::int64_t>(edges)));
    } else {
      Write(path, NpyBytes("<i4", shape, Columns<std::int32_t>(edges)));
    }
    return fmt::format("format: numpy\n    path: {}\n", path);
  }

  template <typename T>
  static std::vector<T> Columns(const TypedEdges& edges) {
    std::vector<T> values;
    for (const auto& pair : edges.ends) values.push_back(static_cast<T>(pair.first));
    for (const auto& pair : edges.ends) values.push_back(static_cast<T>(pair.second));
    return values;
  }

  std::string TypeLine(const std::string& type, const char* indent) const {
    return type.empty() ? "" : fmt::format("{}type: {}\n", indent, type);
  }

  /// Returns one set of a task: seeds of every type, with their labels.
  std::string ItemSets(const RandomDataset& data, const char* name, std::uint8_t split) {
    std::string text = fmt::format("  {}:\n", name);
    bool any = false;
    for (const TypedVertices& type : data.types) {
      std::vector<std::int32_t> seeds;
      std::vector<std::int64_t> labels;
      for (std::uint64_t v = 0; v < type.count; ++v) {
        if (data.split[type.first + v] != split) continue;
        seeds.push_back(static_cast<std::int32_t>(v));
        labels.push_back(data.label[type.first + v]);
      }
      const std::string path = fmt::format("set/{}-{}", name, type.name);
      Write(path + "-seeds.npy", NpyBytes("<i4", fmt::format("{},", seeds.size()), seeds));
      Write(path + "-labels.npy", NpyBytes("<i8", fmt::format("{}, 1", labels.size()), labels));
      text += "  - data:\n";
      text +=
          fmt::format("    - name: seeds\n      format: numpy\n      path: {}-seeds.npy\n", path);
      text += fmt::format(
          "    - name: labels\n      format: numpy\n      path: \"{}-labels.npy\"\n", path);
      text += TypeLine(type.name, "    ");
      any = true;
    }
    return any ? text : "";
  }

  /// Writes a feature of every type and records its values.
  std::string Features(const RandomDataset& data) {
    std::string text = "feature_data:\n";
    for (const TypedVertices& type : data.types) {
      std::vector<double> values;
      for (std::uint64_t i = 0; i < type.count * 3; ++i)
        values.push_back(static_cast<double>(random_() % 4096) / 16);
      features_.insert(features_.end(), values.begin(), values.end());
      const std::string path = fmt::format("feat-{}.npy", type.name);
      Write(path, NpyBytes("<f8", fmt::format("{}, 3", type.count), values));
      text += fmt::format("- domain: node\n{}  name: feat\n  format: numpy\n  path: {}\n",
                          TypeLine(type.name, "  "), path);
    }
    return text + EdgeFeatures(data);
  }

  static std::string TypeOf(const RandomDataset& data, const TypedEdges& edges) {
    if (edges.relation.empty()) return "";
    return fmt::format("{}:{}:{}", data.types[edges.src_type].name, edges.relation,
                       data.types[edges.dst_type].name);
  }

  std::string EdgeEntry(const RandomDataset& data, std::size_t r, const std::string& name,
                        const std::string& bytes) {
    const std::string path = fmt::format("{}-{}.npy", name, r);
    Write(path, bytes);
    return fmt::format("- domain: edge\n{}  name: {}\n  format: numpy\n  path: {}\n",
                       TypeLine(TypeOf(data, data.relations[r]), "  "), name, path);
  }

  /// Writes `feat` of one relation as float64, `timestamp` of the others as int32, and `weight` of
  /// all.
  std::string EdgeFeatures(const RandomDataset& data) {
    std::string text;
    const std::size_t count = data.relations.size();
    edge_feat_.assign(count, {});
    timestamp_.assign(count, {});
    weight_.assign(count, {});
    for (std::size_t r = 0; r < count; ++r) {
      std::vector<double> feat;
      std::vector<std::int32_t> timestamps;
      std::vector<float> weights;
      for (std::size_t e = 0; e < data.relations[r].ends.size(); ++e) {
        for (int c = 0; c < 5; ++c) feat.push_back(static_cast<double>(random_() % 4096) / 8);
        timestamps.push_back(static_cast<std::int32_t>(random_()));
        weights.push_back(static_cast<float>(random_() % 4096) / 8);
        weight_[r].push_back({weights.back()});
        if (r == 0) edge_feat_[r].emplace_back(feat.end() - 5, feat.end());
        if (r != 0 || count == 1) timestamp_[r].push_back({timestamps.back()});
      }
      const std::size_t edges = weights.size();
      if (r == 0)
        text += EdgeEntry(data, r, "feat", NpyBytes("<f8", fmt::format("{}, 5", edges), feat));
      if (r != 0 || count == 1)
        text +=
            EdgeEntry(data, r, "timestamp", NpyBytes("<i4", fmt::format("{},", edges), timestamps));
      text += EdgeEntry(data, r, "weight", NpyBytes("<f4", fmt::format("{}, 1", edges), weights));
    }
    return text;
  }

  /// Writes the whole data set and stores metadata.yaml, so that tests can damage it.
  void WriteAll(const RandomDataset& data) {
    features_.clear();
    metadata_ = "dataset_name: random\ngraph:\n  nodes:\n";
    // The importer must not depend on the order of types.
    for (std::size_t i = data.types.size(); i-- > 0;)
      metadata_ +=
          fmt::format("  - num: {}\n{}", data.types[i].count, TypeLine(data.types[i].name, "    "));
    metadata_ += "  edges:\n";
    for (std::size_t i = data.relations.size(); i-- > 0;) {
      const TypedEdges& edges = data.relations[i];
      metadata_ += "  - " + WriteEdges(edges, i);
      if (!edges.relation.empty())
        metadata_ += fmt::format("    type: {}:{}:{}\n", data.types[edges.src_type].name,
                                 edges.relation, data.types[edges.dst_type].name);
    }
    metadata_ += Features(data);
    metadata_ += "tasks:\n- name: node_classification\n  num_classes: 40\n";
    metadata_ += ItemSets(data, "train_set", 0) + ItemSets(data, "validation_set", 1) +
                 ItemSets(data, "test_set", 2);
    Write("metadata.yaml", metadata_);
  }

  Result<Dataset> Read() { return ReadGraphBolt(FileSystem::Posix(), dir_.path()); }

  /// Compares the weights in the lists of out-neighbours.
  void ExpectWeights(const RandomDataset& data, const testing::OpenGraph& open) {
    std::vector<std::pair<testing::NamedEdge, std::vector<float>>> found;
    for (std::uint64_t v = 0; v < open.graph->vertex_count(); ++v) {
      const auto vertex = static_cast<VertexId>(v);
      const auto neighbors = open.graph->Neighbors(vertex, Direction::kOut);
      ASSERT_OK(neighbors);
      for (const Neighbor& neighbor : *neighbors)
        found.push_back(
            {{vertex, open.store->manifest().info.edge_types[neighbor.type], neighbor.vertex},
             {neighbor.weight}});
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, testing::ExpectedRows(data, weight_, 1));
  }

  /// Replaces text in metadata.yaml and expects a refusal.
  void ExpectRefused(const std::string& from, const std::string& to, StatusCode code,
                     const std::vector<std::string>& parts) {
    std::string text = metadata_;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    text.replace(at, from.size(), to);
    Write("metadata.yaml", text);
    auto dataset = Read();
    Status status = dataset ? Status::Ok() : dataset.error();
    if (dataset) {
      const auto made = testing::MakeStore(*std::move(dataset), dir_ / "refused.rz", false);
      ASSERT_FALSE(made) << to;
      status = made.error();
    }
    EXPECT_EQ(status.code(), code) << status.ToString();
    for (const std::string& part : parts)
      EXPECT_NE(status.message().find(part), std::string::npos)
          << status.message() << " lacks " << part;
    Write("metadata.yaml", metadata_);
  }

  testing::TempDir dir_;
  std::mt19937_64 random_{testing::TestSeed()};
  std::string metadata_;
  std::vector<double> features_;  // by vertex
  testing::EdgeValues<double> edge_feat_;
  testing::EdgeValues<std::int64_t> timestamp_;
  testing::EdgeValues<float> weight_;
};

TEST_F(GraphBoltTest, BecomesTheSameGraph) {
  for (const bool typed : {false, true}) {
    RandomDataset data(random_, typed);
    WriteAll(data);
    for (std::uint64_t v = 0; v < data.total; ++v)
      if (data.split[v] == 255) data.label[v] = -1;
    for (const bool spilled : {false, true}) {
      auto dataset = Read();
      ASSERT_OK(dataset);
      EXPECT_TRUE(dataset->left_out.empty());
      const auto open = testing::MakeStore(*std::move(dataset),
                                           dir_ / fmt::format("{}{}.rz", typed, spilled), spilled);
      ASSERT_OK(open);
      testing::ExpectGraph(data, *open);
      EXPECT_EQ(testing::ValuesByVertex<double>(*open, "feat"), features_);
      EXPECT_EQ(testing::ValuesByVertex<std::int64_t>(*open, "label"), data.label);
      EXPECT_EQ(testing::ValuesByVertex<std::uint8_t>(*open, "split"), data.split);
      // The name "feat" is used by a vertex feature already.
      EXPECT_EQ(testing::EdgeRowsOf<double>(*open, "edge_feat"),
                testing::ExpectedRows(data, edge_feat_, 5));
      EXPECT_EQ(testing::EdgeRowsOf<std::int64_t>(*open, "timestamp"),
                testing::ExpectedRows(data, timestamp_, 1));
      ExpectWeights(data, *open);
    }
  }
}

TEST_F(GraphBoltTest, AWeightThatSomeEdgesLackIsAnAttribute) {
  RandomDataset data(random_, /*typed=*/true);
  WriteAll(data);
  const std::size_t last = metadata_.find("tasks:");
  const std::size_t entry = metadata_.rfind("- domain: edge", last);
  metadata_.erase(entry, last - entry);  // the weight of the last relation
  Write("metadata.yaml", metadata_);
  weight_.back().clear();
  auto dataset = Read();
  ASSERT_OK(dataset);
  const auto open = testing::MakeStore(*std::move(dataset), dir_ / "g.rz", false);
  ASSERT_OK(open);
  EXPECT_FALSE(open->graph->info().weighted);
  EXPECT_EQ(testing::EdgeRowsOf<float>(*open, "edge_weight"),
            testing::ExpectedRows(data, weight_, 1));
}

TEST_F(GraphBoltTest, WhatMetadataSaysWrongIsRefused) {
  RandomDataset data(random_, /*typed=*/true);
  for (TypedEdges& edges : data.relations) edges.ends.emplace_back(0, 0);
  WriteAll(data);
  const StatusCode bad = StatusCode::kInvalidArgument;
  ExpectRefused("graph:", "grap:", bad, {"metadata.yaml: graph is missing"});
  ExpectRefused("nodes:", "node:", bad, {"graph.nodes is missing"});
  ExpectRefused("num: ", "num: -", bad, {"graph.nodes"});
  ExpectRefused("num: ", "num: 9999999999999999", bad, {"too many"});
  ExpectRefused("  edges:", "  edge:", bad, {"graph.edges is missing"});
  ExpectRefused("type: paper:cites:paper", "type: papercites", bad, {"graph.edges", "papercites"});
  ExpectRefused("type: paper:cites:paper", "type: paper:cites:page", bad, {"'page'"});
  ExpectRefused("name: feat\n  format: numpy", "name: feat\n  format: torch", bad,
                {"feature_data", "a torch file", "rhizome.graphbolt.Dataset"});
  Write("deep.npy", NpyBytes("<f4", "2, 2, 2", std::vector<float>(8)));
  ExpectRefused("path: feat-paper.npy", "path: deep.npy", bad,
                {"deep.npy", "3 dimensions", "rhizome.graphbolt.Dataset"});
  Write("deep.npy", std::string("no array"));
  ExpectRefused("path: feat-paper.npy", "path: deep.npy", bad, {"deep.npy"});
  ExpectRefused("name: feat", "name: ../feat", bad, {"../feat"});
  Write("longer.npy", NpyBytes("<f4", "31, 1", std::vector<float>(31)));  // no type has 31 vertices
  ExpectRefused("path: feat-paper.npy", "path: longer.npy", bad, {"longer.npy", "31 rows"});
  ExpectRefused("path: feat-paper.npy", "path: absent.npy", StatusCode::kNotFound, {"absent.npy"});
  // no relation has 999 edges
  Write("longest.npy", NpyBytes("<f4", "999, 1", std::vector<float>(999)));
  ExpectRefused("path: weight-1.npy", "path: longest.npy", bad, {"longest.npy", "999 rows"});
  ExpectRefused("- domain: edge\n  type: author", "- domain: edge\n  type: pauthor", bad,
                {"feature_data", "pauthor", "not in graph.edges"});
  ExpectRefused("name: timestamp", "name: weight", bad, {"'weight' twice"});
  ExpectRefused("name: seeds", "name: sads", bad, {"tasks: train_set", "no seeds"});
  ExpectRefused("tasks:", "more: *all\ntasks:", bad, {"metadata.yaml:", "alias"});
  ExpectRefused("tasks:", "tasks: [", bad, {"metadata.yaml:"});
  ExpectRefused("tasks:", "deep: " + std::string(40, '[') + "\ntasks:", bad, {"deeper than 32"});
  std::filesystem::remove(dir_ / "metadata.yaml");
  EXPECT_STATUS(Read(), kNotFound);
}

TEST_F(GraphBoltTest, FilesThatDoNotFitAreRefused) {
  RandomDataset data(random_, /*typed=*/false);
  data.split.assign(data.total, 0);
  WriteAll(data);
  const StatusCode bad = StatusCode::kInvalidArgument;
  const auto spoil = [&](const std::string& name, const std::string& bytes,
                         const std::vector<std::string>& parts) {
    WriteAll(data);
    Write(name, bytes);
    ExpectRefused("dataset_name", "data_name", bad, parts);
  };
  const std::int64_t beyond = static_cast<std::int64_t>(data.total);
  const std::vector<std::int64_t> values = {0, beyond};
  spoil("set/train_set--seeds.npy", NpyBytes("<i8", "2,", values), {"seeds.npy", "entry 1"});
  spoil("set/test_set--seeds.npy", NpyBytes("<i8", "1,", std::vector<std::int64_t>{0}),
        {"test_set--seeds.npy", "another split"});
  spoil("set/train_set--labels.npy",
        NpyBytes("<i8", fmt::format("{},", data.total + 1),
                 std::vector<std::int64_t>(data.total + 1)),
        {"labels.npy", fmt::format("{} labels", data.total + 1)});
  const auto with_edges = [&](const std::string& bytes, const std::vector<std::string>& parts) {
    WriteAll(data);
    Write("e.npy", bytes);
    const std::size_t edges = metadata_.find("  edges:");
    const std::size_t values = metadata_.find("- domain: edge");
    metadata_.erase(values, metadata_.find("tasks:") - values);
    const std::size_t end = metadata_.find("feature_data");
    metadata_.replace(edges, end - edges, "  edges:\n  - format: numpy\n    path: e.npy\n");
    ExpectRefused("dataset_name", "data_name", bad, parts);
  };
  with_edges(NpyBytes("<i8", "2, 1", values), {"e.npy", "edge 0", "not below"});
  with_edges(NpyBytes("<i8", "2, 1", std::vector<std::int64_t>{0, -1}), {"e.npy", "edge 0"});
  with_edges(NpyBytes("<i8", "1, 2", values), {"e.npy", "[2, m]", "[1, 2]"});
  with_edges(NpyBytes("<f4", "2, 1", std::vector<float>{0, 0}), {"e.npy", "float32"});
  with_edges(NpyBytes("<i8", "2, 2", values), {"e.npy", "truncated"});
  with_edges(NpyBytes("<i8", "2, 1", std::vector<std::int64_t>{0, 0, 0}), {"e.npy", "more"});
}

}  // namespace
}  // namespace rhizome
