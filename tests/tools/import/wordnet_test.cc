#include "tools/import/wordnet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include "index/input/table_reader.h"
#include "testing/testing.h"
#include "tools/import/wordnet_database.h"

// Tests of the WordNet importer: counts and known synsets of version 3.0, comparison with an
// independent conversion, and malformed, dangling and missing entries of tiny dictionaries.

namespace rhizome {
namespace {

bool Installed() { return std::filesystem::exists(std::string(kWordNetFolder) + "/data.noun"); }

const GraphInput& WordNet() {
  static const auto* graph =
      new Result<GraphInput>(ReadWordNet(FileSystem::Posix(), WordNetOptions{}, JobControl()));
  EXPECT_OK(*graph);
  static const GraphInput none;
  return *graph ? **graph : none;
}

template <typename T>
std::vector<T> Rows(const GraphInput& graph, const std::string& name) {
  for (const ArrayInput& array : graph.arrays) {
    if (array.name != name) continue;
    std::vector<VertexId> all(graph.vertex_count);
    for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<VertexId>(v);
    std::vector<T> rows(all.size() * array.dim);
    EXPECT_OK(array.read_rows(all, std::as_writable_bytes(std::span(rows))));
    return rows;
  }
  ADD_FAILURE() << "no array " << name;
  return {};
}

VertexId Find(const GraphInput& graph, std::string_view id) {
  const auto found = std::find(graph.string_ids.begin(), graph.string_ids.end(), id);
  return found == graph.string_ids.end() ? -1 : found - graph.string_ids.begin();
}

TEST(WordNetTest, CountsAreThoseOfVersion30) {
  if (!Installed()) GTEST_SKIP() << "wordnet-base is not installed";
  const GraphInput& graph = WordNet();
  EXPECT_EQ(graph.vertex_count, 117659U);
  EXPECT_EQ(graph.edges.size(), 364552U);
  EXPECT_EQ(graph.edge_type_names.size(), 26U);
  EXPECT_EQ(graph.vertex_type_names, (std::vector<std::string>{"n", "v", "a", "s", "r"}));
  EXPECT_FALSE(graph.undirected);
  double pointers = 0;
  for (const float weight : graph.edges.weight) pointers += weight;
  EXPECT_EQ(pointers, 377592);
  const std::set<std::string> distinct(graph.string_ids.begin(), graph.string_ids.end());
  EXPECT_EQ(distinct.size(), graph.vertex_count);
  EXPECT_EQ(WordNetLabelNames().size(), 45U);
}

TEST(WordNetTest, KnownSynsetsHaveTheirIdsClassesAndNeighbours) {
  if (!Installed()) GTEST_SKIP() << "wordnet-base is not installed";
  const GraphInput& graph = WordNet();
  const VertexId dog = Find(graph, "dog.n.01");
  const VertexId canine = Find(graph, "canine.n.02");
  ASSERT_GE(dog, 0);
  ASSERT_GE(canine, 0);
  EXPECT_GE(Find(graph, "entity.n.01"), 0);
  EXPECT_GE(Find(graph, "breathe.v.01"), 0);
  EXPECT_GE(Find(graph, "able.a.01"), 0);
  EXPECT_GE(Find(graph, "galore.s.01"), 0);  // data.adj writes it "galore(ip)"
  const auto labels = Rows<std::int64_t>(graph, "label");
  const auto name_of = [&](VertexId v) {
    return WordNetLabelNames()[static_cast<std::size_t>(labels[static_cast<std::size_t>(v)])];
  };
  EXPECT_EQ(name_of(dog), "noun.animal");
  EXPECT_EQ(name_of(Find(graph, "breathe.v.01")), "verb.body");
  bool hypernym = false;
  for (std::size_t e = 0; e < graph.edges.size(); ++e)
    hypernym |= graph.edges.src[e] == dog && graph.edges.dst[e] == canine &&
                graph.edge_type_names[graph.edges.type[e]] == "hypernym";
  EXPECT_TRUE(hypernym);
}

TEST(WordNetTest, FeaturesHaveNormOneAndSplitsHaveTheirShares) {
  if (!Installed()) GTEST_SKIP() << "wordnet-base is not installed";
  const GraphInput& graph = WordNet();
  const auto features = Rows<float>(graph, "feat");
  ASSERT_EQ(features.size(), graph.vertex_count * 128);
  std::size_t empty = 0;
  for (std::size_t v = 0; v < graph.vertex_count; ++v) {
    double squares = 0;
    for (std::size_t c = 0; c < 128; ++c)
      squares += static_cast<double>(features[v * 128 + c]) * features[v * 128 + c];
    if (squares == 0) ++empty;
    if (squares != 0) {
      ASSERT_NEAR(squares, 1, 1e-5) << graph.string_ids[v];
    }
  }
  EXPECT_LT(empty, 20U);
  const auto split = Rows<std::uint8_t>(graph, "split");
  std::map<std::uint8_t, double> share;
  for (const std::uint8_t part : split) share[part] += 1.0 / static_cast<double>(split.size());
  EXPECT_NEAR(share[0], 0.6, 0.01);
  EXPECT_NEAR(share[1], 0.2, 0.01);
  EXPECT_NEAR(share[2], 0.2, 0.01);
}

// An independent conversion of the same files, which identifies synsets by letter and offset.
class Reference {
 public:
  explicit Reference(const std::filesystem::path& folder) {
    Read(folder / "nodes.tsv.zst", [&](std::span<const std::string_view> f) {
      nodes[std::string(f[0])] = {std::stoi(std::string(f[1])), std::string(f[3]),
                                  std::string(f[4])};
    });
    Read(folder / "edges.tsv.zst", [&](std::span<const std::string_view> f) {
      edges.insert(
          {std::string(f[0]), std::string(f[1]), std::string(f[2]), std::stoi(std::string(f[3]))});
    });
  }
  struct Node {
    int label;
    std::string letter;
    std::string word;
  };
  std::map<std::string, Node> nodes;
  std::set<std::tuple<std::string, std::string, std::string, int>> edges;

 private:
  template <typename Take>
  static void Read(const std::filesystem::path& path, Take take) {
    auto reader = TableReader::Open(FileSystem::Posix(), path, false);
    ASSERT_OK(reader);
    while (true) {
      const auto next = (*reader)->ReadLine();
      ASSERT_OK(next);
      if (*next != TableReader::Next::kFields) break;
      take((*reader)->fields());
    }
  }
};

TEST(WordNetTest, EqualsAnIndependentConversion) {
  const auto data = testing::TestData();
  if (!data) GTEST_SKIP() << "RHIZOME_TEST_DATA is not set";
  if (!Installed()) GTEST_SKIP() << "wordnet-base is not installed";
  const Reference reference(*data / "wordnet30");
  const GraphInput& graph = WordNet();
  const auto labels = Rows<std::int64_t>(graph, "label");
  const auto synsets = ReadSynsets(FileSystem::Posix(), kWordNetFolder, JobControl());
  ASSERT_OK(synsets);
  ASSERT_EQ(reference.nodes.size(), graph.vertex_count);

  std::vector<std::string> keys;  // by vertex, in the form of the reference
  for (std::size_t v = 0; v < graph.vertex_count; ++v) {
    const Synset& synset = (*synsets)[v];
    char key[16];
    const char file = synset.letter == 's' ? 'a' : synset.letter;
    std::snprintf(key, sizeof(key), "%c%08u", file, synset.offset);
    if (!reference.nodes.contains(key)) key[0] = synset.letter;
    ASSERT_TRUE(reference.nodes.contains(key)) << key;
    const Reference::Node& node = reference.nodes.at(key);
    ASSERT_EQ(labels[v], node.label) << key;
    ASSERT_EQ(graph.vertex_type_names[graph.vertex_type[v]], node.letter) << key;
    // The reference keeps the syntactic marker of adjectives.
    std::string word = node.word.substr(0, node.word.find('('));
    std::transform(word.begin(), word.end(), word.begin(), [](char c) { return std::tolower(c); });
    ASSERT_TRUE(graph.string_ids[v].starts_with(word + "." + node.letter + ".")) << key;
    keys.emplace_back(key);
  }
  std::size_t found = 0;
  for (std::size_t e = 0; e < graph.edges.size(); ++e)
    found += reference.edges.count({keys[static_cast<std::size_t>(graph.edges.src[e])],
                                    keys[static_cast<std::size_t>(graph.edges.dst[e])],
                                    graph.edge_type_names[graph.edges.type[e]],
                                    static_cast<int>(graph.edges.weight[e])});
  EXPECT_EQ(found, reference.edges.size());
  EXPECT_EQ(graph.edges.size(), reference.edges.size());
}

// Two nouns and a satellite adjective; `cat` has two pointers of the same kind to `dog`.
class TinyWordNetTest : public ::testing::Test {
 protected:
  TinyWordNetTest() {
    Write("data.noun",
          "  1 a licence\n"
          "00000010 05 n 01 Dog 0 001 @ 00000020 n 0000 | a loyal animal\n"
          "00000020 05 n 02 cat 0 dog 0 003 ~ 00000010 n 0000 ~ 00000010 n 0101 & 00000030 a 0000"
          " | an animal; \"the cat sleeps\"\n");
    Write("index.noun",
          "  1 a licence\ncat n 1 1 ~ 1 0 00000020\ndog n 2 1 @ 2 0 00000020 00000010\n");
    Write("data.adj", "00000030 00 s 01 galore(ip) 0 000 | in great numbers\n");
    Write("index.adj", "galore a 1 0 1 0 00000030\n");
    for (const char* name : {"data.verb", "index.verb", "data.adv", "index.adv"}) Write(name, "");
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  Result<GraphInput> Read() {
    WordNetOptions options;
    options.folder = folder_.path();
    options.feature_dim = 16;
    return ReadWordNet(FileSystem::Posix(), options, JobControl());
  }
  testing::TempDir folder_;
};

TEST_F(TinyWordNetTest, SensesAndParallelPointersAreCounted) {
  const auto graph = Read();
  ASSERT_OK(graph);
  EXPECT_EQ(graph->string_ids, (std::vector<std::string>{"dog.n.02", "cat.n.01", "galore.s.01"}));
  EXPECT_EQ(graph->edges.src, (std::vector<VertexId>{0, 1, 1}));
  EXPECT_EQ(graph->edges.dst, (std::vector<VertexId>{1, 0, 2}));
  EXPECT_EQ(graph->edges.weight, (std::vector<float>{1, 2, 1}));
  EXPECT_EQ(graph->edge_type_names[graph->edges.type[1]], "hyponym");
  EXPECT_EQ(graph->vertex_type, (std::vector<TypeId>{0, 0, 3}));
}

TEST_F(TinyWordNetTest, MissingFolderIsNotFoundAndNamesThePackage) {
  WordNetOptions options;
  options.folder = folder_ / "absent";
  const auto graph = ReadWordNet(FileSystem::Posix(), options, JobControl());
  EXPECT_STATUS(graph, kNotFound);
  EXPECT_NE(graph.error().message().find("wordnet-base"), std::string::npos);
}

TEST_F(TinyWordNetTest, MalformedLinesAreNamed) {
  const std::string good = "00000030 00 s 01 galore 0 000 | many\n";
  for (const char* bad : {
           "00000040 00 s 01 many 0 000 no gloss\n",
           "0000004x 00 s 01 many 0 000 | g\n",
           "00000040 77 s 01 many 0 000 | g\n",
           "00000040 00 n 01 many 0 000 | g\n",
           "00000040 00 s 00 000 | g\n",
           "00000040 00 s 01 many 0 001 ? 00000010 n 0000 | g\n",
           "00000040 00 s 01 many 0 001 @ 00000010 x 0000 | g\n",
           "00000040 00 s 01 many 0 002 @ 00000010 n 0000 | g\n",
           "00000030 00 s 01 many 0 000 | the offset stands twice\n",
       }) {
    Write("data.adj", good + bad);
    const auto graph = Read();
    EXPECT_STATUS(graph, kInvalidArgument);
    ASSERT_FALSE(graph) << bad;
    EXPECT_NE(graph.error().message().find("data.adj:2"), std::string::npos)
        << graph.error().message();
  }
}

TEST_F(TinyWordNetTest, DanglingPointersAndMissingSensesAreErrors) {
  Write("data.adj", "00000030 00 s 01 galore 0 001 @ 00000011 n 0000 | many\n");
  EXPECT_STATUS(Read(), kInvalidArgument);
  Write("data.adj", "00000030 00 s 01 plenty 0 000 | many\n");
  EXPECT_STATUS(Read(), kInvalidArgument);
}

TEST_F(TinyWordNetTest, FeatureDimensionIsChecked) {
  WordNetOptions options;
  options.folder = folder_.path();
  options.feature_dim = 0;
  EXPECT_STATUS(ReadWordNet(FileSystem::Posix(), options, JobControl()), kInvalidArgument);
}

TEST_F(TinyWordNetTest, CancelStops) {
  WordNetOptions options;
  options.folder = folder_.path();
  JobControl control;
  control.Cancel();
  EXPECT_STATUS(ReadWordNet(FileSystem::Posix(), options, control), kInterrupted);
}

}  // namespace
}  // namespace rhizome
