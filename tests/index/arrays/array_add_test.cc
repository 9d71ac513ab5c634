#include "rhizome/array_add.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "index/generation/graph_builder.h"
#include "index/input/npy.h"
#include "index/topology/vertex_order.h"
#include "rhizome/array_change.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "rhizome/verify.h"
#include "storage/array/array_versions.h"
#include "storage/maintenance/verify_files.h"
#include "testing/graph_model.h"
#include "testing/test_store.h"
#include "testing/update_history.h"

// Tests of AddArray and AppendRows: rows from .npy and triplet files, by external id, for vertices
// of the delta, after deletions, versions of arrays, and invalid input.

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OpenStoreGraph;
using testing::RandomGraph;
using testing::TempDir;

/// Returns the value of column `c` of vertex `v` in version `version`, by a formula.
float Value(std::uint64_t v, std::uint64_t c, int version = 0) {
  return static_cast<float>(v * 4 + c) + 0.25F * static_cast<float>(version);
}

class AddArrayTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kVertices = 300;
  static constexpr std::uint64_t kDim = 3;

  AddArrayTest() { Build(ExternalIdKind::kDense); }

  void Build(ExternalIdKind kind) {
    std::mt19937_64 rng(testing::TestSeed());
    path_ = dir_ / (kind == ExternalIdKind::kDense ? "d" : "s");
    GraphInput input =
        RandomGraph(rng, {.vertices = kVertices, .edges = 900, .vertex_types = 3, .id_kind = kind});
    strings_ = input.string_ids;
    BuildOptions build;
    build.partition.partitions = 3;
    ASSERT_OK(testing::BuildStore(path_, std::move(input), build));
  }

  Path Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::binary) << text;
    return dir_ / name;
  }

  /// Writes rows [first, first + count) of the formula as a .npy file.
  Path Npy(const std::string& name, std::uint64_t first, std::uint64_t count, int version = 0) {
    std::string text = NpyHeaderText(count);
    for (std::uint64_t v = first; v < first + count; ++v) {
      for (std::uint64_t c = 0; c < kDim; ++c) {
        const float value = Value(v, c, version);
        text.append(reinterpret_cast<const char*>(&value), sizeof(value));
      }
    }
    return Write(name, text);
  }
  static std::string NpyHeaderText(std::uint64_t rows) {
    const std::uint64_t shape[] = {rows, kDim};
    const auto header = EncodeNpyHeader(DataType::kFloat32, shape);
    return {reinterpret_cast<const char*>(header.data()), header.size()};
  }

  Result<AddArrayReport> Add(const std::string& name, const Path& file,
                             AddArrayOptions options = {.file = {}}) {
    options.file.name = name;
    options.file.path = file;
    return AddArray(FileSystem::Posix(), path_, options, JobControl());
  }
  Result<AddArrayReport> Append(const std::string& reference, const Path& file) {
    AddArrayOptions options{.file = {}};
    options.file.path = file;
    return AppendRows(FileSystem::Posix(), path_, reference, options, JobControl());
  }

  /// Expects that every vertex below `given` has the row of the formula, and all others zeros.
  void ExpectRows(const std::string& reference, std::uint64_t given, int version = 0) {
    const auto open = OpenStoreGraph(path_);
    ASSERT_OK(open);
    const auto array = open->store->OpenArray(reference);
    ASSERT_OK(array);
    ASSERT_EQ((*array)->entry().rows, kVertices);
    EXPECT_EQ(RowsGiven((*array)->entry()), given);
    std::vector<float> rows(kVertices * kDim);
    ASSERT_OK((*array)->ReadRows(0, kVertices, std::as_writable_bytes(std::span(rows))));
    for (std::uint64_t r = 0; r < kVertices; ++r) {
      const auto v = static_cast<std::uint64_t>(*open->graph->VertexAt(static_cast<Row>(r)));
      for (std::uint64_t c = 0; c < kDim; ++c)
        ASSERT_EQ(rows[r * kDim + c], v < given ? Value(v, c, version) : 0.0F) << "vertex " << v;
    }
  }

  void ExpectSound() {
    auto report = VerifyFiles(FileSystem::Posix(), path_, JobControl());
    ASSERT_OK(report);
    ASSERT_OK(VerifyGraph(FileSystem::Posix(), path_, JobControl(), *report));
    for (const Damage& damage : report->damaged)
      ADD_FAILURE() << damage.file << ": " << damage.what;
    EXPECT_THAT(report->orphans, ElementsAre());
  }

  TempDir dir_;
  Path path_;
  std::vector<std::string> strings_;
};

TEST_F(AddArrayTest, RowsArriveInTheStoresOrder) {
  for (const ArrayLayout layout : {ArrayLayout::kRow, ArrayLayout::kChunk}) {
    const std::string name = layout == ArrayLayout::kRow ? "r" : "c";
    // The memory limit is so small that the rows go through several buckets.
    AddArrayOptions options{.file = {}, .layout = layout, .chunk_rows = 128, .memory_bytes = 4096};
    const auto report = Add(name, Npy("x.npy", 0, kVertices), options);
    ASSERT_OK(report);
    EXPECT_EQ(report->array.name, name);
    EXPECT_EQ(report->rows_given, kVertices);
    ExpectRows(name, kVertices);
  }
  ExpectSound();
}

TEST_F(AddArrayTest, TripletsAreRowsOfTheWholeArray) {
  AddArrayOptions options{.file = {}};
  options.file.dim = kDim;
  // Three columns may also be rows of this array.
  const Path file = Write("t.tsv", "0\t0\t1.5\n7\t2\t-1\n");
  static_assert(kDim == 3);
  const auto refused = testing::AsStatus(Add("t", file, options));
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("triplets"));
  options.file.triplets = true;
  const auto report = Add("t", file, options);
  ASSERT_OK(report);
  EXPECT_EQ(report->rows_given, kVertices);
  const auto open = OpenStoreGraph(path_);
  ASSERT_OK(open);
  const auto array = open->store->OpenArray("t");
  ASSERT_OK(array);
  float row[kDim];
  ASSERT_OK((*array)->ReadRows(static_cast<std::uint64_t>(*open->graph->RowOf(7)), 1,
                               std::as_writable_bytes(std::span(row))));
  EXPECT_THAT(row, ElementsAre(0.0F, 0.0F, -1.0F));
}

TEST_F(AddArrayTest, RowsByExternalId) {
  Build(ExternalIdKind::kString);
  // The file has the rows of the last 100 vertices in reverse order.
  std::string ids;
  std::string text = NpyHeaderText(100);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t v = kVertices - 1 - i;
    ids += strings_[v] + "\n";
    for (std::uint64_t c = 0; c < kDim; ++c) {
      const float value = Value(v, c);
      text.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  AddArrayOptions options{.file = {}, .ids = Write("ids.tsv", ids)};
  const auto report = Add("x", Write("x.npy", text), options);
  ASSERT_OK(report);
  EXPECT_EQ(report->rows_given, 100U);
  const auto open = OpenStoreGraph(path_);
  ASSERT_OK(open);
  const auto array = open->store->OpenArray("x");
  ASSERT_OK(array);
  for (const std::uint64_t v : {std::uint64_t{0}, kVertices - 100, kVertices - 1}) {
    float row[kDim];
    ASSERT_OK((*array)->ReadRows(
        static_cast<std::uint64_t>(*open->graph->RowOf(static_cast<VertexId>(v))), 1,
        std::as_writable_bytes(std::span(row))));
    EXPECT_EQ(row[1], v < kVertices - 100 ? 0.0F : Value(v, 1));
  }
  // Errors in a list of ids name the line.
  const auto refuse = [&](const std::string& list, StatusCode code, std::string_view says) {
    const auto refused = Add("y", dir_ / "x.npy", {.file = {}, .ids = Write("bad.tsv", list)});
    EXPECT_EQ(testing::AsStatus(refused).code(), code) << testing::AsStatus(refused).ToString();
    EXPECT_THAT(testing::AsStatus(refused).message(), HasSubstr(std::string(says)));
  };
  refuse(strings_[0] + "\nnobody\n", StatusCode::kNotFound, "bad.tsv:2");
  refuse(strings_[0] + "\n" + strings_[0] + "\n", StatusCode::kInvalidArgument, "repeated");
  refuse(strings_[0] + "\n", StatusCode::kInvalidArgument, "names 1 ids");
  refuse(ids + strings_[0] + "\n", StatusCode::kInvalidArgument, "names 101 ids");
  ExpectSound();
}

TEST_F(AddArrayTest, MissingRowsAreFilledAndAppended) {
  ASSERT_OK(Add("x", Npy("a.npy", 0, 100)));
  ExpectRows("x", 100);
  const auto second = Append("x", Npy("b.npy", 100, 150));
  ASSERT_OK(second);
  EXPECT_EQ(second->rows_given, 250U);
  EXPECT_EQ(second->array.name, "x.v1");
  ExpectRows("x", 250);
  const auto too_many = Append("x", Npy("c.npy", 250, 51));
  EXPECT_STATUS(too_many, kInvalidArgument);
  EXPECT_THAT(too_many.error().message(), HasSubstr("50 more rows"));
  ASSERT_OK(Append("x@1", Npy("c.npy", 250, 50)));
  ExpectRows("x", kVertices);
  EXPECT_STATUS(Append("x", Npy("c.npy", 0, 1)), kInvalidArgument);
  EXPECT_STATUS(Append("nope", Npy("c.npy", 0, 1)), kNotFound);
  ASSERT_OK(Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite));
  ExpectSound();
}

// A zero would mean class 0, or the training set. A vertex without a row is unlabelled and in no
// set, as after an ingestion, and also after a later put.
TEST_F(AddArrayTest, WhoHasNoLabelIsUnlabelled) {
  std::mt19937_64 rng(testing::TestSeed());
  std::string ids;
  std::map<std::uint64_t, std::int64_t> given;
  while (given.size() < 100) given[rng() % kVertices] = static_cast<std::int64_t>(rng() % 3);
  for (const auto& [vertex, value] : given) ids += std::to_string(vertex) + "\n";
  const auto check = [&]<typename T>(const std::string& name, DataType dtype, T none) {
    SCOPED_TRACE(name + " of " + std::string(DataTypeName(dtype)));
    std::vector<T> values;
    for (const auto& [vertex, value] : given) values.push_back(static_cast<T>(value));
    const std::uint64_t shape[] = {values.size()};
    const auto header = EncodeNpyHeader(dtype, shape);
    std::string text(reinterpret_cast<const char*>(header.data()), header.size());
    text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    AddArrayOptions options{.file = {}, .ids = Write("ids.tsv", ids), .memory_bytes = 4096};
    options.new_version = true;
    const auto report = Add(name, Write("v.npy", text), options);
    ASSERT_OK(report);
    EXPECT_EQ(report->rows_given, given.size());
    const auto open = OpenStoreGraph(path_);
    ASSERT_OK(open);
    for (std::uint64_t v = 0; v < kVertices; ++v) {
      const auto vertex = static_cast<VertexId>(v);
      T value = 0;
      ASSERT_OK(open->graph->ReadRows(name, std::span(&vertex, 1),
                                      std::as_writable_bytes(std::span(&value, 1))));
      ASSERT_EQ(value, given.contains(v) ? static_cast<T>(given[v]) : none) << v;
    }
  };
  check("label", DataType::kInt64, std::int64_t{-1});
  check("label", DataType::kInt32, std::int32_t{-1});  // creates a new version
  check("split", DataType::kUint8, std::uint8_t{255});
  check("grade", DataType::kInt64, std::int64_t{-1});  // may be passed as --labels grade
  check("fold", DataType::kUint8, std::uint8_t{255});
  check("weight", DataType::kFloat32, float{0});
}

TEST_F(AddArrayTest, AppendingKeepsTheArraysNumberAndItsReaders) {
  const auto first = Add("x", Npy("a.npy", 0, 100));
  ASSERT_OK(first);
  const auto reader = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
  ASSERT_OK(reader);
  const auto second = Append("x", Npy("b.npy", 100, 1));
  ASSERT_OK(second);
  // Rows written by updates refer to the array by its number.
  EXPECT_EQ(second->array.array_id, first->array.array_id);
  EXPECT_OK((*reader)->OpenArray("x"));
  const auto other = Add("y", Npy("a.npy", 0, 100));
  ASSERT_OK(other);
  EXPECT_NE(other->array.array_id, first->array.array_id);
}

// Vertices added by updates have rows, too: from the file, appended, or put; also after a
// compaction.
TEST_F(AddArrayTest, VerticesOfTheDeltaHaveRows) {
  const JobControl control;
  const auto update = [&](auto&& change) {
    auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    change(**graph);
  };
  update([&](Graph& graph) {
    WriteBatch batch;
    for (std::int64_t v = kVertices; v < static_cast<std::int64_t>(kVertices) + 10; ++v)
      batch.PutEdge(v, std::int64_t{0});
    ASSERT_OK(graph.Write(batch));
  });
  // Vertices below `given` have the rows of the file. If `put`, vertex 308 has the row that was
  // put.
  const auto expect = [&](std::uint64_t given, bool put) {
    const auto opened = OpenStoreGraph(path_);
    ASSERT_OK(opened);
    for (std::uint64_t v = 0; v < kVertices + 10; ++v) {
      const auto vertex = static_cast<VertexId>(v);
      std::array<float, kDim> row{};
      ASSERT_OK(opened->graph->ReadRows("x", std::span(&vertex, 1),
                                        std::as_writable_bytes(std::span(row))));
      for (std::uint64_t c = 0; c < kDim; ++c) {
        const float wanted = put && v == kVertices + 8 ? 7.0F : v < given ? Value(v, c) : 0.0F;
        ASSERT_EQ(row[c], wanted) << v;
      }
    }
  };
  AddArrayOptions options;
  options.file = {.name = "x", .path = Npy("x.npy", 0, kVertices + 5), .dim = 0};
  const auto added = AddArray(FileSystem::Posix(), path_, options, control);
  ASSERT_OK(added);
  EXPECT_EQ(added->rows_given, kVertices + 5);
  EXPECT_EQ(added->new_vertices, 5U);
  expect(kVertices + 5, false);

  const auto append = [&](std::uint64_t first, std::uint64_t count) {
    AddArrayOptions more;
    more.file.path = Npy("more.npy", first, count);
    return AppendRows(FileSystem::Posix(), path_, "x", more, control);
  };
  ASSERT_OK(append(kVertices + 5, 3));
  expect(kVertices + 8, false);
  update([&](Graph& graph) {
    WriteBatch batch;
    batch.PutRow(static_cast<std::int64_t>(kVertices) + 8, "x",
                 std::span<const float>(std::vector<float>(kDim, 7.0F)));
    ASSERT_OK(graph.Write(batch));
  });
  expect(kVertices + 8, true);
  EXPECT_STATUS(append(kVertices + 9, 2), kInvalidArgument);
  const auto last = append(kVertices + 9, 1);
  ASSERT_OK(last);
  EXPECT_EQ(last->new_vertices, 0U);
  expect(kVertices + 10, true);
  EXPECT_STATUS(append(kVertices + 10, 1), kInvalidArgument);
  update([&](Graph& graph) { ASSERT_OK(graph.Compact({}, control)); });
  expect(kVertices + 10, true);
  const auto verified = VerifyFiles(FileSystem::Posix(), path_, control);
  ASSERT_OK(verified);
  EXPECT_TRUE(verified->ok());
}

// A file of rows in the order of the live vertices assigns each of them its row, after any series
// of puts, deletions and compactions. A file with another number of rows is rejected.
TEST(AddArrayHistoryTest, RowsOfLiveVerticesAfterAnyHistory) {
  std::mt19937_64 rng(testing::TestSeed());
  const JobControl control;
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    TempDir dir;
    testing::RandomBase base = testing::DrawBase(rng);
    testing::UpdateModel model(base.input);
    const bool string_ids = base.string_ids();
    ASSERT_OK(testing::BuildStore(dir / "g.rz", std::move(base.input), base.options));
    for (int step = 0; step < 4; ++step) {
      SCOPED_TRACE(step);
      std::map<std::string, float> expected;
      std::vector<float> column;
      bool any_deleted = false;
      {
        auto store = testing::OpenStore(dir / "g.rz", Store::Mode::kWrite);
        ASSERT_OK(store);
        const auto graph = Graph::Open(**store);
        ASSERT_OK(graph);
        const WriteBatch batch = model.DrawBatch(rng, string_ids, 12);
        model.Apply(batch);
        ASSERT_OK((*graph)->Write(batch, {.create_types = true}));
        if (rng() % 2 == 0) ASSERT_OK((*graph)->Compact(testing::DrawCompaction(rng), control));
        for (std::uint64_t v = 0; v < (*graph)->vertex_count(); ++v) {
          const auto vertex = static_cast<VertexId>(v);
          any_deleted = any_deleted || (*graph)->IsDeleted(vertex);
          if ((*graph)->IsDeleted(vertex)) continue;
          column.push_back(static_cast<float>(rng() % 1000 + 1));
          expected[ToString(*(*graph)->ExternalIdOf(vertex))] = column.back();
        }
      }
      ASSERT_EQ(expected.size(), model.vertices().size());
      if (expected.empty()) break;
      const auto write = [&](const char* name, std::uint64_t rows) {
        const std::uint64_t shape[] = {rows, 1};
        const auto header = EncodeNpyHeader(DataType::kFloat32, shape);
        std::ofstream file(dir / name, std::ios::binary);
        file.write(reinterpret_cast<const char*>(header.data()),
                   static_cast<std::streamsize>(header.size()));
        column.resize(std::max<std::size_t>(rows, column.size()));
        file.write(reinterpret_cast<const char*>(column.data()),
                   static_cast<std::streamsize>(rows * sizeof(float)));
        return dir / name;
      };
      const std::string name = "x" + std::to_string(step);
      const auto add = [&](const Path& path) {
        return AddArray(FileSystem::Posix(), dir / "g.rz", {.file = {.name = name, .path = path}},
                        control);
      };
      const std::uint64_t count = expected.size();
      EXPECT_STATUS(add(write("more.npy", count + 1)), kInvalidArgument);
      if (any_deleted && count > 1) {  // a file without rows has no row of a wrong vertex
        const auto fewer = add(write("fewer.npy", count - 1));
        EXPECT_STATUS(fewer, kInvalidArgument);
        EXPECT_THAT(testing::AsStatus(fewer).message(), HasSubstr("deleted"));
      }
      const auto added = add(write("x.npy", count));
      ASSERT_OK(added);
      EXPECT_EQ(added->new_vertices, 0U);
      EXPECT_EQ(added->rows_read, count);
      const auto open = OpenStoreGraph(dir / "g.rz");
      ASSERT_OK(open);
      for (const auto& [id, value] : expected) {
        const auto vertex = open->graph->FindText(id);
        ASSERT_OK(vertex);
        float row = 0;
        ASSERT_OK(open->graph->ReadRows(name, std::span(&*vertex, 1),
                                        std::as_writable_bytes(std::span(&row, 1))));
        EXPECT_EQ(row, value) << id;
      }
      if (::testing::Test::HasFailure()) return;
    }
    testing::ExpectVerifies(dir / "g.rz");
  }
}

// Appended rows skip the deleted vertices of the generation and of the delta.
TEST_F(AddArrayTest, AppendingPassesDeletedVerticesOver) {
  ASSERT_OK(Add("x", Npy("a.npy", 0, 100)));
  const auto update = [&](auto&& change, bool compact) {
    auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
    ASSERT_OK(store);
    auto graph = Graph::Open(**store);
    ASSERT_OK(graph);
    WriteBatch batch;
    change(batch);
    ASSERT_OK((*graph)->Write(batch));
    if (compact) ASSERT_OK((*graph)->Compact({}, JobControl()));
  };
  for (const bool compact : {true, false}) {
    const std::int64_t id = compact ? 150 : 100;
    update([&](WriteBatch& batch) { batch.DeleteVertex(id); }, compact);
  }
  // 298 vertices are left. Those from 101 on, except 150, lack rows. The file contains these rows.
  std::string text = NpyHeaderText(198);
  for (std::uint64_t v = 101; v < kVertices; ++v) {
    for (std::uint64_t c = 0; c < kDim && v != 150; ++c) {
      const float value = Value(v, c);
      text.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
  }
  EXPECT_STATUS(Append("x", Npy("more.npy", 101, 199)), kInvalidArgument);
  // Ids of other vertices are rejected.
  std::string ids;
  for (std::uint64_t v = 101; v < kVertices; ++v)
    if (v != 150) ids += std::to_string(v) + "\n";
  AddArrayOptions options;
  options.file.path = Write("rest.npy", text);
  const auto append = [&](const std::string& named) {
    options.ids = Write("ids.tsv", named);
    return AppendRows(FileSystem::Posix(), path_, "x", options, JobControl());
  };
  const auto other = append("99\n" + ids.substr(4));
  EXPECT_STATUS(other, kInvalidArgument);
  EXPECT_THAT(testing::AsStatus(other).message(), HasSubstr("names other vertices"));
  const auto appended = append(ids);
  ASSERT_OK(appended);
  EXPECT_EQ(appended->rows_given, kVertices);
  const auto open = OpenStoreGraph(path_);
  ASSERT_OK(open);
  for (std::uint64_t v = 0; v < kVertices; ++v) {
    if (v == 100 || v == 150) continue;
    const auto vertex = static_cast<VertexId>(v);
    std::array<float, kDim> row{};
    ASSERT_OK(
        open->graph->ReadRows("x", std::span(&vertex, 1), std::as_writable_bytes(std::span(row))));
    EXPECT_EQ(row[1], Value(v, 1)) << v;
  }
  ExpectSound();
}

TEST_F(AddArrayTest, VersionsAndRetention) {
  for (int version = 0; version < 4; ++version) {
    AddArrayOptions options{.file = {}, .new_version = true, .keep = 2, .live = version == 0};
    ASSERT_OK(Add("x", Npy("x.npy", 0, kVertices, version), options));
  }
  ExpectRows("x@live", kVertices, 0);
  ExpectRows("x@latest", kVertices, 3);
  ExpectRows("x@3", kVertices, 2);
  const auto store = Store::Open(FileSystem::Posix(), path_, Store::Mode::kRead);
  ASSERT_OK(store);
  EXPECT_THAT(VersionsOf((*store)->manifest(), "x"), ElementsAre(1, 3, 4));
}

TEST_F(AddArrayTest, BadInputIsRefusedAndLeavesNothing) {
  ASSERT_OK(Add("x", Npy("x.npy", 0, kVertices)));
  EXPECT_STATUS(Add("x", dir_ / "x.npy"), kAlreadyExists);
  EXPECT_STATUS(Add("a/b", dir_ / "x.npy"), kInvalidArgument);
  EXPECT_STATUS(Add("x.v3", dir_ / "x.npy"), kInvalidArgument);
  EXPECT_STATUS(Add("y.crc32c", dir_ / "x.npy"), kInvalidArgument);
  EXPECT_STATUS(Add("zarr.json", dir_ / "x.npy"), kInvalidArgument);
  EXPECT_STATUS(Add("vertex_id", dir_ / "x.npy"), kInvalidArgument);
  EXPECT_STATUS(Add("y", dir_ / "none.npy"), kNotFound);
  const auto many = Add("y", Npy("many.npy", 0, kVertices + 1));
  EXPECT_STATUS(many, kInvalidArgument);
  EXPECT_THAT(many.error().message(), HasSubstr("301 rows"));
  std::string torn = NpyHeaderText(kVertices);
  EXPECT_FALSE(Add("y", Write("torn.npy", torn + "abc")).has_value());
  AddArrayOptions wide{.file = {}};
  wide.file.dim = 7;
  EXPECT_STATUS(Add("y", dir_ / "x.npy", wide), kInvalidArgument);
  JobControl cancelled;
  cancelled.Cancel();
  AddArrayOptions options{.file = {.name = "y", .path = dir_ / "x.npy"}};
  EXPECT_STATUS(AddArray(FileSystem::Posix(), path_, options, cancelled), kInterrupted);
  const auto writer = Store::Open(FileSystem::Posix(), path_, Store::Mode::kWrite);
  ASSERT_OK(writer);
  EXPECT_STATUS(Add("y", dir_ / "x.npy"), kBusy);
  EXPECT_STATUS(Add("y", dir_ / "none.npy"), kBusy);  // before the file is read
  EXPECT_EQ((*writer)->manifest().FindArray("y"), nullptr);
  ExpectSound();
}

}  // namespace
}  // namespace rhizome
