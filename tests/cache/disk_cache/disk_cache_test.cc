#include "cache/disk_cache/disk_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "index/generation/graph_builder.h"
#include "testing/test_store.h"
#include "testing/testing.h"

// Tests of DiskCache, which copies the needed rows of a remote array to disk, reading each remote
// chunk once: results, bounded reads in flight, errors, damage on disk, cancellation, and filling
// the next cache while one is in use.

namespace rhizome {
namespace {

using testing::TempDir;

/// A remote source with slow reads, which fail on request. The bytes of row r are pseudo-random
/// numbers seeded with r.
class FarSource final : public ChunkSource {
 public:
  FarSource(std::uint64_t rows, std::uint64_t row_bytes, std::uint64_t chunk_rows)
      : rows_(rows), row_bytes_(row_bytes), chunk_rows_(chunk_rows) {}

  std::string name() const override { return "far"; }
  std::uint64_t rows() const override { return rows_; }
  std::uint64_t row_bytes() const override { return row_bytes_; }
  std::uint64_t chunk_rows() const override { return chunk_rows_; }
  Result<std::uint64_t> Version() override { return version.load(); }

  Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out) override {
    const int now = ++in_flight;
    for (int most = max_in_flight; now > most && !max_in_flight.compare_exchange_weak(most, now);)
      ;
    std::this_thread::sleep_for(latency);
    --in_flight;
    const std::uint64_t read = ++reads;
    if (on_read) on_read(read);
    if (read == fail_at) return Fail(Status::IoError("connection lost"));
    for (std::uint64_t r = 0; r < RowsInChunk(chunk); ++r) {
      const std::vector<std::byte> row = RowBytes(chunk * chunk_rows_ + r);
      std::copy(row.begin(), row.end(), out.begin() + static_cast<std::ptrdiff_t>(r * row_bytes_));
    }
    return read == truncate_at ? out.size() - 1 : out.size();
  }

  std::vector<std::byte> RowBytes(std::uint64_t row) const {
    std::mt19937_64 random(row);
    std::vector<std::byte> bytes(row_bytes_);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }

  std::chrono::microseconds latency{0};
  std::uint64_t fail_at = 0;
  std::uint64_t truncate_at = 0;
  std::function<void(std::uint64_t read)> on_read;
  std::atomic<std::uint64_t> version = 1;
  std::atomic<std::uint64_t> reads = 0;
  std::atomic<int> in_flight = 0;
  std::atomic<int> max_in_flight = 0;

 private:
  const std::uint64_t rows_;
  const std::uint64_t row_bytes_;
  const std::uint64_t chunk_rows_;
};

/// Some rows and their positions in the cache.
struct Wanted {
  std::vector<Row> rows;
  std::vector<std::uint32_t> position;
};

Wanted DrawWanted(std::mt19937_64& random, std::uint64_t row_count) {
  Wanted wanted;
  for (std::uint64_t row = 0; row < row_count; ++row) {
    if (random() % 3 != 0) wanted.rows.push_back(static_cast<Row>(row));
  }
  wanted.position.resize(wanted.rows.size());
  std::iota(wanted.position.begin(), wanted.position.end(), 0U);
  std::shuffle(wanted.position.begin(), wanted.position.end(), random);
  return wanted;
}

class DiskCacheTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<DiskCache>> Fill(ChunkSource& source, const Wanted& wanted) {
    return DiskCache::Fill(FileSystem::Posix(), source, wanted.rows, wanted.position, options_,
                           control_);
  }

  std::size_t FilesLeft() const {
    const auto files = FileSystem::Posix().List(options_.folder);
    return files ? files->size() : 0;
  }

  /// Expects every row at its position.
  static void ExpectHolds(const DiskCache& cache, const FarSource& source, const Wanted& wanted,
                          std::uint64_t chunk_rows) {
    std::vector<std::byte> all;
    for (std::uint64_t chunk = 0; chunk < cache.chunk_count(); ++chunk) {
      std::vector<std::byte> bytes(cache.RowsInChunk(chunk) * source.row_bytes());
      ASSERT_LE(cache.RowsInChunk(chunk), chunk_rows);
      ASSERT_OK(cache.ReadChunk(chunk, bytes));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    ASSERT_EQ(all.size(), wanted.rows.size() * source.row_bytes());
    for (std::size_t i = 0; i < wanted.rows.size(); ++i) {
      const std::vector<std::byte> row =
          source.RowBytes(static_cast<std::uint64_t>(wanted.rows[i]));
      const std::byte* const found = all.data() + wanted.position[i] * source.row_bytes();
      ASSERT_TRUE(std::equal(row.begin(), row.end(), found)) << "row " << wanted.rows[i];
    }
  }

  TempDir folder_;
  DiskCacheOptions options_{.folder = folder_ / "cache", .chunk_rows = 16, .in_flight = 4};
  JobControl control_;
};

TEST_F(DiskCacheTest, HoldsEveryRowWhereItWasPut) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 12; ++round) {
    FarSource source(random() % 900, 1 + random() % 40, 1 + random() % 50);
    const Wanted wanted = DrawWanted(random, source.rows());
    options_.chunk_rows = 1 + random() % 30;
    options_.in_flight = 1 + static_cast<std::uint32_t>(random() % 8);
    // Sometimes the memory holds only a chunk or two, so that rows go through spill files.
    options_.memory_bytes = options_.chunk_rows * source.row_bytes() * (1 + random() % 40);
    const auto cache = Fill(source, wanted);
    ASSERT_OK(cache);
    ExpectHolds(**cache, source, wanted, options_.chunk_rows);
    EXPECT_EQ((*cache)->row_count(), wanted.rows.size());
    EXPECT_EQ((*cache)->stats().disk_bytes, wanted.rows.size() * source.row_bytes());
    EXPECT_EQ(FilesLeft(), 1u);
  }
  EXPECT_EQ(FilesLeft(), 0u);
}

TEST_F(DiskCacheTest, ReadsEachChunkOfTheSourceOnceAndThenNoMore) {
  FarSource source(1000, 8, 10);
  Wanted wanted;
  for (Row row = 0; row < 500; row += 25) wanted.rows.push_back(row);  // 20 rows in 20 chunks
  wanted.rows.push_back(476);                                          // plus one in the last chunk
  wanted.position.resize(wanted.rows.size());
  std::iota(wanted.position.rbegin(), wanted.position.rend(), 0U);
  const auto cache = Fill(source, wanted);
  ASSERT_OK(cache);
  EXPECT_EQ(source.reads, 20u);
  EXPECT_EQ((*cache)->stats().source_reads, 20u);
  EXPECT_EQ((*cache)->stats().source_bytes, 20u * 10 * 8);
  ExpectHolds(**cache, source, wanted, options_.chunk_rows);
  EXPECT_EQ(source.reads, 20u);
}

TEST_F(DiskCacheTest, KeepsNoMoreThanItsReadsInFlight) {
  FarSource source(400, 8, 10);
  source.latency = std::chrono::microseconds(200);
  std::mt19937_64 random(testing::TestSeed());
  const Wanted wanted = DrawWanted(random, 400);
  options_.in_flight = 3;
  const auto cache = Fill(source, wanted);
  ASSERT_OK(cache);
  EXPECT_LE(source.max_in_flight, 3);
  ExpectHolds(**cache, source, wanted, options_.chunk_rows);
}

TEST_F(DiskCacheTest, FaultsOfTheSourceAreToldAndLeaveNothing) {
  std::mt19937_64 random(testing::TestSeed());
  const Wanted wanted = DrawWanted(random, 600);
  for (const std::uint64_t memory_bytes : {std::uint64_t{1} << 20, std::uint64_t{16} * 8}) {
    options_.memory_bytes = memory_bytes;
    const auto expect = [&](FarSource& source, StatusCode code, const std::string& says) {
      const auto cache = Fill(source, wanted);
      ASSERT_FALSE(cache);
      EXPECT_EQ(cache.error().code(), code);
      EXPECT_NE(cache.error().message().find(says), std::string::npos) << cache.error().message();
      EXPECT_EQ(FilesLeft(), 0u);
    };
    FarSource fails(600, 8, 10);
    fails.fail_at = 1 + random() % 40;
    expect(fails, StatusCode::kIoError, "far: connection lost");
    FarSource truncates(600, 8, 10);
    truncates.truncate_at = 1 + random() % 40;
    expect(truncates, StatusCode::kCorruption, "ends after 79 of 80 bytes");
    FarSource changes(600, 8, 10);
    changes.on_read = [&](std::uint64_t read) {
      if (read == 20) changes.version = 2;
    };
    expect(changes, StatusCode::kCorruption, " changed while");
    FarSource shrunk(static_cast<std::uint64_t>(wanted.rows.back()), 8, 10);
    expect(shrunk, StatusCode::kInvalidArgument, "was requested");
  }
}

TEST_F(DiskCacheTest, HoldsRowsOfAnArray) {
  std::mt19937_64 random(testing::TestSeed());
  GraphInput input;
  input.vertex_count = 400;
  input.vertex_type_names = {"v"};
  input.edge_type_names = {"e"};
  ArrayInput array;
  array.name = "a";
  array.dim = 2;
  array.dtype = DataType::kInt64;
  array.layout = ArrayLayout::kChunk;
  array.codec = {.kind = CodecKind::kZstd, .level = 1};
  array.chunk_rows = 128;
  array.read_rows = [](std::span<const VertexId> vertices, std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      const std::array<std::int64_t, 2> row = {vertices[i], -vertices[i]};
      std::memcpy(out.data() + i * sizeof(row), row.data(), sizeof(row));
    }
    return Status::Ok();
  };
  input.arrays.push_back(std::move(array));
  ASSERT_OK(testing::BuildStore(folder_ / "g.rz", std::move(input), {}));
  const auto open = testing::OpenStoreGraph(folder_ / "g.rz");
  ASSERT_OK(open);
  const auto opened = open->store->OpenArray("a");
  ASSERT_OK(opened);
  StoredChunkSource source(**opened);
  const Wanted wanted = DrawWanted(random, 400);
  const auto cache = Fill(source, wanted);
  ASSERT_OK(cache);
  EXPECT_EQ((*cache)->stats().source_reads, 4u);
  for (std::size_t i = 0; i < wanted.rows.size(); ++i) {
    const std::uint64_t chunk = wanted.position[i] / 16;
    std::vector<std::int64_t> rows((*cache)->RowsInChunk(chunk) * 2);
    ASSERT_OK((*cache)->ReadChunk(chunk, std::as_writable_bytes(std::span(rows))));
    const VertexId vertex = *open->graph->VertexAt(wanted.rows[i]);
    EXPECT_EQ(rows[wanted.position[i] % 16 * 2], vertex);
    EXPECT_EQ(rows[wanted.position[i] % 16 * 2 + 1], -vertex);
  }
}

TEST_F(DiskCacheTest, StopsWhenItIsCancelled) {
  std::mt19937_64 random(testing::TestSeed());
  const Wanted wanted = DrawWanted(random, 600);
  FarSource source(600, 8, 10);
  source.on_read = [&](std::uint64_t read) {
    if (read >= 10) control_.Cancel();  // other threads continue to read until it has
  };
  const auto cache = Fill(source, wanted);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code(), StatusCode::kInterrupted);
  EXPECT_LT(source.reads, 60u);
  EXPECT_EQ(FilesLeft(), 0u);
}

TEST_F(DiskCacheTest, RefusesWhatCannotBe) {
  FarSource source(100, 8, 10);
  std::mt19937_64 random(testing::TestSeed());
  const Wanted wanted = DrawWanted(random, 100);
  options_.memory_bytes = 16 * 8 - 1;
  EXPECT_EQ(Fill(source, wanted).error().code(), StatusCode::kInvalidArgument);
  options_.memory_bytes = 16 * 8;
  const auto cache = Fill(source, wanted);
  ASSERT_OK(cache);
  std::vector<std::byte> bytes(16 * 8);
  EXPECT_EQ((*cache)->ReadChunk((*cache)->chunk_count(), bytes).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ((*cache)->ReadChunk(0, std::span(bytes).first(8)).code(), StatusCode::kInvalidArgument);
}

TEST_F(DiskCacheTest, DamageOnDiskIsNoticed) {
  FarSource source(100, 8, 10);
  std::mt19937_64 random(testing::TestSeed());
  const Wanted wanted = DrawWanted(random, 100);
  const auto cache = Fill(source, wanted);
  ASSERT_OK(cache);
  const auto files = FileSystem::Posix().List(options_.folder);
  ASSERT_OK(files);
  ASSERT_EQ(files->size(), 1u);
  std::filesystem::resize_file(options_.folder / files->front().name, 20);
  std::vector<std::byte> bytes((*cache)->RowsInChunk(0) * 8);
  EXPECT_EQ((*cache)->ReadChunk(0, bytes).code(), StatusCode::kCorruption);
}

TEST_F(DiskCacheTest, TheNextCacheIsFilledWhileOneIsUsed) {
  FarSource source(600, 8, 10);
  std::mt19937_64 random(testing::TestSeed());
  std::vector<Wanted> wanted;
  for (int worker = 0; worker < 3; ++worker) wanted.push_back(DrawWanted(random, 600));
  std::atomic<std::size_t> begun = 0;
  {
    DiskCachesAhead caches(3, [&](std::size_t worker) {
      begun = worker + 1;
      return Fill(source, wanted[worker]);
    });
    for (std::size_t worker = 0; worker < 3; ++worker) {
      const auto cache = caches.Next();
      ASSERT_OK(cache);
      // The next cache is filled before Next() is called for it.
      while (begun < std::min<std::size_t>(worker + 2, 3)) std::this_thread::yield();
      ExpectHolds(**cache, source, wanted[worker], options_.chunk_rows);
    }
    EXPECT_GE(caches.unhidden_seconds(), 0);
    EXPECT_GT(caches.first_seconds(), 0);
  }
  EXPECT_EQ(FilesLeft(), 0u);
}

TEST_F(DiskCacheTest, AnErrorOfTheNextCacheComesWithIt) {
  FarSource source(600, 8, 10);
  std::mt19937_64 random(testing::TestSeed());
  const Wanted wanted = DrawWanted(random, 600);
  DiskCachesAhead caches(3, [&](std::size_t worker) {
    if (worker == 1) source.fail_at = source.reads + 5;
    return Fill(source, wanted);
  });
  ASSERT_OK(caches.Next());
  const auto second = caches.Next();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), StatusCode::kIoError);
}

}  // namespace
}  // namespace rhizome
