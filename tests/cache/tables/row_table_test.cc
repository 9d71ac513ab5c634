#include "cache/tables/row_table.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cache/tables/table_checkpoint.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

// Tests of RowTable. A std::map with its copies at the checkpoints is the model; tables are
// compared with it under random writes, power cuts at each operation, failing operations and
// flipped bits.

namespace rhizome {
namespace {

using testing::FakeCrashPoint;
using testing::FakeFileSystem;
using ::testing::HasSubstr;
using testing::TempDir;

using Bytes = std::vector<std::byte>;
using Model = std::map<std::int64_t, Bytes>;
using Random = std::mt19937_64;

constexpr const char* kName = "entities";

Bytes RandomBytes(std::size_t count, Random& random) {
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void FillRow(std::uint64_t row, std::span<std::byte> bytes) {
  Random random(row);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
}

Model FirstContent(const RowTableOptions& options) {
  Model model;
  for (std::uint64_t row = 0; row < options.rows; ++row) {
    Bytes bytes(options.row_bytes);
    FillRow(row, bytes);
    model[static_cast<std::int64_t>(row)] = bytes;
  }
  return model;
}

/// Options whose transfers consist of several pieces.
RowTableOptions SmallOptions(std::uint64_t rows, std::size_t row_bytes) {
  return {.rows = rows,
          .row_bytes = row_bytes,
          .gap_bytes = 4096,
          .max_transfer_bytes = 3 * 4096,
          .staging_bytes = 5 * 4096};
}

Bytes ProgressOf(std::uint64_t number) {
  Bytes progress(number % 100);
  std::fill(progress.begin(), progress.end(), static_cast<std::byte>(number));
  return progress;
}

/// Writes new contents to some rows of the table and the model.
Status WriteSome(RowTable& table, Model& model, Random& random) {
  std::map<std::int64_t, Bytes> rows;
  const std::size_t count = random() % 30;
  const bool dense = random() % 2 == 0;
  const std::uint64_t first = random() % table.rows();
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t row = dense ? (first + i) % table.rows() : random() % table.rows();
    rows[static_cast<std::int64_t>(row)] = RandomBytes(table.row_bytes(), random);
  }
  std::vector<RowWrite> sources;
  for (const auto& [row, bytes] : rows) sources.push_back({row, bytes.data()});
  std::shuffle(sources.begin(), sources.end(), random);
  const Status status = table.Write(sources);
  if (status.ok())
    for (const auto& [row, bytes] : rows) model[row] = bytes;
  return status;
}

Status ReadRowsInto(RowTable& table, std::span<const std::int64_t> rows, std::vector<Bytes>& out) {
  out.assign(rows.size(), Bytes(table.row_bytes()));
  std::vector<RowTarget> targets;
  for (std::size_t i = 0; i < rows.size(); ++i) targets.push_back({rows[i], out[i].data()});
  return table.Read(targets);
}

void ExpectSome(RowTable& table, const Model& model, Random& random) {
  std::vector<std::int64_t> rows(random() % 40);
  for (std::int64_t& row : rows) row = static_cast<std::int64_t>(random() % table.rows());
  std::vector<Bytes> got;
  ASSERT_OK(ReadRowsInto(table, rows, got));
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(got[i], model.at(rows[i])) << rows[i];
}

Result<Model> ContentOf(RowTable& table) {
  std::vector<std::int64_t> rows;
  for (std::uint64_t row = 0; row < table.rows(); ++row)
    rows.push_back(static_cast<std::int64_t>(row));
  std::vector<Bytes> got;
  RHIZOME_RETURN_IF_ERROR(ReadRowsInto(table, rows, got));
  Model content;
  for (std::size_t i = 0; i < rows.size(); ++i) content[rows[i]] = got[i];
  return content;
}

struct Shape {
  std::uint64_t rows;
  std::size_t row_bytes;
};

class RowTableTest : public ::testing::TestWithParam<Shape> {
 protected:
  RowTableOptions options() const { return SmallOptions(GetParam().rows, GetParam().row_bytes); }
};

INSTANTIATE_TEST_SUITE_P(Shapes, RowTableTest,
                         ::testing::Values(Shape{200, 4}, Shape{5000, 12}, Shape{100, 516},
                                           Shape{97, 1024}, Shape{50, 1536}, Shape{30, 4096},
                                           Shape{20, 5000}, Shape{1, 40}));

void RunRandomSteps(FileSystem& fs, const Path& folder, const RowTableOptions& options,
                    std::uint64_t seed, int steps, const std::function<void()>& kill) {
  Random random(seed);
  auto table = RowTable::Create(fs, folder, kName, options, FillRow).value();
  Model model = FirstContent(options);
  Model saved = model;
  std::uint64_t number = 0;
  ASSERT_OK(table->Checkpoint(ProgressOf(number)));
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(step);
    const std::uint64_t draw = random() % 10;
    if (draw < 5) {
      ASSERT_OK(WriteSome(*table, model, random));
    } else if (draw < 8) {
      ASSERT_NO_FATAL_FAILURE(ExpectSome(*table, model, random));
    } else if (draw == 8) {
      ASSERT_OK(table->Checkpoint(ProgressOf(++number)));
      saved = model;
    } else {
      table = nullptr;
      kill();
      auto opened = RowTable::Open(fs, folder, kName, options);
      ASSERT_OK(opened);
      table = *std::move(opened);
      model = saved;
      ASSERT_EQ(Bytes(table->progress().begin(), table->progress().end()), ProgressOf(number));
    }
  }
  ASSERT_EQ(ContentOf(*table).value(), model);
}

TEST_P(RowTableTest, EqualsAMapUnderRandomStepsAndPowerCuts) {
  const std::uint64_t seed = testing::TestSeed();
  for (int mode = 0; mode < 8; ++mode) {
    SCOPED_TRACE(mode);
    FakeFileSystem fs;
    fs.SetDirectAlignment(mode % 2 == 0 ? 512 : 1);
    ASSERT_OK(fs.CreateDirectory("/job"));
    ASSERT_OK(fs.SyncDirectory("/"));
    std::uint64_t kills = 0;
    RunRandomSteps(fs, "/job", options(), seed + static_cast<std::uint64_t>(mode), 150,
                   [&] { fs.Crash(static_cast<FakeFileSystem::CrashMode>(mode), seed + kills++); });
  }
}

TEST(RowTableDiskTest, EqualsAMapOnARealDisk) {
  for (const Shape& shape : {Shape{97, 1024}, Shape{20, 5000}}) {
    for (const bool direct : {true, false}) {
      for (const IoMaker maker : {IoMaker::kAuto, IoMaker::kPread}) {
        const TempDir folder;
        RowTableOptions real = SmallOptions(shape.rows, shape.row_bytes);
        real.direct = direct;
        real.io.maker = maker;
        RunRandomSteps(FileSystem::Posix(), folder.path(), real, testing::TestSeed(), 20, [] {});
      }
    }
  }
}

/// A history of writes and checkpoints on a fake disk. After a failure it stops.
struct History {
  std::vector<Model> models;  ///< by checkpoint
  Status status;
};

History RunHistory(FakeFileSystem& fs, const RowTableOptions& options, std::uint64_t seed) {
  Random random(seed);
  History history;
  auto table = RowTable::Create(fs, "/job", kName, options, FillRow);
  history.status = testing::AsStatus(table);
  if (!table) return history;
  Model model = FirstContent(options);
  for (int number = 0; number < 4; ++number) {
    history.models.push_back(model);
    fs.SetProgress(number, number + 1);
    history.status = (*table)->Checkpoint(ProgressOf(static_cast<std::uint64_t>(number)));
    if (!history.status.ok()) {
      // No later call succeeds: what is on disk remains.
      EXPECT_FALSE((*table)->Checkpoint({}).ok());
      EXPECT_FALSE(WriteSome(**table, model, random).ok());
      return history;
    }
    fs.SetProgress(number + 1, number + 1);
    for (int i = 0; i < 3; ++i) {
      history.status = WriteSome(**table, model, random);
      if (!history.status.ok()) return history;
    }
  }
  return history;
}

/// Expects that the table is as at one of the checkpoints [acknowledged, begun], counted from 1; 0:
/// there is none.
void ExpectCheckpoint(FileSystem& fs, const RowTableOptions& options, const History& history,
                      int acknowledged, int begun) {
  auto table = RowTable::Open(fs, "/job", kName, options);
  if (!table) {
    EXPECT_STATUS(table, kNotFound);
    EXPECT_EQ(acknowledged, 0) << table.error().ToString();
    return;
  }
  const auto content = ContentOf(**table);
  ASSERT_OK(content);
  for (int number = std::max(acknowledged, 1); number <= begun; ++number) {
    const auto progress = ProgressOf(static_cast<std::uint64_t>(number - 1));
    if (Bytes((*table)->progress().begin(), (*table)->progress().end()) != progress) continue;
    EXPECT_EQ(*content, history.models.at(static_cast<std::size_t>(number - 1)));
    Random random(1);
    Model model = *content;
    EXPECT_OK(WriteSome(**table, model, random));
    EXPECT_OK((*table)->Checkpoint({}));
    return;
  }
  ADD_FAILURE() << "not a checkpoint between " << acknowledged << " and " << begun;
}

TEST(RowTableCrashTest, APowerCutAtAnyOperationLeavesACheckpoint) {
  const std::uint64_t seed = testing::TestSeed();
  const RowTableOptions options = SmallOptions(40, 1000);
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/job"));
  ASSERT_OK(fs.SyncDirectory("/"));
  fs.RecordCrashPoints();
  const History history = RunHistory(fs, options, seed);
  ASSERT_OK(history.status);
  const std::vector<FakeCrashPoint> points = fs.TakeCrashPoints();
  EXPECT_GT(points.size(), 50U);
  for (const FakeCrashPoint& point : points) {
    for (int mode = 0; mode < 8; ++mode) {
      SCOPED_TRACE(point.what + ", operation " + std::to_string(point.operation) + ", mode " +
                   std::to_string(mode));
      FakeFileSystem disk(point.image);
      disk.Crash(static_cast<FakeFileSystem::CrashMode>(mode), seed + point.operation);
      ExpectCheckpoint(disk, options, history, point.acknowledged, point.begun);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(RowTableFaultTest, AFailedOperationIsAnErrorAndLeavesACheckpoint) {
  const std::uint64_t seed = testing::TestSeed();
  const RowTableOptions options = SmallOptions(40, 1000);
  History sound;
  std::uint64_t operations = 0;
  {
    FakeFileSystem fs;
    ASSERT_OK(fs.CreateDirectory("/job"));
    ASSERT_OK(fs.SyncDirectory("/"));
    sound = RunHistory(fs, options, seed);
    operations = fs.operation_count();
  }
  for (std::uint64_t operation = 2; operation < operations; ++operation) {
    for (const int error : {ENOSPC, EIO}) {
      SCOPED_TRACE("operation " + std::to_string(operation));
      FakeFileSystem fs;
      ASSERT_OK(fs.CreateDirectory("/job"));
      ASSERT_OK(fs.SyncDirectory("/"));
      fs.FailAt(operation, error, /*sticky=*/operation % 2 == 0);
      const History history = RunHistory(fs, options, seed);
      fs.ClearFailures();
      if (!history.status.ok()) {
        EXPECT_EQ(history.status.code(),
                  error == EIO ? StatusCode::kIoError : StatusCode::kOutOfSpace)
            << history.status.ToString();
      }
      const int checkpoints = static_cast<int>(history.models.size());
      const int acknowledged = checkpoints == 0 ? 0 : checkpoints - 1;
      ExpectCheckpoint(fs, options, sound, acknowledged, checkpoints);
      fs.Crash(FakeFileSystem::CrashMode::kRandom, seed + operation);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(RowTableDamageTest, EveryFlippedBitOfTheLastCheckpointIsFound) {
  const RowTableOptions options = SmallOptions(20, 600);
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/job"));
  auto table = RowTable::Create(fs, "/job", kName, options, FillRow).value();
  ASSERT_OK(table->Checkpoint(ProgressOf(7)));
  ASSERT_OK(table->Checkpoint(ProgressOf(9)));
  table = nullptr;
  const Path path = TableCheckpointPath("/job", kName, 2);
  const std::uint64_t bits = 8 * fs.Stat(path)->size_bytes;
  for (std::uint64_t bit = 0; bit < bits; ++bit) {
    ASSERT_OK(fs.FlipBit(path, bit));
    EXPECT_STATUS(RowTable::Open(fs, "/job", kName, options), kCorruption);
    ASSERT_OK(fs.FlipBit(path, bit));
  }
  EXPECT_OK(RowTable::Open(fs, "/job", kName, options));
}

TEST(RowTableDamageTest, FlippedBitsOfRowsAreFoundAndThoseOfOtherSlotsDoNotMatter) {
  Random random(testing::TestSeed());
  const RowTableOptions options = SmallOptions(30, 1000);
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/job"));
  auto table = RowTable::Create(fs, "/job", kName, options, FillRow).value();
  ASSERT_OK(table->Checkpoint({}));
  Model model = FirstContent(options);
  for (int i = 0; i < 2; ++i) ASSERT_OK(WriteSome(*table, model, random));
  const Path path = TableRowsPath("/job", kName);
  const std::uint64_t blocks = TableShape::Of(30, 1000).blocks;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t bit = random() % (8 * 2 * blocks * 4096);
    ASSERT_OK(fs.FlipBit(path, bit));
    const auto content = ContentOf(*table);
    if (content) {
      EXPECT_EQ(*content, model);
    } else {
      EXPECT_STATUS(content, kCorruption);
      EXPECT_THAT(content.error().message(), HasSubstr(path.string()));
    }
    // One of the two slots of each block is in use.
    ASSERT_OK(fs.FlipBit(path, (bit + 8 * blocks * 4096) % (8 * 2 * blocks * 4096)));
    const auto both = ContentOf(*table);
    EXPECT_STATUS(both, kCorruption);
    ASSERT_OK(fs.FlipBit(path, bit));
    ASSERT_OK(fs.FlipBit(path, (bit + 8 * blocks * 4096) % (8 * 2 * blocks * 4096)));
  }
  EXPECT_EQ(ContentOf(*table).value(), model);
}

TEST(RowTableTest, TransfersOfAdjacentBlocksAreOneRequest) {
  const RowTableOptions options{.rows = 400, .row_bytes = 1024, .gap_bytes = 2 * 4096};
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/job"));
  auto table = RowTable::Create(fs, "/job", kName, options, FillRow).value();
  ASSERT_OK(table->Checkpoint({}));
  EXPECT_EQ(table->stats().writes, 1U);
  EXPECT_EQ(table->stats().write_bytes, 400 * 1024U);
  std::vector<Bytes> got;
  // Rows 0, 5 and 18 are in blocks 0, 1 and 4: a gap of two blocks is read, a gap of three is not.
  ASSERT_OK(ReadRowsInto(*table, std::vector<std::int64_t>{18, 5, 0, 36}, got));
  EXPECT_EQ(table->stats().reads, 2U);
  EXPECT_EQ(table->stats().read_bytes, 6 * 4096U);
  const Bytes row(1024);
  std::vector<RowWrite> sources;
  for (std::int64_t r = 0; r < 10; ++r) sources.push_back({r, row.data()});
  ASSERT_OK(table->Write(sources));  // blocks 0 and 1, and two rows of block 2
  EXPECT_EQ(table->stats().writes, 2U);
  EXPECT_EQ(table->stats().completed_blocks, 1U);
  EXPECT_EQ(table->stats().reads, 3U);
  EXPECT_EQ(table->stats().rows_read, 4U);
  EXPECT_EQ(table->stats().rows_written, 10U);
}

TEST(RowTableTest, ADiskWithoutSpaceIsReportedBeforeAnythingIsWritten) {
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/job"));
  const RowTableOptions options{.rows = 100000, .row_bytes = 1024};
  EXPECT_GE(RowTable::DiskBytes(100000, 1024), 2 * 100000 * 1024U);
  fs.SetFreeBytes(RowTable::DiskBytes(100000, 1024) - 1);
  const auto table = RowTable::Create(fs, "/job", kName, options, FillRow);
  EXPECT_STATUS(table, kOutOfSpace);
  EXPECT_THAT(table.error().message(), HasSubstr("twice its size"));
  EXPECT_TRUE(fs.Files().empty());
}

TEST(RowTableTest, RefusesWrongArguments) {
  FakeFileSystem fs;
  ASSERT_OK(fs.CreateDirectory("/job"));
  const RowTableOptions options{.rows = 10, .row_bytes = 8};
  EXPECT_STATUS(RowTable::Open(fs, "/job", kName, options), kNotFound);
  EXPECT_STATUS(RowTable::Create(fs, "/job", kName, {.rows = 0, .row_bytes = 8}, FillRow),
                kInvalidArgument);
  EXPECT_STATUS(RowTable::Create(fs, "/job", kName, {.rows = 8, .row_bytes = 0}, FillRow),
                kInvalidArgument);
  EXPECT_STATUS(RowTable::Create(fs, "/job", kName, {.rows = ~0ULL, .row_bytes = 8}, FillRow),
                kInvalidArgument);
  auto table = RowTable::Create(fs, "/job", kName, options, FillRow).value();
  EXPECT_STATUS(RowTable::Open(fs, "/job", kName, options), kNotFound);
  ASSERT_OK(table->Checkpoint({}));
  Bytes row(8);
  std::vector<RowTarget> outside = {{10, row.data()}};
  EXPECT_STATUS(table->Read(outside), kInvalidArgument);
  std::vector<RowWrite> twice = {{3, row.data()}, {3, row.data()}};
  EXPECT_STATUS(table->Write(twice), kInvalidArgument);
  std::vector<RowWrite> negative = {{-1, row.data()}};
  EXPECT_STATUS(table->Write(negative), kInvalidArgument);
  EXPECT_EQ(ContentOf(*table).value(), FirstContent(options));
  table = nullptr;
  EXPECT_STATUS(RowTable::Open(fs, "/job", kName, {.rows = 11, .row_bytes = 8}), kInvalidArgument);
  ASSERT_OK(fs.RemoveFile(TableRowsPath("/job", kName)));
  EXPECT_STATUS(RowTable::Open(fs, "/job", kName, options), kCorruption);
  ASSERT_OK(RowTable::Remove(fs, "/job", kName));
  EXPECT_TRUE(fs.Files().empty());
}

}  // namespace
}  // namespace rhizome
