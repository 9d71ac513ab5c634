#include "cache/tables/table_cache.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "cache/policy/belady_schedule.h"
#include "cache/policy/offline_schedule.h"
#include "cache/policy/sweep.h"
#include "cache/tables/gradient_sums.h"
#include "testing/fake_file_system.h"
#include "testing/testing.h"

// Tests of TableCache. The model applies each step to a std::map. Tables must have the same bits
// for any memory, after kills, and after power cuts; the schedules determine the reads.

namespace rhizome {
namespace {

using testing::FakeFileSystem;
using ::testing::HasSubstr;
using testing::TempDir;

using JobRandom = std::mt19937_64;
using FloatRow = std::vector<float>;
using TableModel = std::map<Row, FloatRow>;

constexpr const char* kCacheName = "entities";
constexpr std::size_t kCachedDim = 150;  // one to six rows a block, depending on the optimiser

struct TableJob {
  std::uint64_t rows = 0;
  std::vector<Trace> superbatches;
  RowOptimizerOptions optimizer;
  std::uint64_t max_step_rows = 0;

  RowOptimizer Optimizer() const { return {optimizer, kCachedDim}; }
  RowTableOptions Table() const {
    return {.rows = rows,
            .row_bytes = Optimizer().row_floats() * sizeof(float),
            .max_transfer_bytes = 3 * 4096,
            .staging_bytes = 4 * 4096};
  }
};

void FirstRow(std::uint64_t row, std::span<std::byte> bytes) {
  JobRandom random(row);
  FloatRow values(kCachedDim);
  for (float& value : values) value = static_cast<float>(random() % 1000) / 500 - 1;
  std::memcpy(bytes.data(), values.data(), kCachedDim * sizeof(float));
}

/// Returns a job whose steps prefer some rows, so that rows are evicted and read again, also in
/// consecutive steps.
TableJob RandomJob(JobRandom& random) {
  TableJob job;
  job.rows = 50 + random() % 300;
  job.optimizer.kind = static_cast<RowOptimizerKind>(random() % 4);
  job.max_step_rows = 1 + random() % 25;
  const std::uint64_t superbatches = 1 + random() % 4;
  for (std::uint64_t b = 0; b < superbatches; ++b) {
    Trace trace;
    const std::uint64_t steps = random() % 30;
    for (std::uint64_t s = 0; s < steps; ++s) {
      std::set<CacheKey> keys;
      const std::uint64_t count = random() % (job.max_step_rows + 1);
      const std::uint64_t range = random() % 2 == 0 ? job.rows : 1 + job.rows / 4;
      while (keys.size() < std::min(count, range))
        keys.insert(static_cast<CacheKey>(random() % range));
      std::vector<CacheKey> shuffled(keys.begin(), keys.end());
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      trace.AddStep(shuffled);
    }
    job.superbatches.push_back(trace);
  }
  return job;
}

/// The gradient of a row depends on its value, so that a lost or repeated update is noticed.
FloatRow GradientOf(std::span<const float> row, Row number, std::uint64_t step) {
  FloatRow gradient(kCachedDim);
  for (std::size_t i = 0; i < kCachedDim; ++i) {
    gradient[i] =
        row[i] * 0.5F + static_cast<float>((number * 7 + static_cast<Row>(step * 3 + i)) % 11) / 10;
  }
  return gradient;
}

TableModel ModelAfter(const TableJob& job) {
  const RowOptimizer optimizer = job.Optimizer();
  TableModel model;
  for (std::uint64_t row = 0; row < job.rows; ++row) {
    FloatRow values(optimizer.row_floats());
    FirstRow(row, std::as_writable_bytes(std::span(values)));
    model[static_cast<Row>(row)] = values;
  }
  std::uint64_t step = 0;
  for (const Trace& trace : job.superbatches) {
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      ++step;
      for (const CacheKey key : trace.step(s))
        optimizer.Update(model[key], GradientOf(model[key], key, step), step);
    }
  }
  return model;
}

TableModel TableContentOf(RowTable& table) {
  TableModel content;
  std::vector<RowTarget> targets;
  for (std::uint64_t row = 0; row < table.rows(); ++row) {
    FloatRow& values = content[static_cast<Row>(row)];
    values.resize(table.row_bytes() / sizeof(float));
    targets.push_back({static_cast<Row>(row), reinterpret_cast<std::byte*>(values.data())});
  }
  EXPECT_OK(table.Read(targets));
  return content;
}

/// Runs the steps [*done, ...) of a job, and adds to *done. Stops after `steps` of them, in the
/// middle of a step if `within_step`.
Status RunSteps(const TableJob& job, TableCache& cache, std::uint64_t* done, std::uint64_t steps,
                bool within_step, const std::function<Status(std::uint64_t)>& after_step) {
  const RowOptimizer optimizer = job.Optimizer();
  std::uint64_t number = 0;
  for (const Trace& whole : job.superbatches) {
    // The rest of a superbatch that was begun before.
    Trace trace;
    for (std::size_t s = 0; s < whole.steps(); ++s)
      if (number + s >= *done) trace.AddStep(whole.step(s));
    number += whole.steps();
    if (number <= *done) continue;
    RHIZOME_RETURN_IF_ERROR(cache.Start(trace));
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      if (steps-- == 0 && !within_step) return Status::Ok();
      TableRows rows;
      RHIZOME_RETURN_IF_ERROR(cache.Acquire(rows));
      EXPECT_TRUE(std::ranges::equal(rows.keys(), trace.step(s)));
      FloatRow gradients;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const FloatRow gradient = GradientOf(rows.row(i), trace.step(s)[i], *done + 1);
        gradients.insert(gradients.end(), gradient.begin(), gradient.end());
      }
      RHIZOME_RETURN_IF_ERROR(cache.Update(optimizer, *done + 1, gradients));
      if (steps == ~std::uint64_t{0}) return Status::Ok();
      RHIZOME_RETURN_IF_ERROR(cache.Release());
      ++*done;
      RHIZOME_RETURN_IF_ERROR(after_step(*done));
    }
  }
  return Status::Ok();
}

Status RunAll(const TableJob& job, TableCache& cache) {
  std::uint64_t done = 0;
  return RunSteps(job, cache, &done, 1U << 30, false, [](std::uint64_t) { return Status::Ok(); });
}

/// Memory between just enough and everything.
std::uint64_t RandomMemory(const TableJob& job, JobRandom& random) {
  const std::size_t row_bytes = job.Table().row_bytes;
  const std::uint64_t least = TableCache::BytesFor(1, row_bytes, job.max_step_rows);
  return least + random() % 3 * (random() % (job.rows * (row_bytes + 80)));
}

/// Returns the rows that the schedules read with that many frames.
std::uint64_t ReplayedReads(const TableJob& job, std::uint32_t frame_count) {
  FrameKeys frames(frame_count, kNoRow);
  std::uint64_t reads = 0;
  StepPlan plan;
  for (const Trace& trace : job.superbatches) {
    if (trace.steps() == 0) continue;
    const auto policy =
        MakeClassSchedule(trace, frame_count, job.rows, AccessCosts(), nullptr, &frames).value();
    reads += policy->PrefillReads()->size();
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      EXPECT_OK(policy->Step(trace.step(s), plan));
      reads += plan.misses.size();
    }
  }
  return reads;
}

TEST(TableCacheTest, EqualsAMapForAnyMemoryAndReadsWhatTheSchedulesRead) {
  JobRandom random(testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const TableJob job = RandomJob(random);
    FakeFileSystem fs;
    auto table = RowTable::Create(fs, "/", kCacheName, job.Table(), FirstRow).value();
    auto cache = TableCache::Open(std::move(table), {.memory_bytes = RandomMemory(job, random),
                                                     .max_step_rows = job.max_step_rows})
                     .value();
    ASSERT_OK(RunAll(job, *cache));
    EXPECT_EQ(cache->stats().rows_read, ReplayedReads(job, cache->frame_count()));
    EXPECT_GE(cache->table_stats().rows_read, cache->stats().rows_read);
    ASSERT_EQ(TableContentOf(**cache->Flush()), ModelAfter(job));
    EXPECT_EQ(cache->stats().rows_written, cache->table_stats().rows_written);
  }
}

TEST(TableCacheTest, EqualsAMapOnARealDisk) {
  JobRandom random(testing::TestSeed());
  for (int round = 0; round < 10; ++round) {
    const TableJob job = RandomJob(random);
    const TempDir folder;
    auto table =
        RowTable::Create(FileSystem::Posix(), folder.path(), kCacheName, job.Table(), FirstRow)
            .value();
    auto cache = TableCache::Open(std::move(table), {.memory_bytes = RandomMemory(job, random),
                                                     .max_step_rows = job.max_step_rows})
                     .value();
    ASSERT_OK(RunAll(job, *cache));
    ASSERT_EQ(TableContentOf(**cache->Flush()), ModelAfter(job));
  }
}

std::vector<std::byte> DoneBytes(std::uint64_t done) {
  const auto bytes = std::as_bytes(std::span(&done, 1));
  return {bytes.begin(), bytes.end()};
}

std::uint64_t DoneOf(const RowTable& table) {
  std::uint64_t done = 0;
  EXPECT_EQ(table.progress().size(), sizeof(done));
  std::memcpy(&done, table.progress().data(), sizeof(done));
  return done;
}

// The process is killed between or within steps, or the power is cut, and the job resumes with
// another amount of memory.
TEST(TableCacheTest, KilledJobsEndWithTheSameBytes) {
  JobRandom random(testing::TestSeed());
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const TableJob job = RandomJob(random);
    const std::uint64_t interval = 1 + random() % 10;
    FakeFileSystem fs;
    auto created = RowTable::Create(fs, "/", kCacheName, job.Table(), FirstRow).value();
    ASSERT_OK(created->Checkpoint(DoneBytes(0)));
    created = nullptr;
    for (int kills = 0;; ++kills) {
      auto table = RowTable::Open(fs, "/", kCacheName, job.Table());
      ASSERT_OK(table);
      std::uint64_t done = DoneOf(**table);
      auto cache = TableCache::Open(std::move(*table), {.memory_bytes = RandomMemory(job, random),
                                                        .max_step_rows = job.max_step_rows})
                       .value();
      const auto checkpoint = [&](std::uint64_t now) {
        return now % interval == 0 ? cache->Checkpoint(DoneBytes(now)) : Status::Ok();
      };
      const std::uint64_t steps = kills < 5 ? random() % 40 : 1U << 30;
      ASSERT_OK(RunSteps(job, *cache, &done, steps, random() % 2 == 0, checkpoint));
      if (steps == 1U << 30) {
        ASSERT_EQ(TableContentOf(**cache->Flush()), ModelAfter(job));
        break;
      }
      cache = nullptr;
      fs.Crash(static_cast<FakeFileSystem::CrashMode>(random() % 8), random());
    }
  }
}

TEST(TableCacheTest, AFullDiskIsAnErrorAndTheJobResumes) {
  JobRandom random(testing::TestSeed());
  int failures = 0;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const TableJob job = RandomJob(random);
    FakeFileSystem fs;
    auto table = RowTable::Create(fs, "/", kCacheName, job.Table(), FirstRow).value();
    ASSERT_OK(table->Checkpoint(DoneBytes(0)));
    auto cache = TableCache::Open(std::move(table), {.memory_bytes = RandomMemory(job, random),
                                                     .max_step_rows = job.max_step_rows})
                     .value();
    std::uint64_t done = 0;
    fs.FailAt(fs.operation_count() + random() % 60, ENOSPC, /*sticky=*/true);
    Status status = RunSteps(job, *cache, &done, 1U << 30, false, [&](std::uint64_t now) {
      return now % 7 == 0 ? cache->Checkpoint(DoneBytes(now)) : Status::Ok();
    });
    if (status.ok()) status = cache->Checkpoint(DoneBytes(done));
    if (!status.ok()) {
      ++failures;
      EXPECT_STATUS(status, kOutOfSpace);
      EXPECT_STATUS(cache->Checkpoint({}), kOutOfSpace);
    }
    cache = nullptr;
    fs.ClearFailures();
    auto opened = RowTable::Open(fs, "/", kCacheName, job.Table());
    ASSERT_OK(opened);
    done = DoneOf(**opened);
    cache = TableCache::Open(std::move(*opened), {.memory_bytes = RandomMemory(job, random),
                                                  .max_step_rows = job.max_step_rows})
                .value();
    ASSERT_OK(
        RunSteps(job, *cache, &done, 1U << 30, false, [](std::uint64_t) { return Status::Ok(); }));
    ASSERT_EQ(TableContentOf(**cache->Flush()), ModelAfter(job));
  }
  EXPECT_GT(failures, 0);
}

TEST(TableCacheTest, HasTheRowsThatItsMemoryIsFor) {
  for (const std::uint64_t rows : {1U, 2U, 100U, 5000U, 200000U}) {
    for (const std::uint64_t step : {1U, 50U, 3000U}) {
      FakeFileSystem fs;
      auto table = RowTable::Create(fs, "/", kCacheName, {.rows = 300000, .row_bytes = 12},
                                    [](std::uint64_t, std::span<std::byte>) {})
                       .value();
      const auto cache = TableCache::Open(
          std::move(table),
          {.memory_bytes = TableCache::BytesFor(rows, 12, step), .max_step_rows = step});
      ASSERT_OK(cache);
      EXPECT_GE((*cache)->frame_count(), rows);
      EXPECT_LE((*cache)->frame_count(), rows + 20);
    }
  }
}

TEST(TableCacheTest, ADamagedBlockIsAnErrorOfTheStepThatReadsIt) {
  const TableJob job{.rows = 40, .superbatches = {}, .optimizer = {}, .max_step_rows = 4};
  FakeFileSystem fs;
  auto table = RowTable::Create(fs, "/", kCacheName, job.Table(), FirstRow).value();
  ASSERT_OK(fs.FlipBit(std::string("/") + kCacheName + ".rows", 100));
  auto cache = TableCache::Open(std::move(table),
                                {.memory_bytes = TableCache::BytesFor(1, job.Table().row_bytes, 4),
                                 .max_step_rows = 4})
                   .value();
  Trace trace;
  trace.AddStep(std::vector<CacheKey>{0, 1});
  ASSERT_OK(cache->Start(trace));
  TableRows rows;
  EXPECT_STATUS(cache->Acquire(rows), kCorruption);
  EXPECT_STATUS(cache->Start(trace), kCorruption);
}

TEST(TableCacheTest, RefusesWrongArguments) {
  const TableJob job{.rows = 40, .superbatches = {}, .optimizer = {}, .max_step_rows = 3};
  const auto open = [&](FakeFileSystem& fs, std::uint64_t memory_bytes) {
    return TableCache::Open(RowTable::Create(fs, "/", kCacheName, job.Table(), FirstRow).value(),
                            {.memory_bytes = memory_bytes, .max_step_rows = 3});
  };
  const std::uint64_t enough = TableCache::BytesFor(1, job.Table().row_bytes, 3);
  FakeFileSystem small;
  const auto refused = open(small, enough / 2);
  EXPECT_STATUS(refused, kOutOfMemory);
  EXPECT_THAT(refused.error().message(), HasSubstr(std::to_string(enough) + " are enough"));
  const auto expect = [&](const std::vector<std::vector<CacheKey>>& steps, const char* message) {
    FakeFileSystem fs;
    auto cache = open(fs, enough).value();
    Trace trace;
    for (const auto& step : steps) trace.AddStep(step);
    Status status = cache->Start(trace);
    TableRows rows;
    if (status.ok()) status = cache->Acquire(rows);
    if (status.ok()) status = cache->Update(job.Optimizer(), 1, {});
    EXPECT_STATUS(status, kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(message));
    EXPECT_STATUS(cache->Checkpoint({}), kInvalidArgument);
  };
  expect({{1, 40}}, "40");
  expect({{1, 1}}, "twice");
  expect({{1, 2, 3, 4}}, "max_step_rows");
  expect({}, "no next step");
  expect({{1, 2}}, "do not fit");
}

// Kernel of a step without a table: the sum over pairs, one after another.
TEST(GradientSumsTest, AddsInAscendingOrderOfPairs) {
  JobRandom random(testing::TestSeed());
  for (const std::size_t rows : {1U, 3U, 200U}) {
    const std::size_t pairs = 2000;
    std::vector<std::uint32_t> row_of_pair(pairs);
    for (std::uint32_t& row : row_of_pair) row = static_cast<std::uint32_t>(random() % rows);
    FloatRow gradients(pairs * kCachedDim);
    for (float& g : gradients) g = static_cast<float>(random() % 100000) / 7 - 5000;
    FloatRow expected(rows * kCachedDim);
    for (std::size_t p = 0; p < pairs; ++p)
      for (std::size_t i = 0; i < kCachedDim; ++i)
        expected[row_of_pair[p] * kCachedDim + i] += gradients[p * kCachedDim + i];
    FloatRow sums(rows * kCachedDim, -1);
    GradientSums(row_of_pair, rows).Add(gradients, kCachedDim, sums);
    EXPECT_EQ(sums, expected);
  }
}

}  // namespace
}  // namespace rhizome
