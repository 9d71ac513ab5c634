#include "cache/tables/table_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "cache/tables/table_cache.h"
#include "testing/testing.h"

// A TableReplay counts what a TableCache does.

namespace rhizome {
namespace {

Trace RandomTrace(std::mt19937_64& random, std::uint64_t rows, std::uint64_t max_step_rows) {
  Trace trace;
  const std::uint64_t steps = 1 + random() % 30;
  for (std::uint64_t s = 0; s < steps; ++s) {
    std::set<CacheKey> keys;
    const std::uint64_t range = random() % 2 == 0 ? rows : 1 + rows / 4;
    const std::uint64_t count = std::min(range, random() % (max_step_rows + 1));
    while (keys.size() < count) keys.insert(static_cast<CacheKey>(random() % range));
    trace.AddStep(std::vector<CacheKey>(keys.begin(), keys.end()));
  }
  return trace;
}

struct Counts {
  TableCacheStats cache;
  TableReplayCounts replay;
  std::uint32_t frames = 0;
};

/// Runs random superbatches in a cache, and replays them.
Counts RunBoth(std::mt19937_64& random, std::size_t dim) {
  const testing::TempDir dir;
  const std::uint64_t rows = 50 + random() % 300;
  const std::uint64_t max_step_rows = 1 + random() % 25;
  const RowOptimizer optimizer({.kind = RowOptimizerKind::kSgd}, dim);
  const std::size_t row_bytes = optimizer.row_floats() * sizeof(float);
  const TableCacheOptions options{
      .memory_bytes = TableCache::BytesFor(1 + random() % rows, row_bytes, max_step_rows),
      .max_step_rows = max_step_rows};
  auto table =
      RowTable::Create(FileSystem::Posix(), dir.path(), "t", {.rows = rows, .row_bytes = row_bytes},
                       [](std::uint64_t, std::span<std::byte>) {});
  EXPECT_OK(table);
  auto cache = TableCache::Open(*std::move(table), options);
  EXPECT_OK(cache);
  Counts counts;
  counts.frames = TableCache::FramesFor(options, row_bytes, rows);
  EXPECT_EQ(counts.frames, (*cache)->frame_count());
  TableReplay replay(counts.frames, rows);
  std::uint64_t step = 0;
  for (std::uint64_t b = 1 + random() % 5; b > 0; --b) {
    const Trace trace = RandomTrace(random, rows, max_step_rows);
    EXPECT_OK(replay.Add(trace));
    EXPECT_OK((*cache)->Start(trace));
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      TableRows held;
      EXPECT_OK((*cache)->Acquire(held));
      const std::vector<float> gradients(held.size() * dim, 1.0F);
      EXPECT_OK((*cache)->Update(optimizer, ++step, gradients));
      EXPECT_OK((*cache)->Release());
    }
  }
  counts.cache = (*cache)->stats();
  counts.replay = replay.counts();
  return counts;
}

// Blocks of one row, so that the cache writes no other rows of a block.
TEST(TableReplayTest, CountsWhatACacheReadsAndWrites) {
  std::mt19937_64 random(testing::TestSeed());
  std::uint64_t written = 0;
  for (int round = 0; round < 60; ++round) {
    const Counts counts = RunBoth(random, 600);
    EXPECT_EQ(counts.replay.rows_requested, counts.cache.rows_requested);
    EXPECT_EQ(counts.replay.rows_read, counts.cache.rows_read) << counts.frames;
    EXPECT_EQ(counts.replay.rows_written, counts.cache.rows_written) << counts.frames;
    written += counts.replay.rows_written;
  }
  EXPECT_GT(written, 0U);
}

// With several rows a block, reads are the same.
TEST(TableReplayTest, CountsReadsOfBlocksOfSeveralRows) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    const Counts counts = RunBoth(random, 100);
    EXPECT_EQ(counts.replay.rows_read, counts.cache.rows_read);
  }
}

TEST(TableReplayTest, RefusesRowsOutOfRange) {
  TableReplay replay(3, 10);
  Trace trace;
  trace.AddStep(std::vector<CacheKey>{10});
  EXPECT_STATUS(replay.Add(trace), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
