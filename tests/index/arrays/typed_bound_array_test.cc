#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "index/delta/graph_parts.h"
#include "index/generation/graph_builder.h"
#include "index/graph/live_vertices.h"
#include "index/topology/type_rows.h"
#include "rhizome/array_add.h"
#include "rhizome/array_change.h"
#include "rhizome/backup.h"
#include "rhizome/graph.h"
#include "rhizome/graph_scan.h"
#include "rhizome/maintenance.h"
#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/store/generation_writer.h"
#include "testing/graph_model.h"
#include "testing/update_history.h"

// Tests of arrays that are bound to a vertex type: a model of the rows by vertex against random
// puts, deletions, compactions, repartitions, appended rows, backups and repairs; which chunks are
// stored, against order and types; and bad input.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::OpenStoreGraph;
using testing::TempDir;

constexpr std::uint64_t kDim = 3;
constexpr TypeId kPaper = 1;
const std::vector<std::string> kTypes = {"author", "paper", "venue"};

using RowOf = std::array<float, kDim>;

RowOf RandomRow(std::mt19937_64& rng) {
  RowOf row;
  for (float& value : row) value = static_cast<float>(rng() % 1000) / 8;
  return row;
}

/// Rows in memory, as an importer provides them.
class RowsOfModel final : public RowSource {
 public:
  explicit RowsOfModel(std::vector<RowOf> given) : given_(std::move(given)) {
    rows = given_.size();
    dim = kDim;
    dtype = DataType::kFloat32;
  }
  Status Read(std::span<std::byte> out) override {
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(given_.data()) + at_, out.size());
    at_ += out.size();
    return Status::Ok();
  }

 private:
  const std::vector<RowOf> given_;
  std::size_t at_ = 0;
};

/// A store of three vertex types whose papers have rows in two bound arrays, "feat" in layout row
/// and "code" in layout chunk, and a model of these rows by vertex.
class BoundArrayModel : public ::testing::Test {
 protected:
  static constexpr const char* kArrays[] = {"feat", "code"};

  void Build(std::uint64_t vertices, OrderKind order) {
    GraphInput input = testing::RandomGraph(
        rng_, {.vertices = vertices, .edges = vertices * 3, .id_kind = ExternalIdKind::kString});
    input.vertex_type_names = kTypes;
    input.string_ids.clear();
    for (std::uint64_t v = 0; v < vertices; ++v) {
      input.string_ids.push_back("v" + std::to_string(v));
      input.vertex_type.push_back(static_cast<TypeId>(rng_() % 10 == 0 ? kPaper : rng_() % 2 * 2));
      types_.push_back(input.vertex_type.back());
      if (types_.back() == kPaper) rows_[static_cast<VertexId>(v)] = RandomRow(rng_);
    }
    for (const char* name : kArrays) {
      const bool row = name == kArrays[0];
      ArrayInput array{.name = name,
                       .dim = kDim,
                       .layout = row ? ArrayLayout::kRow : ArrayLayout::kChunk,
                       .codec = {.kind = CodecKind::kZstd},
                       .chunk_rows = row ? chunk_rows_of_feat_ : 16U,
                       .attributes = {{std::string(kVertexTypeAttribute), "paper"}},
                       .read_rows = {}};
      array.read_rows = [this](std::span<const VertexId> wanted, std::span<std::byte> out) {
        for (std::size_t i = 0; i < wanted.size(); ++i)
          std::memcpy(out.data() + i * sizeof(RowOf), rows_.at(wanted[i]).data(), sizeof(RowOf));
        return Status::Ok();
      };
      input.arrays.push_back(std::move(array));
    }
    BuildOptions build;
    build.partition.partitions = 3;
    build.order = order;
    ASSERT_OK(testing::BuildStore(path_, std::move(input), build));
  }

  bool IsPaper(std::uint64_t v) const { return types_[v] == kPaper && !deleted_.contains(v); }

  std::uint64_t RandomVertex() { return rng_() % types_.size(); }

  /// Draws a batch, and applies it to the model.
  void Update(Graph& graph) {
    WriteBatch batch;
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t v = RandomVertex();
      const std::string id = "v" + std::to_string(v);
      switch (rng_() % 4) {
        case 0: {
          const auto type = static_cast<TypeId>(rng_() % 3);
          batch.PutVertex("v" + std::to_string(types_.size()), kTypes[type]);
          types_.push_back(type);
          break;
        }
        case 1:
          if (deleted_.contains(v) || rng_() % 4 != 0) break;
          batch.DeleteVertex(id);
          deleted_.insert(v);
          break;
        case 2:  // a row of a vertex that does not exist adds a paper
          if (rng_() % 4 != 0) break;
          Put(batch, types_.size());
          types_.push_back(kPaper);
          break;
        default:
          if (IsPaper(v)) Put(batch, v);
      }
    }
    ASSERT_OK(graph.Write(batch, {.sync = false, .create_vertices = true}));
  }
  void Put(WriteBatch& batch, std::uint64_t v) {
    const RowOf row = RandomRow(rng_);
    for (const char* name : kArrays) batch.PutRow("v" + std::to_string(v), name, row);
    rows_[static_cast<VertexId>(v)] = row;
  }

  /// Appends rows to the papers that have none, beginning with the first.
  void Append() {
    const auto open = OpenStoreGraph(path_);
    ASSERT_OK(open);
    for (const char* name : kArrays) {
      const ArrayEntry entry = *open->store->manifest().FindArray(name);
      std::uint64_t given = RowsGiven(entry);
      if (given >= entry.rows) return;
      std::vector<RowOf> rows;
      for (; given < types_.size(); ++given) {
        if (!IsPaper(given)) continue;
        if (name == kArrays[0]) rows_[static_cast<VertexId>(given)] = RandomRow(rng_);
        rows.push_back(rows_[static_cast<VertexId>(given)]);
      }
      if (rows.empty()) return;
      AddArrayOptions options{.file = {}, .memory_bytes = 1 << 16};
      options.file.open = [&](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
        return std::make_unique<RowsOfModel>(rows);
      };
      const auto report = AppendRows(FileSystem::Posix(), path_, name, options, JobControl());
      ASSERT_OK(report);
      EXPECT_EQ(report->rows_read, rows.size());
    }
  }

  void ExpectAgrees() {
    const auto open = OpenStoreGraph(path_);
    ASSERT_OK(open);
    ASSERT_EQ(open->graph->vertex_count(), types_.size());
    std::vector<VertexId> papers;
    for (std::uint64_t v = 0; v < types_.size(); ++v)
      if (IsPaper(v)) papers.push_back(static_cast<VertexId>(v));
    for (const char* name : kArrays) {
      SCOPED_TRACE(name);
      std::vector<RowOf> read(papers.size());
      ASSERT_OK(open->graph->ReadRows(name, papers, std::as_writable_bytes(std::span(read))));
      for (std::size_t i = 0; i < papers.size(); ++i)
        EXPECT_EQ(read[i], Expected(papers[i])) << "vertex " << papers[i];
      ExpectScan(*open->graph, name, papers);
      ExpectOthersRefused(*open->graph, name);
      ExpectChunks(*open->store, name);
    }
    testing::ExpectVerifies(path_);
  }

  RowOf Expected(VertexId vertex) const {
    const auto at = rows_.find(vertex);
    return at == rows_.end() ? RowOf{} : at->second;
  }

  void ExpectScan(const GraphSnapshot& graph, const char* name,
                  const std::vector<VertexId>& papers) {
    auto scan = ArrayScan::Open(graph, name);
    ASSERT_OK(scan);
    std::vector<VertexId> seen;
    ArrayScan::Block block;
    while (true) {
      const auto more = scan->Next(64, block);
      ASSERT_OK(more);
      if (!*more) break;
      for (std::size_t i = 0; i < block.vertices.size(); ++i) {
        RowOf row;
        std::memcpy(row.data(), &block.rows[i * sizeof(RowOf)], sizeof(RowOf));
        EXPECT_EQ(row, Expected(block.vertices[i]));
        seen.push_back(block.vertices[i]);
      }
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, papers);
  }

  void ExpectOthersRefused(const GraphSnapshot& graph, const char* name) {
    for (std::uint64_t v = 0; v < types_.size(); ++v) {
      if (types_[v] == kPaper) continue;
      RowOf row;
      const auto vertex = static_cast<VertexId>(v);
      const Status status =
          graph.ReadRows(name, std::span(&vertex, 1), std::as_writable_bytes(std::span(row)));
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(),
                  HasSubstr("vertex " + std::to_string(v) + " has the type '" + kTypes[types_[v]]));
      return;  // one is enough
    }
  }

  /// Compares the files of an array and of its sidecar with the order and the types.
  void ExpectChunks(const Store& store, const char* name) {
    const auto order = LoadOrder(store);
    ASSERT_OK(order);
    for (const ArrayEntry& entry : store.manifest().arrays) {
      if (!entry.name.starts_with(name)) continue;
      std::vector<std::uint64_t> wanted;
      for (std::uint64_t row = 0; row < order->size(); ++row) {
        const auto v = static_cast<std::uint64_t>(order->VertexAt(static_cast<Row>(row)));
        const std::uint64_t chunk = row / entry.chunk_rows;
        if (types_[v] == kPaper && (wanted.empty() || wanted.back() != chunk))
          wanted.push_back(chunk);
      }
      EXPECT_EQ(ListedChunks(entry, store.manifest().files), wanted) << entry.name;
      left_out_ += entry.chunk_count() - wanted.size();
    }
  }

  TempDir dir_;
  const Path path_ = dir_ / "g.rz";
  std::mt19937_64 rng_{testing::TestSeed()};
  std::vector<TypeId> types_;
  std::set<std::uint64_t> deleted_;
  std::map<VertexId, RowOf> rows_;
  std::uint64_t left_out_ = 0;
  std::uint64_t chunk_rows_of_feat_ = 0;  // 0: the default
};

TEST_F(BoundArrayModel, AgreesUnderRandomUpdates) {
  constexpr OrderKind kOrders[] = {OrderKind::kPds, OrderKind::kPs, OrderKind::kNatural,
                                   OrderKind::kRandom};
  Build(400, kOrders[rng_() % 4]);
  ExpectAgrees();
  for (int step = 0; step < 12 && !HasFailure(); ++step) {
    {
      const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
      ASSERT_OK(store);
      const auto graph = Graph::Open(**store);
      ASSERT_OK(graph);
      for (int i = 0; i < 3; ++i) Update(**graph);
      if (step % 3 == 2) {
        CompactOptions options{.repartition = rng_() % 2 == 0, .threads = step % 2 == 0 ? 1U : 2U};
        options.partition.partitions = 2 + static_cast<std::uint32_t>(rng_() % 4);
        if (rng_() % 2 == 0) options.order = kOrders[rng_() % 4];
        ASSERT_OK((*graph)->Compact(options, JobControl()));
      }
    }
    ExpectAgrees();
    if (step % 3 == 2) {
      Append();
      ExpectAgrees();
    }
  }
  EXPECT_GT(left_out_, 0U);
}

TEST_F(BoundArrayModel, BackupsHaveTheFilesThatThereAre) {
  Build(300, OrderKind::kPds);
  ASSERT_OK(BackupStore(FileSystem::Posix(), path_, dir_ / "backups", {}, JobControl()));
  ASSERT_OK(std::filesystem::remove_all(path_) > 0 ? Status::Ok() : Status::NotFound("store"));
  ASSERT_OK(RestoreStore(FileSystem::Posix(), dir_ / "backups", path_, std::nullopt, JobControl()));
  ExpectAgrees();
}

TEST_F(BoundArrayModel, RepairRestoresRowsOfOtherTypesAndLosesNoMore) {
  Build(300, OrderKind::kRandom);  // every chunk has rows of other types
  const Path chunk = path_ / "generations/000001/arrays/feat/c.0.0";
  // Damages all rows of the chunk: the rows of other types follow from the sidecar.
  std::vector<char> zeros(std::filesystem::file_size(chunk));
  std::ofstream(chunk, std::ios::binary)
      .write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
  const auto report = RepairGraph(FileSystem::Posix(), path_, {.fill_holes = true}, JobControl());
  ASSERT_OK(report);
  const auto open = OpenStoreGraph(path_);
  ASSERT_OK(open);
  const ArrayEntry* const entry = open->store->manifest().FindArray("feat");
  ASSERT_NE(entry, nullptr);
  const auto order = LoadOrder(*open->store);
  ASSERT_OK(order);
  const auto array = open->store->OpenArray("feat");
  ASSERT_OK(array);
  std::vector<RowOf> rows(entry->rows);
  ASSERT_OK((*array)->ReadRows(0, entry->rows, std::as_writable_bytes(std::span(rows))));
  for (std::uint64_t row = 0; row < rows.size(); ++row) {
    const VertexId vertex = order->VertexAt(static_cast<Row>(row));
    const bool paper = types_[static_cast<std::size_t>(vertex)] == kPaper;
    const bool in_chunk = row < entry->chunk_rows;
    if (!paper)
      EXPECT_TRUE(std::isnan(rows[row][0])) << row;
    else
      EXPECT_EQ(rows[row], in_chunk ? RowOf{} : Expected(vertex)) << row;
  }
  testing::ExpectVerifies(path_);
}

/// Stores of three types whose manifest lists other chunks than order and types require.
class WrongChunksTest : public BoundArrayModel {
 protected:
  using Chunks = std::set<std::uint64_t>;

  /// Builds the store, and finds the chunks of an array, and one that it leaves out.
  void BuildFor(const std::string& array) {
    chunk_rows_of_feat_ = 8;
    Build(300, OrderKind::kPds);
    array_ = array;
    const auto store = testing::OpenStore(path_, Store::Mode::kRead);
    ASSERT_OK(store);
    const ArrayEntry& entry = *(*store)->manifest().FindArray(array);
    for (const std::uint64_t chunk : ListedChunks(entry, (*store)->manifest().files))
      chunks_.insert(chunk);
    while (chunks_.contains(superfluous_)) ++superfluous_;
    ASSERT_LT(superfluous_, entry.chunk_count());
    const auto rows = (*store)->OpenArray(array);
    ASSERT_OK(rows);
    rows_before_.resize(entry.rows);
    ASSERT_OK((*rows)->ReadRows(0, entry.rows, std::as_writable_bytes(std::span(rows_before_))));
  }

  /// Replaces the array by a copy that has exactly these chunks.
  void StoreChunks(const Chunks& chunks) {
    const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const ArrayEntry entry = *(*store)->manifest().FindArray(array_);
    const Path root = dir_ / "scratch";
    const auto writer = ChunkArrayWriter::Create(FileSystem::Posix(), root, entry);
    ASSERT_OK(writer);
    for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
      if (!chunks.contains(chunk)) {
        ASSERT_OK((*writer)->LeaveOut(chunk));
        continue;
      }
      const std::uint64_t first = chunk * entry.chunk_rows;
      const auto rows =
          std::span(rows_before_).subspan(first, std::min(entry.chunk_rows, entry.rows - first));
      ASSERT_OK((*writer)->WriteChunk(chunk, std::as_bytes(rows)));
    }
    const auto files = (*writer)->Finish();
    ASSERT_OK(files);
    auto change = ArrayChange::Begin(**store);
    ASSERT_OK(change);
    const auto arrays = (*writer)->arrays();
    ASSERT_OK(change->Replace(array_, {arrays, root, *files}));
    ASSERT_OK(change->Commit());
  }

  std::string FoundByVerify() {
    const auto report = VerifyStore(FileSystem::Posix(), path_, JobControl());
    EXPECT_OK(report);
    std::string found;
    for (const Damage& damage : report->damaged) found += damage.file + ": " + damage.what + "\n";
    return found;
  }

  Chunks Without(std::uint64_t chunk) const {
    Chunks fewer = chunks_;
    fewer.erase(chunk);
    return fewer;
  }
  Chunks With(std::uint64_t chunk) const {
    Chunks more = chunks_;
    more.insert(chunk);
    return more;
  }

  /// Repairs, and compares the array with its rows before, except that `lost` chunks have lost
  /// theirs.
  void ExpectRepaired(const Chunks& lost) {
    const auto report = RepairGraph(FileSystem::Posix(), path_, {.fill_holes = true}, JobControl());
    ASSERT_OK(report);
    EXPECT_EQ(report->lost.empty(), lost.empty());
    EXPECT_FALSE(report->found.empty());
    testing::ExpectVerifies(path_);
    const auto open = OpenStoreGraph(path_);
    ASSERT_OK(open);
    ExpectChunks(*open->store, array_.c_str());
    const auto array = open->store->OpenArray(array_);
    ASSERT_OK(array);
    const ArrayEntry& entry = (*array)->entry();
    const auto order = LoadOrder(*open->store);
    ASSERT_OK(order);
    std::vector<RowOf> rows(entry.rows);
    ASSERT_OK((*array)->ReadRows(0, entry.rows, std::as_writable_bytes(std::span(rows))));
    for (std::uint64_t row = 0; row < rows.size(); ++row) {
      const auto vertex = static_cast<std::size_t>(order->VertexAt(static_cast<Row>(row)));
      if (types_[vertex] != kPaper)
        EXPECT_TRUE(std::isnan(rows[row][0])) << row;
      else if (lost.contains(row / entry.chunk_rows))
        EXPECT_EQ(rows[row], RowOf{}) << row;
      else
        EXPECT_EQ(rows[row], rows_before_[row]) << row;
    }
  }

  std::string array_;
  Chunks chunks_;
  std::uint64_t superfluous_ = 0;
  std::vector<RowOf> rows_before_;
};

TEST_F(WrongChunksTest, VerifyFindsThem) {
  BuildFor("code");
  StoreChunks(Without(*chunks_.begin()));
  EXPECT_THAT(FoundByVerify(),
              ::testing::AllOf(HasSubstr("c." + std::to_string(*chunks_.begin()) + ".0: "),
                               HasSubstr("the manifest does not list it"),
                               HasSubstr("vertices of type 'paper'")));
  StoreChunks(With(superfluous_));
  EXPECT_THAT(FoundByVerify(),
              ::testing::AllOf(HasSubstr("c." + std::to_string(superfluous_) + ".0: "),
                               HasSubstr("is stored, but has no vertex of type 'paper'")));
}

TEST_F(WrongChunksTest, RepairMendsLayoutRow) {
  BuildFor("feat");
  StoreChunks(With(superfluous_));
  ExpectRepaired({});
  StoreChunks(Without(*chunks_.begin()));
  ExpectRepaired({*chunks_.begin()});
}

TEST_F(WrongChunksTest, RepairMendsLayoutChunk) {
  BuildFor("code");
  StoreChunks(With(superfluous_));
  ExpectRepaired({});
  StoreChunks(Without(*chunks_.begin()));
  ExpectRepaired({*chunks_.begin()});
}

TEST_F(WrongChunksTest, RepairDropsAnArrayThatLacksAChunk) {
  BuildFor("feat");
  StoreChunks(Without(*chunks_.rbegin()));
  const auto preview = RepairGraph(FileSystem::Posix(), path_, {.dry_run = true}, JobControl());
  ASSERT_OK(preview);
  EXPECT_EQ(preview->lost.size(), 1U);
  EXPECT_THAT(FoundByVerify(), HasSubstr("the manifest does not list it"));
  const auto report = RepairGraph(FileSystem::Posix(), path_, {}, JobControl());
  ASSERT_OK(report);
  ASSERT_EQ(report->lost.size(), 1U);
  EXPECT_THAT(report->lost.front().how, HasSubstr("the array was dropped"));
  testing::ExpectVerifies(path_);
  const auto open = OpenStoreGraph(path_);
  ASSERT_OK(open);
  EXPECT_EQ(open->store->manifest().FindArray("feat"), nullptr);
  EXPECT_NE(open->store->manifest().FindArray("code"), nullptr);
}

/// Adds arrays to a store of three types.
class AddBoundArrayTest : public BoundArrayModel {
 protected:
  Result<AddArrayReport> Add(std::vector<RowOf> rows, AddArrayOptions options = {.file = {}}) {
    if (options.file.name.empty()) options.file.name = "added";
    if (options.file.vertex_type.empty()) options.file.vertex_type = "paper";
    options.file.open = [rows](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
      return std::make_unique<RowsOfModel>(rows);
    };
    options.memory_bytes = 1 << 16;
    return AddArray(FileSystem::Posix(), path_, options, JobControl());
  }
  std::vector<VertexId> Papers() const {
    std::vector<VertexId> papers;
    for (std::uint64_t v = 0; v < types_.size(); ++v)
      if (IsPaper(v)) papers.push_back(static_cast<VertexId>(v));
    return papers;
  }
  std::vector<RowOf> RowsOf(std::size_t count) {
    std::vector<RowOf> rows(count);
    for (RowOf& row : rows) row = RandomRow(rng_);
    return rows;
  }
  std::vector<RowOf> Read(const char* name, std::span<const VertexId> vertices) {
    const auto open = OpenStoreGraph(path_);
    std::vector<RowOf> rows(vertices.size());
    EXPECT_OK(open->graph->ReadRows(name, vertices, std::as_writable_bytes(std::span(rows))));
    return rows;
  }
};

TEST_F(AddBoundArrayTest, RowsBelongToTheVerticesOfTheType) {
  Build(400, OrderKind::kPds);
  const auto papers = Papers();
  for (const ArrayLayout layout : {ArrayLayout::kRow, ArrayLayout::kChunk}) {
    const std::string name = layout == ArrayLayout::kRow ? "r" : "c";
    const auto rows = RowsOf(papers.size());
    AddArrayOptions options{.file = {}, .layout = layout};
    options.file.name = name;
    const auto report = Add(rows, options);
    ASSERT_OK(report);
    EXPECT_EQ(report->rows_given, papers.size());
    EXPECT_EQ(BoundType(report->array), "paper");
    EXPECT_EQ(RowsGiven(report->array), report->array.rows);
    EXPECT_EQ(Read(name.c_str(), papers), rows);
    const auto open = OpenStoreGraph(path_);
    ASSERT_OK(open);
    ExpectChunks(*open->store, name.c_str());
  }
  testing::ExpectVerifies(path_);
}

TEST_F(AddBoundArrayTest, RowsMayBeGivenForNewVerticesAndAppended) {
  Build(300, OrderKind::kPs);
  {
    const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    WriteBatch batch;
    for (int i = 0; i < 30; ++i) {
      const auto type = static_cast<TypeId>(i % 3);
      batch.PutVertex("v" + std::to_string(types_.size()), kTypes[type]);
      types_.push_back(type);
    }
    ASSERT_OK((*graph)->Write(batch, {}));
  }
  const auto papers = Papers();
  const auto rows = RowsOf(papers.size());
  const std::size_t half = papers.size() - 5;  // some new papers have rows, others not
  const auto report = Add({rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(half)});
  ASSERT_OK(report);
  EXPECT_EQ(report->rows_given, half);
  EXPECT_EQ(report->new_vertices, 5U);
  auto expected = rows;
  std::fill(expected.begin() + static_cast<std::ptrdiff_t>(half), expected.end(), RowOf{});
  EXPECT_EQ(Read("added", papers), expected);
  AddArrayOptions options{.file = {}, .memory_bytes = 1 << 16};
  options.file.open = [&](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
    return std::make_unique<RowsOfModel>(
        std::vector<RowOf>(rows.begin() + static_cast<std::ptrdiff_t>(half), rows.end()));
  };
  const auto appended = AppendRows(FileSystem::Posix(), path_, "added", options, JobControl());
  ASSERT_OK(appended);
  EXPECT_EQ(Read("added", papers), rows);
  const auto again = AppendRows(FileSystem::Posix(), path_, "added", options, JobControl());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message(), HasSubstr("of type 'paper'"));
  testing::ExpectVerifies(path_);
}

TEST_F(AddBoundArrayTest, BadInputIsRefused) {
  Build(200, OrderKind::kPds);
  const auto papers = Papers();
  const auto refused = [&](std::vector<RowOf> rows, const AddArrayOptions& options) {
    const auto report = Add(std::move(rows), options);
    if (report) return std::string("accepted");
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument);
    return report.error().message();
  };
  AddArrayOptions unknown{.file = {}};
  unknown.file.vertex_type = "x";
  EXPECT_THAT(refused(RowsOf(2), unknown),
              HasSubstr("no vertex type 'x'; vertex types: author, paper, venue"));
  const std::string most = std::to_string(papers.size());
  EXPECT_THAT(refused(RowsOf(papers.size() + 1), {.file = {}}),
              HasSubstr(std::to_string(papers.size() + 1) + " rows, but the graph has " + most +
                        " vertices of type 'paper'"));
  AddArrayOptions options{.file = {}};
  options.attributes = {{std::string(kVertexTypeAttribute), "paper"}};
  EXPECT_THAT(refused(RowsOf(papers.size()), options), HasSubstr("is set by the store"));
  // The id of a vertex of another type.
  std::uint64_t other = 0;
  while (types_[other] == kPaper) ++other;
  std::ofstream(dir_ / "ids.txt") << "v" << papers.front() << "\nv" << other << "\n";
  options = {.file = {}, .ids = dir_ / "ids.txt"};
  EXPECT_THAT(refused(RowsOf(2), options),
              HasSubstr("id 'v" + std::to_string(other) + "' is a vertex of type '"));
}

TEST_F(AddBoundArrayTest, PutsOfOtherTypesAreRefused) {
  Build(100, OrderKind::kPds);
  const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
  ASSERT_OK(store);
  const auto graph = Graph::Open(**store);
  ASSERT_OK(graph);
  std::uint64_t other = 0;
  while (types_[other] == kPaper) ++other;
  const std::string id = "v" + std::to_string(other);
  WriteBatch batch;
  batch.PutRow(id, "feat", RowOf{});
  Status status = (*graph)->Write(batch, {}).error();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              HasSubstr("vertex '" + id + "' has the type '" + kTypes[types_[other]] +
                        "', but array 'feat' has rows "
                        "of the type 'paper' only"));
  // A vertex that the same batch adds.
  batch = {};
  batch.PutVertex("new", "venue");
  batch.PutRow(ExternalId("new"), "code", RowOf{});
  status = (*graph)->Write(batch, {}).error();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'venue'"));
  EXPECT_FALSE((*graph)->Find(ExternalId("new")));  // nothing of the batch was applied
}

/// Arrays of a vertex type that the generation does not have yet. The parameter is the number of
/// types that it has.
class NewTypeTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    BuildOptions build;
    build.partition.partitions = 2;
    ASSERT_OK(testing::BuildStore(path_,
                                  testing::RandomGraph(rng_, {.vertices = 150,
                                                              .edges = 300,
                                                              .vertex_types = GetParam(),
                                                              .id_kind = ExternalIdKind::kString}),
                                  build));
  }

  void Change(const std::function<void(Graph&)>& change) {
    const auto store = testing::OpenStore(path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    const auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    change(**graph);
  }

  /// Puts `count` vertices of the type "reviewer", and as many of the first type.
  void PutReviewers(int count) {
    Change([&](Graph& graph) {
      WriteBatch batch;
      for (int i = 0; i < count; ++i) {
        batch.PutVertex("r" + std::to_string(reviewers_++), "reviewer");
        batch.PutVertex("other" + std::to_string(reviewers_), "vertex0");
      }
      ASSERT_OK(graph.Write(batch, {.create_types = true}));
    });
  }

  AddArrayOptions Rows(std::size_t count) {
    std::vector<RowOf> rows;
    for (std::size_t i = 0; i < count; ++i) rows.push_back(RandomRow(rng_));
    expected_.insert(expected_.end(), rows.begin(), rows.end());
    AddArrayOptions options{.file = {.name = "skill", .path = {}, .vertex_type = "reviewer"}};
    options.file.open = [rows](FileSystem&) -> Result<std::unique_ptr<RowSource>> {
      return std::make_unique<RowsOfModel>(rows);
    };
    return options;
  }

  /// Compares the rows of the reviewers, in the order of their ids, with the expected ones.
  void ExpectAgrees(const Path& path) {
    testing::ExpectVerifies(path);
    const auto open = OpenStoreGraph(path);
    ASSERT_OK(open);
    const ArrayEntry* const entry = open->store->manifest().FindArray("skill");
    ASSERT_NE(entry, nullptr);
    const LiveVertices live = LiveVertices::Of(*open->graph, *entry);
    ASSERT_EQ(live.count(), expected_.size());
    std::vector<VertexId> reviewers;
    for (std::uint64_t i = 0; i < live.count(); ++i) {
      reviewers.push_back(live.At(i));
      EXPECT_EQ(*open->graph->ExternalIdOf(live.At(i)), ExternalId("r" + std::to_string(i)));
    }
    std::vector<RowOf> rows(reviewers.size());
    ASSERT_OK(open->graph->ReadRows("skill", reviewers, std::as_writable_bytes(std::span(rows))));
    EXPECT_EQ(rows, expected_);
    const VertexId first = 0;
    rows.resize(1);
    const Status other = open->graph->ReadRows("skill", std::span(&first, 1),
                                               std::as_writable_bytes(std::span(rows)));
    EXPECT_THAT(other.message(), HasSubstr("rows of the type 'reviewer' only"));
  }

  const TempDir dir_;
  const Path path_ = dir_ / "g.rz";
  std::mt19937_64 rng_{testing::TestSeed()};
  int reviewers_ = 0;
  std::vector<RowOf> expected_;
};

TEST_P(NewTypeTest, ArraysOfItAreAddedAndSurviveCompactionsAndBackups) {
  FileSystem& fs = FileSystem::Posix();
  PutReviewers(4);
  ASSERT_OK(AddArray(fs, path_, Rows(4), JobControl()));
  ExpectAgrees(path_);
  PutReviewers(2);
  ASSERT_OK(AppendRows(fs, path_, "skill", Rows(2), JobControl()));
  ExpectAgrees(path_);
  ASSERT_OK(BackupStore(fs, path_, dir_ / "backups", {}, JobControl()));
  ASSERT_OK(RestoreStore(fs, dir_ / "backups", dir_ / "restored", std::nullopt, JobControl()));
  ExpectAgrees(dir_ / "restored");
  Change([&](Graph& graph) {
    WriteBatch batch;
    batch.PutRow("r1", "skill", expected_[1] = RandomRow(rng_));
    batch.PutRow("r6", "skill", expected_.emplace_back(RandomRow(rng_)));
    ASSERT_OK(graph.Write(batch, {.create_vertices = true}));
    ++reviewers_;
  });
  ExpectAgrees(path_);
  Change([&](Graph& graph) { ASSERT_OK(graph.Compact({}, JobControl())); });
  ExpectAgrees(path_);
  {
    const auto store = testing::OpenStore(path_, Store::Mode::kRead);
    ASSERT_OK(store);
    EXPECT_EQ((*store)->manifest().info.vertex_types.back(), "reviewer");
  }
  PutReviewers(3);
  ASSERT_OK(AppendRows(fs, path_, "skill", Rows(3), JobControl()));
  Change([&](Graph& graph) { ASSERT_OK(graph.Compact({.repartition = true}, JobControl())); });
  ExpectAgrees(path_);
}

TEST_P(NewTypeTest, AnEmptyArrayOfItIsAddedAndDropped) {
  FileSystem& fs = FileSystem::Posix();
  PutReviewers(3);
  AddArrayOptions options = Rows(3);
  options.file.open = EmptyRows(DataType::kFloat32, kDim);
  ASSERT_OK(AddArray(fs, path_, options, JobControl()));
  std::ranges::fill(expected_, RowOf{});
  ExpectAgrees(path_);
  ASSERT_OK(
      ArrayChange::Run(fs, path_, {}, [](ArrayChange& change) { return change.Drop("skill"); }));
  testing::ExpectVerifies(path_);
}

// As after a repair that lost the delta.
TEST_P(NewTypeTest, VerifyFindsAnArrayWhoseTypeDoesNotExist) {
  const ArrayEntry entry{.name = "lost",
                         .rows = 150,
                         .dim = kDim,
                         .layout = ArrayLayout::kChunk,
                         .codec = {},
                         .chunk_rows = 150,
                         .array_id = 99,
                         .attributes = {{std::string(kVertexTypeAttribute), "reviewer"}}};
  FileSystem& fs = FileSystem::Posix();
  const auto writer = ChunkArrayWriter::Create(fs, dir_ / "scratch", entry);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->LeaveOut(0));
  const auto files = (*writer)->Finish();
  ASSERT_OK(files);
  const auto arrays = (*writer)->arrays();
  const auto change_arrays = [&](const std::function<Status(ArrayChange&)>& steps) {
    ASSERT_OK(ArrayChange::Run(fs, path_, {}, steps));
  };
  change_arrays([&](ArrayChange& change) {
    return testing::AsStatus(change.Add({arrays, dir_ / "scratch", *files}));
  });
  const auto report = VerifyStore(fs, path_, JobControl());
  ASSERT_OK(report);
  ASSERT_EQ(report->damaged.size(), 1U);
  EXPECT_THAT(report->damaged.front().what,
              HasSubstr("the vertex type 'reviewer', which does not"));
  change_arrays([&](ArrayChange& change) { return change.Drop("lost"); });
  testing::ExpectVerifies(path_);
}

INSTANTIATE_TEST_SUITE_P(TypesOfTheGeneration, NewTypeTest, ::testing::Values(1, 2));

}  // namespace
}  // namespace rhizome
