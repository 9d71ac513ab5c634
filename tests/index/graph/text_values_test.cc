#include "rhizome/text_values.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "index/delta/delta_row_writer.h"
#include "rhizome/array_change.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/graph_scan.h"
#include "rhizome/ingest.h"
#include "rhizome/maintenance.h"
#include "rhizome/write_batch.h"
#include "storage/array/array_facts.h"
#include "storage/base/utf8.h"
#include "testing/compressed.h"
#include "testing/testing.h"

// Tests of arrays of texts: ingested from a nodes file in memory and through spill files, looked up
// in both directions, compacted, dropped and renamed, and compared with the lines of the file.

namespace rhizome {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;
using ::testing::UnorderedElementsAre;
using testing::WriteInput;

FileSystem& fs = FileSystem::Posix();

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

class TextValuesTest : public ::testing::Test {
 protected:
  IngestOptions Options(IngestOptions::Spill spill = IngestOptions::Spill::kNever) {
    IngestOptions options;
    options.edges = {EdgeFile(dir_ / "edges.csv")};
    options.header = false;
    options.nodes = dir_ / "nodes.csv";
    options.node_columns = {"id", "label", "title"};
    options.spill = spill;
    options.build.partition.partitions = 3;
    return options;
  }

  void IngestInto(const std::string& store, const IngestOptions& options) {
    const auto report = Ingest(fs, dir_ / store, options, JobControl());
    ASSERT_OK(report);
    notes_ = report->notes;
  }

  std::unique_ptr<Graph> Open(const std::string& store, Mode mode = Mode::kRead) {
    auto graph = Graph::Open(dir_ / store, {.mode = mode});
    EXPECT_OK(graph);
    return graph ? *std::move(graph) : nullptr;
  }

  /// Checks every file and the contents of a store.
  Status Verify(const std::string& store) {
    const auto report = VerifyStore(fs, dir_ / store, JobControl());
    if (!report) return report.error();
    return report->damaged.empty() ? Status::Ok()
                                   : Status::Corruption(report->damaged.front().what);
  }

  /// Returns the texts of the vertices with the ids 0, 1, ...
  std::vector<std::string> TextsOf(const Graph& graph, const std::string& array,
                                   std::size_t count) {
    std::vector<VertexId> vertices;
    for (std::size_t i = 0; i < count; ++i) {
      const auto vertex = graph.FindText(std::to_string(i));
      EXPECT_OK(vertex);
      vertices.push_back(vertex ? *vertex : 0);
    }
    const auto texts = TextValues::Open(graph, array);
    EXPECT_OK(texts);
    if (!texts) return {};
    auto found = (*texts)->TextsOfVertices(vertices);
    EXPECT_OK(found);
    return found ? *found : std::vector<std::string>();
  }

  /// Compares the text of each edge, found by a scan of all edges.
  static void ExpectMemos(const GraphSnapshot& graph,
                          const std::map<std::pair<std::size_t, std::size_t>, std::string>& memos);

  TempDir dir_;
  std::vector<std::string> notes_;  // of the last ingestion
};

void TextValuesTest::ExpectMemos(
    const GraphSnapshot& graph,
    const std::map<std::pair<std::size_t, std::size_t>, std::string>& memos) {
  auto scan = EdgeScan::Open(graph);
  ASSERT_OK(scan);
  const auto texts = TextValues::Open(scan->graph(), "memo");
  ASSERT_OK(texts);
  std::map<std::pair<std::size_t, std::size_t>, std::string> found;
  while (true) {
    const auto edge = scan->Next();
    ASSERT_OK(edge);
    if (!*edge) break;
    std::int64_t code = 0;
    ASSERT_OK(ReadEdgeRows(scan->graph(), "memo", std::span(&(*edge)->number, 1),
                           std::as_writable_bytes(std::span(&code, 1))));
    const auto id = [&](VertexId v) {
      return static_cast<std::size_t>(std::get<std::int64_t>(*scan->graph().ExternalIdOf(v)));
    };
    const auto text = (*texts)->TextOf(code);
    ASSERT_OK(text);
    found[{id((*edge)->src), id((*edge)->dst)}] = *text;
  }
  EXPECT_EQ(found, memos);
}

TEST_F(TextValuesTest, ClassNamesAndPropertiesAreThoseOfTheLines) {
  WriteInput(dir_ / "edges.csv", "0,1\n1,2\n2,3\n3,4\n");
  WriteInput(dir_ / "nodes.csv",
             "0,drama,\"Tea, and\"\n1,\"comédie\",\"He said \"\"no\"\"\"\n2,,Tea\n"
             "3,action,Tea\n4,drama,\n");
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    const std::string name = spill == IngestOptions::Spill::kNever ? "memory" : "spilled";
    IngestInto(name, Options(spill));
    const auto graph = Open(name);
    ASSERT_NE(graph, nullptr);
    EXPECT_THAT(*ReadClassNames(*graph), ElementsAre("action", "comédie", "drama"));
    EXPECT_THAT(TextsOf(*graph, "label", 5),
                ElementsAre("drama", "comédie", "", "action", "drama"));
    EXPECT_THAT(TextsOf(*graph, "title", 5),
                ElementsAre("Tea, and", "He said \"no\"", "Tea", "Tea", ""));
    std::vector<std::int64_t> codes(5);
    const std::vector<VertexId> vertices = {0, 1, 2, 3, 4};
    ASSERT_OK(graph->ReadRows("label", vertices, std::as_writable_bytes(std::span(codes))));
    EXPECT_THAT(codes, ElementsAre(2, 1, -1, 0, 2));
    EXPECT_OK(Verify(name));
  }
}

TEST_F(TextValuesTest, IntegersAndTextsInOneColumnAreTexts) {
  WriteInput(dir_ / "edges.csv", "0,1\n");
  WriteInput(dir_ / "nodes.csv", "0,3,10\n1,-1,9\n2,drama,ten\n3,20,10\n");
  IngestInto("store", Options());
  const std::string place = (dir_ / "nodes.csv").string() + ":3";
  EXPECT_THAT(notes_,
              UnorderedElementsAre(AllOf(HasSubstr("'label'"), HasSubstr("'drama' at " + place)),
                                   AllOf(HasSubstr("'title'"), HasSubstr("'ten' at " + place))));
  const auto graph = Open("store");
  ASSERT_NE(graph, nullptr);
  EXPECT_THAT(*ReadClassNames(*graph), ElementsAre("20", "3", "drama"));
  EXPECT_THAT(TextsOf(*graph, "label", 4), ElementsAre("3", "", "drama", "20"));
  EXPECT_THAT(TextsOf(*graph, "title", 4), ElementsAre("10", "9", "ten", "10"));
}

TEST_F(TextValuesTest, TypesDecideBetweenNumbersAndTexts) {
  WriteInput(dir_ / "edges.csv", "0,1\n");
  WriteInput(dir_ / "nodes.csv", "0,3,10\n1,-1,9\n2,20,10\n");
  IngestOptions options = Options();
  options.node_columns = {"id", "label", "name"};
  options.types = {{"label", "text"}, {"name", "int64"}};
  IngestInto("store", options);
  EXPECT_THAT(notes_, ElementsAre());
  const auto graph = Open("store");
  ASSERT_NE(graph, nullptr);
  EXPECT_THAT(*ReadClassNames(*graph), ElementsAre("20", "3"));
  EXPECT_THAT(TextsOf(*graph, "label", 3), ElementsAre("3", "", "20"));
  EXPECT_FALSE(TextValues::Open(*graph, "name"));

  const auto refusal = [&](const std::string& type) {
    options.types = {{"label", type}};
    const auto refused = Ingest(fs, dir_ / "bad", options, JobControl());
    return refused ? "accepted" : refused.error().message();
  };
  EXPECT_THAT(refusal("float32"), HasSubstr("its type is int64 or text, not float32"));
  WriteInput(dir_ / "nodes.csv", "0,3,10\n1,drama,9\n");
  EXPECT_THAT(refusal("int64"), HasSubstr("nodes.csv:2: the label 'drama' is not an integer"));
}

TEST_F(TextValuesTest, IntegerLabelsStayNumbers) {
  WriteInput(dir_ / "edges.csv", "0,1\n");
  WriteInput(dir_ / "nodes.csv", "0,3,a\n1,-1,b\n");
  IngestInto("store", Options());
  const auto graph = Open("store");
  ASSERT_NE(graph, nullptr);
  EXPECT_TRUE(ReadClassNames(*graph)->empty());
  EXPECT_EQ(*TextValues::OpenIfAny(*graph, "label"), nullptr);
  const auto refused = TextValues::Open(*graph, "label");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("the array 'label' holds numbers, not texts"));
  const auto absent = TextValues::Open(*graph, "subtitle");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), StatusCode::kNotFound);
  EXPECT_THAT(absent.error().message(), HasSubstr("title"));
}

TEST_F(TextValuesTest, RandomTextsAreFoundInBothDirections) {
  std::mt19937_64 random(testing::TestSeed());
  const std::vector<std::string> kPieces = {"a", "b",  "\"",   ",",  " ",
                                            "é", "漢", "🙂", "zz", "\t"};
  const std::size_t count = 4000;
  std::vector<std::string> titles;
  std::string nodes, edges;
  for (std::size_t i = 0; i < count; ++i) {
    std::string title = "t";  // so that no blank is at an end
    for (std::size_t k = random() % 30; k > 0; --k) title += kPieces[random() % kPieces.size()];
    title += "t";
    if (random() % 10 == 0) title.clear();
    titles.push_back(title);
    nodes += fmt::format("{},{},{}\n", i, i % 3, title.empty() ? "" : Quoted(title));
    edges += fmt::format("{},{}\n", i, random() % count);
  }
  WriteInput(dir_ / "edges.csv", edges);
  WriteInput(dir_ / "nodes.csv", nodes);
  IngestInto("store", Options(random() % 2 == 0 ? IngestOptions::Spill::kAlways
                                                : IngestOptions::Spill::kNever));
  const auto graph = Open("store");
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(TextsOf(*graph, "title", count), titles);
  std::set<std::string> distinct(titles.begin(), titles.end());
  distinct.erase("");
  const auto texts = TextValues::Open(*graph, "title");
  ASSERT_OK(texts);
  ASSERT_EQ((*texts)->size(), distinct.size());
  std::int64_t code = 0;
  for (const std::string& text : distinct) {  // std::set has the order of codes
    EXPECT_EQ(*(*texts)->TextOf(code), text);
    EXPECT_EQ(**(*texts)->CodeOf(text), code);
    EXPECT_EQ(*(*texts)->CodeOf(text + "x"), std::nullopt);
    ++code;
  }
  EXPECT_EQ(**(*texts)->CodeOf(""), -1);
  EXPECT_FALSE((*texts)->TextOf(code));
  EXPECT_FALSE((*texts)->TextOf(-2));
}

TEST_F(TextValuesTest, ManyTextsAreInManyChunks) {
  const std::size_t count = 40000;
  std::string nodes;
  for (std::size_t i = 0; i < count; ++i)
    nodes += fmt::format("{},a,title number {:06}\n", i, count - i);
  WriteInput(dir_ / "edges.csv", "0,1\n");
  WriteInput(dir_ / "nodes.csv", nodes);
  IngestInto("store", Options());
  const auto graph = Open("store");
  ASSERT_NE(graph, nullptr);
  const auto texts = TextValues::Open(*graph, "title");
  ASSERT_OK(texts);
  ASSERT_EQ((*texts)->size(), count);
  for (std::int64_t code = 0; code < static_cast<std::int64_t>(count); code += 997) {
    const std::string text = fmt::format("title number {:06}", code + 1);
    EXPECT_EQ(*(*texts)->TextOf(code), text);
    EXPECT_EQ(**(*texts)->CodeOf(text), code);
  }
  EXPECT_EQ(*(*texts)->CodeOf("title"), std::nullopt);  // below all
  EXPECT_EQ(*(*texts)->CodeOf("zz"), std::nullopt);     // above all
  EXPECT_FALSE((*texts)->All(count - 1));
  EXPECT_EQ((*texts)->All(count)->size(), count);
}

TEST_F(TextValuesTest, RowsThatArePutKeepTheirTextsInACompaction) {
  WriteInput(dir_ / "edges.csv", "0,1\n1,2\n2,3\n");
  WriteInput(dir_ / "nodes.csv", "0,drama,Tea\n1,action,Coffee\n2,,Milk\n3,drama,\n");
  IngestInto("store", Options());
  {
    const auto graph = Open("store", Mode::kWrite);
    ASSERT_NE(graph, nullptr);
    const auto titles = TextValues::Open(*graph, "title");
    ASSERT_OK(titles);
    WriteBatch batch;
    batch.PutRow(2, "title", std::vector<std::int64_t>{**(*titles)->CodeOf("Coffee")});
    batch.PutRow(0, "label", std::vector<std::int64_t>{-1});
    batch.PutVertex(4);
    ASSERT_OK(graph->Write(batch));
    batch.Clear();
    batch.PutRow(1, "title", std::vector<std::int64_t>{3});
    const auto refused = graph->Write(batch);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("code 3 of 'title' has no text"));
    for (const bool repartition : {false, true}) {
      CompactOptions options;
      options.repartition = repartition;
      options.memory_bytes = std::uint64_t{64} << 20;
      ASSERT_OK(graph->Compact(options, JobControl()));
      EXPECT_THAT(TextsOf(*graph, "title", 5), ElementsAre("Tea", "Coffee", "Coffee", "", ""));
      EXPECT_THAT(TextsOf(*graph, "label", 5), ElementsAre("", "action", "", "drama", ""));
      EXPECT_THAT(*ReadClassNames(*graph), ElementsAre("action", "drama"));
    }
  }
  EXPECT_OK(Verify("store"));
}

TEST_F(TextValuesTest, ClassesAreFixedAndOtherTextsAreAdded) {
  WriteInput(dir_ / "edges.csv", "0,1,rent\n1,2,food\n2,3,\n");
  WriteInput(dir_ / "nodes.csv", "0,drama,Tea\n1,action,Coffee\n2,,Milk\n3,drama,\n");
  IngestOptions options = Options();
  options.columns = {"src", "dst", "memo"};
  IngestInto("store", options);
  {
    const auto graph = Open("store", Mode::kWrite);
    ASSERT_NE(graph, nullptr);
    const auto before = graph->Snapshot();
    const auto refusal = [&](const std::function<void(WriteBatch&)>& put) {
      WriteBatch batch;
      batch.PutTexts(0, "title", {"a text of a batch that is refused"});
      put(batch);
      const auto written = graph->Write(batch);
      return written ? std::string("written") : written.error().message();
    };
    EXPECT_THAT(refusal([](auto& b) { b.PutTexts(0, "label", {"comedy"}); }),
                HasSubstr("'comedy' is not one of the 2 classes of 'label' ('action', 'drama')"));
    EXPECT_THAT(refusal([](auto& b) {
                  b.PutTexts(0, "title", {"a", "b"});
                }),
                HasSubstr("2 texts were given, but a row of array 'title' has 1"));
    EXPECT_THAT(refusal([](auto& b) { b.PutTexts(0, "title", {"\xff"}); }),
                HasSubstr("the text given for 'title' is not valid UTF-8"));
    EXPECT_THAT(refusal([](auto& b) {
                  b.PutEdge(0, 1, {.attributes = {std::string((1 << 20) + 1, 'x')}});
                }),
                HasSubstr("the text given for 'memo' has 1048577 bytes, but at most 1048576"));
    EXPECT_THAT(refusal([](auto& b) { b.PutRow(0, "title", {std::int64_t{4}}); }),
                HasSubstr("code 4 of 'title' has no text; codes are in [0, 4)"));
    EXPECT_EQ((*TextValues::Open(*graph, "title"))->size(), 3U) << "of batches that were refused";

    WriteBatch batch;
    batch.PutTexts(0, "label", {"action"});
    batch.PutTexts(3, "title", {"Ale"});
    batch.PutRow(2, "title", {std::int64_t{3}});  // the code that the batch gives to "Ale"
    batch.PutTexts(1, "title", {""});
    batch.PutEdge(0, 3, {.attributes = {"car"}});
    batch.PutEdge(0, 3, {.attributes = {"food"}});
    ASSERT_OK(graph->Write(batch));
    EXPECT_EQ((*TextValues::Open(*before, "title"))->size(), 3U);
    EXPECT_EQ(*(*TextValues::Open(*before, "title"))->CodeOf("Ale"), std::nullopt);
    for (const bool compacted : {false, true}) {
      if (compacted) {
        ASSERT_OK(graph->Compact({}, JobControl()));
      }
      EXPECT_THAT(TextsOf(*graph, "label", 4), ElementsAre("action", "action", "", "drama"));
      EXPECT_THAT(TextsOf(*graph, "title", 4), ElementsAre("Tea", "", "Ale", "Ale"));
      EXPECT_THAT(*(*TextValues::Open(*graph, "memo"))->All(9), ElementsAre("food", "rent", "car"));
      EXPECT_EQ(**(*TextValues::Open(*graph, "title"))->CodeOf("Ale"), 3);
      ASSERT_OK(Verify("store"));
    }
  }
}

TEST_F(TextValuesTest, RandomPutsOfTextsAreReadBack) {
  std::mt19937_64 random(testing::TestSeed());
  constexpr std::size_t kVertices = 40;
  const auto text = [&] {
    const std::uint64_t kind = random() % 8;
    if (kind == 0) return std::string();
    return fmt::format("{}{}", "zyxa"[random() % 4], random() % 60) +
           (kind == 1 ? std::string(random() % 3000, '~') : "");
  };
  std::string edges, nodes;
  std::map<std::size_t, std::string> titles;                         // by vertex
  std::map<std::pair<std::size_t, std::size_t>, std::string> memos;  // by edge
  for (std::size_t v = 0; v < kVertices; ++v) {
    titles[v] = text();
    nodes += fmt::format("{},a,{}\n", v, titles[v]);
    const auto memo = text();
    edges += fmt::format("{},{},{}\n", v, (v + 1) % kVertices, memo);
    memos[{v, (v + 1) % kVertices}] = memo;
  }
  WriteInput(dir_ / "edges.csv", edges);
  WriteInput(dir_ / "nodes.csv", nodes);
  IngestOptions options = Options();
  options.columns = {"src", "dst", "memo"};
  options.types = {{"memo", "text"}, {"title", "text"}};
  IngestInto("store", options);
  std::map<std::string, std::int64_t> codes;  // of titles so far: they never change
  auto graph = Open("store", Mode::kWrite);
  const auto reader = Open("store");
  ASSERT_TRUE(graph != nullptr && reader != nullptr);
  const auto write = [&] {
    WriteBatch batch;
    for (std::size_t i = random() % 12; i > 0; --i) {
      const std::size_t v = random() % kVertices;
      const std::size_t u = random() % kVertices;
      const auto id = [](std::size_t n) { return ExternalId(static_cast<std::int64_t>(n)); };
      if (random() % 2 == 0) {
        batch.PutTexts(id(v), "title", {titles[v] = text()});
      } else {
        const std::string memo = memos[{v, u}] = text();
        batch.UpsertEdge(id(v), id(u), {.attributes = {memo}});
      }
    }
    ASSERT_OK(graph->Write(batch, {.sync = false}));
  };
  for (int step = 0; step < 60; ++step) {
    SCOPED_TRACE(step);
    write();
    if (random() % 6 == 0) {
      // Some of the commits happen during the compaction.
      int more = static_cast<int>(random() % 4);
      const JobControl control([&](const JobControl::Progress&) {
        if (more > 0 && random() % 3 == 0) {
          --more;
          write();
        }
      });
      CompactOptions compact;
      compact.repartition = random() % 2 == 0;
      ASSERT_OK(graph->Compact(compact, control));
    }
    if (random() % 6 == 0) {
      graph = nullptr;
      graph = Open("store", Mode::kWrite);
      ASSERT_NE(graph, nullptr);
    }
    ASSERT_OK(reader->Refresh());
    const auto texts = TextsOf(*reader, "title", kVertices);
    const auto of_titles = *TextValues::Open(*reader, "title");
    for (std::size_t v = 0; v < kVertices; ++v) {
      ASSERT_EQ(texts[v], titles[v]);
      const auto code = of_titles->CodeOf(titles[v]);
      ASSERT_OK(code);
      ASSERT_TRUE(code->has_value());
      ASSERT_EQ(codes.try_emplace(titles[v], **code).first->second, **code);
    }
    const auto all = *of_titles->All(100'000);
    ASSERT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
    ExpectMemos(*reader->Snapshot(), memos);
    if (HasFatalFailure()) return;
  }
  graph = nullptr;
  EXPECT_OK(Verify("store"));
}

TEST_F(TextValuesTest, RenamingAndDroppingIncludeTheTexts) {
  WriteInput(dir_ / "edges.csv", "0,1\n");
  WriteInput(dir_ / "nodes.csv", "0,drama,Tea\n1,action,Coffee\n");
  IngestInto("store", Options());
  const Path folder = Store::GenerationFolder(dir_ / "store", 1);
  const auto change = [&](const std::function<Status(ArrayChange&)>& steps) {
    return ArrayChange::Run(fs, dir_ / "store", {}, steps);
  };
  ASSERT_OK(change([](ArrayChange& arrays) { return arrays.Rename("title", "headline"); }));
  EXPECT_FALSE(std::filesystem::exists(folder / "texts/title"));
  {
    const auto graph = Open("store");
    ASSERT_NE(graph, nullptr);
    EXPECT_THAT(TextsOf(*graph, "headline", 2), ElementsAre("Tea", "Coffee"));
  }
  ASSERT_OK(change([](ArrayChange& arrays) { return arrays.Drop("headline"); }));
  EXPECT_FALSE(std::filesystem::exists(folder / "texts/headline"));
  EXPECT_TRUE(std::filesystem::exists(folder / "texts/label/zarr.json"));
  EXPECT_OK(Verify("store"));
}

TEST_F(TextValuesTest, DamagedTextsAreRepairedOrTheArrayIsGivenUp) {
  WriteInput(dir_ / "edges.csv", "0,1\n");
  WriteInput(dir_ / "nodes.csv", "0,drama,Tea\n1,action,Coffee\n");
  for (const bool fill : {false, true}) {
    const std::string name = fill ? "filled" : "dropped";
    IngestInto(name, Options());
    const Path folder = Store::GenerationFolder(dir_ / name, 1);
    const auto harm = [&](const std::string& file, std::string_view bytes) {
      std::fstream stream(folder / file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(8);
      stream << bytes;
    };
    // zarr.json follows from the manifest.
    harm("texts/label/zarr.json", "????????????");
    EXPECT_FALSE(Verify(name).ok());
    const auto rebuilt = RepairGraph(fs, dir_ / name, {}, JobControl());
    ASSERT_OK(rebuilt);
    EXPECT_TRUE(rebuilt->lost.empty());
    ASSERT_OK(Verify(name));
    // The texts themselves are nowhere else.
    harm("texts/title/c.0", "????????????");
    const auto repaired = RepairGraph(fs, dir_ / name, {.fill_holes = fill}, JobControl());
    ASSERT_OK(repaired);
    ASSERT_EQ(repaired->lost.size(), 1U);
    EXPECT_THAT(repaired->lost[0].how, HasSubstr("texts of its codes lost"));
    ASSERT_OK(Verify(name));
    const auto graph = Open(name);
    ASSERT_NE(graph, nullptr);
    EXPECT_THAT(*ReadClassNames(*graph), ElementsAre("action", "drama"));
    std::vector<std::int64_t> codes(2);
    const std::vector<VertexId> vertices = {0, 1};
    const Status read =
        graph->ReadRows("title", vertices, std::as_writable_bytes(std::span(codes)));
    EXPECT_EQ(read.ok(), fill);
    if (fill) {
      EXPECT_THAT(codes, ElementsAre(1, 0));
    }
    EXPECT_EQ(*TextValues::OpenIfAny(*graph, "title"), nullptr);
  }
}

TEST_F(TextValuesTest, ArraysOfCodesMayBringTheirTexts) {
  WriteInput(dir_ / "edges.csv", "0,1\n1,2\n");
  class Rows final : public RowSource {
   public:
    explicit Rows(std::vector<std::int64_t> codes) : codes_(std::move(codes)) {
      rows = codes_.size();
      dim = 1;
      dtype = DataType::kInt64;
    }
    Status Read(std::span<std::byte> out) override {
      std::memcpy(out.data(), codes_.data() + at_, out.size());
      at_ += out.size() / sizeof(std::int64_t);
      return Status::Ok();
    }

   private:
    std::vector<std::int64_t> codes_;
    std::size_t at_ = 0;
  };
  const auto options = [&](std::vector<std::int64_t> codes) {
    IngestOptions made;
    made.edges = {EdgeFile(dir_ / "edges.csv")};
    ArrayFile file;
    file.name = "label";
    file.path = "labels";
    file.open = [codes](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
      return std::make_unique<Rows>(codes);
    };
    file.texts =
        std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"cat", "dog"});
    made.arrays = {file};
    return made;
  };
  for (const auto spill : {IngestOptions::Spill::kNever, IngestOptions::Spill::kAlways}) {
    const std::string name = spill == IngestOptions::Spill::kNever ? "memory" : "spilled";
    IngestOptions good = options({1, -1, 0});
    good.spill = spill;
    IngestInto(name, good);
    const auto graph = Open(name);
    ASSERT_NE(graph, nullptr);
    EXPECT_THAT(TextsOf(*graph, "label", 3), ElementsAre("dog", "", "cat"));
    IngestOptions bad = options({1, 2, 0});
    bad.spill = spill;
    const auto refused = Ingest(fs, dir_ / "bad", bad, JobControl());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr("code 2 has no text"));
  }
  // A store to which updates added texts is exported in the order of its codes.
  IngestOptions given = options({1, 2, 0});
  given.arrays[0].texts = std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{"cat", "dog", "ant"});
  IngestInto("given", given);
  const auto graph = Open("given");
  ASSERT_NE(graph, nullptr);
  EXPECT_THAT(TextsOf(*graph, "label", 3), ElementsAre("dog", "ant", "cat"));
  EXPECT_EQ(**(*TextValues::Open(*graph, "label"))->CodeOf("ant"), 2);
  EXPECT_OK(Verify("given"));
  given.arrays[0].texts = std::make_shared<const std::vector<std::string>>(
      std::vector<std::string>{"dog", "cat", "dog"});
  const auto twice = Ingest(fs, dir_ / "twice", given, JobControl());
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message(), HasSubstr("array 'label': the text 'dog' is listed twice"));
}

// Graph::Write refuses such a code, so the row is written without a graph.
TEST_F(TextValuesTest, VerifyFindsCodesOfCommitsThatHaveNoText) {
  WriteInput(dir_ / "edges.csv", "0,1\n");
  WriteInput(dir_ / "nodes.csv", "0,drama,Tea\n1,action,Coffee\n");
  for (const std::int64_t code : {1, 2, -2}) {
    const std::string name = fmt::format("store{}", code);
    IngestInto(name, Options());
    {
      const auto store = Store::Open(fs, dir_ / name, Store::Mode::kWrite);
      ASSERT_OK(store);
      const auto writer = DeltaRowWriter::Open(**store);
      ASSERT_OK(writer);
      const std::uint64_t array = (*store)->manifest().FindArray("title")->array_id;
      ASSERT_OK((*writer)->Put(array, 0, sizeof(code), std::as_bytes(std::span(&code, 1))));
    }
    const Status status = Verify(name);
    const auto wrong = fmt::format("delta, 'title': code {} has no text; there are 2", code);
    EXPECT_EQ(status.ok(), code == 1) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(code == 1 ? "" : wrong));
  }
}

}  // namespace
}  // namespace rhizome
