#include "rhizome/feature_cache.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>

#include "cache/policy/basic_policies.h"
#include "cache/policy/belady_schedule.h"
#include "cache/policy/trace_testing.h"
#include "rhizome/file_system.h"
#include "rhizome/policy.h"
#include "storage/array/chunk_writer.h"
#include "storage/store/generation_writer.h"
#include "testing/testing.h"

// Tests of FeatureCache with every policy, pool size and I/O backend: rows are right, held rows do
// not change, reads equal a replay of the policy, rows can be read ahead, and damage, failed reads
// and wrong use are reported.

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using testing::RandomTrace;
using testing::TempDir;

constexpr std::uint64_t kRows = 700;

/// Returns the byte at a position; every byte is a function of its position, so that a misplaced
/// row is detected.
std::byte ByteOf(std::uint64_t row, std::uint64_t column) {
  return static_cast<std::byte>((row * 131 + column * 7 + (row >> 3)) & 0xff);
}

std::vector<std::byte> RowBytes(std::uint64_t first, std::uint64_t count, std::uint64_t row_bytes) {
  std::vector<std::byte> bytes;
  for (std::uint64_t row = first; row < first + count; ++row) {
    for (std::uint64_t column = 0; column < row_bytes; ++column) {
      bytes.push_back(ByteOf(row, column));
    }
  }
  return bytes;
}

Status WriteArray(GenerationWriter& writer, const ArrayEntry& entry) {
  RHIZOME_ASSIGN_OR_RETURN(auto array, ChunkArrayWriter::Create(writer.fs(), writer.root(), entry));
  for (std::uint64_t chunk = 0; chunk < entry.chunk_count(); ++chunk) {
    const std::uint64_t first = chunk * entry.chunk_rows;
    const std::uint64_t count = std::min(entry.chunk_rows, entry.rows - first);
    RHIZOME_RETURN_IF_ERROR(array->WriteChunk(chunk, RowBytes(first, count, entry.row_bytes())));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<FileEntry> files, array->Finish());
  return writer.AddArray(array->arrays(), files);
}

/// Builds a store with the arrays `feat` (64-byte rows), `half` (6-byte rows) and `packed` (chunk
/// layout).
Status BuildStore(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto store,
                           Store::Create(FileSystem::Posix(), path, StoreId::Random()));
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, GenerationWriter::Create(*store));
  ArrayEntry entry;
  entry.name = "feat";
  entry.rows = kRows;
  entry.dim = 16;
  entry.chunk_rows = 128;
  entry.array_id = 1;
  RHIZOME_RETURN_IF_ERROR(WriteArray(*writer, entry));
  entry.name = "half";
  entry.dim = 3;
  entry.dtype = DataType::kFloat16;
  entry.array_id = 2;
  RHIZOME_RETURN_IF_ERROR(WriteArray(*writer, entry));
  entry.name = "packed";
  entry.layout = ArrayLayout::kChunk;
  entry.codec = {.kind = CodecKind::kZstd, .level = 1};
  entry.array_id = 3;
  RHIZOME_RETURN_IF_ERROR(WriteArray(*writer, entry));
  GenerationInfo info;
  info.vertices = kRows;
  info.partitions = 1;
  info.partitioner = "random";
  info.order = "natural";
  info.vertex_types = {"vertex"};
  info.edge_types = {"edge"};
  return writer->Commit(info);
}

std::unique_ptr<Policy> PolicyFor(PolicyKind kind, const Trace& trace, std::uint32_t frames) {
  return *MakePolicy({.kind = kind,
                      .frame_count = frames,
                      .key_count = kRows,
                      .unit_bytes = 24,
                      .cost = {.seconds_per_read = 1e-5, .bytes_per_second = 1e8}},
                     trace);
}

constexpr PolicyKind kAllPolicies[] = {
    PolicyKind::kNone,   PolicyKind::kLru,    PolicyKind::kFifo,
    PolicyKind::kClock,  PolicyKind::kS3Fifo, PolicyKind::kStatic,
    PolicyKind::kBelady, PolicyKind::kCost,   PolicyKind::kMatch};

/// Runs with both I/O backends.
class FeatureCacheTest : public ::testing::TestWithParam<IoMaker> {
 protected:
  void SetUp() override {
    if (GetParam() == IoMaker::kUring) {
      IoQueueOptions options;
      options.maker = IoMaker::kUring;
      const auto queue = IoQueue::Open(options);
      if (!queue) GTEST_SKIP() << "no io_uring here: " << queue.error().message();
    }
    ASSERT_OK(BuildStore(dir_ / "graph.rz"));
    Result<std::unique_ptr<Store>> store =
        Store::Open(FileSystem::Posix(), dir_ / "graph.rz", Store::Mode::kRead);
    ASSERT_OK(store);
    store_ = std::move(*store);
  }

  FeatureCacheOptions Options(std::size_t capacity_bytes) const {
    FeatureCacheOptions options;
    options.capacity_bytes = capacity_bytes;
    options.reader.io.maker = GetParam();
    options.reader.staging_bytes = 512 << 10;
    return options;
  }

  /// Gathers every step of `trace` and compares each byte.
  static void ExpectRightRows(FeatureCache& cache, const Trace& trace) {
    const std::uint64_t row_bytes = cache.array().row_bytes();
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      const std::span<const CacheKey> rows = trace.step(s);
      std::vector<std::byte> out(rows.size() * row_bytes);
      ASSERT_OK(cache.Gather(rows, out));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::span<const std::byte> row = std::span(out).subspan(i * row_bytes, row_bytes);
        const auto wanted = RowBytes(static_cast<std::uint64_t>(rows[i]), 1, row_bytes);
        ASSERT_TRUE(std::equal(row.begin(), row.end(), wanted.begin()))
            << "step " << s << ", request " << i << ", row " << rows[i];
      }
    }
  }

  /// Compares each byte of held rows of array `feat`.
  static void ExpectHeld(const std::vector<Row>& rows, const HeldRows& held) {
    ASSERT_EQ(held.slots().size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::span<const std::byte> row = held.table().subspan(held.slots()[i] * 64, 64);
      const auto wanted = RowBytes(static_cast<std::uint64_t>(rows[i]), 1, 64);
      ASSERT_TRUE(std::equal(row.begin(), row.end(), wanted.begin())) << "row " << rows[i];
    }
  }

  /// Flips one bit of `row` of array `feat` on disk.
  void Damage(std::uint64_t row) {
    const Path file = Store::GenerationFolder(store_->path(), store_->manifest().generation) /
                      ChunkPath("feat", row / 128);
    std::FILE* const f = std::fopen(file.c_str(), "r+b");
    ASSERT_NE(f, nullptr) << file;
    const long at = static_cast<long>(row % 128 * 64 + 5);
    ASSERT_EQ(std::fseek(f, at, SEEK_SET), 0);
    ASSERT_NE(std::fputc(std::to_integer<int>(ByteOf(row, 5)) ^ 1, f), EOF);
    ASSERT_EQ(std::fclose(f), 0);
  }

  TempDir dir_;
  std::unique_ptr<Store> store_;
};

TEST_P(FeatureCacheTest, GatherReturnsTheRowsWhateverThePolicyAndTheSizeOfThePool) {
  std::mt19937_64 random(testing::TestSeed());
  const Trace trace = RandomTrace(random, 25, kRows, 200);
  for (const std::size_t frames : {0, 1, 7, 100, 10000}) {
    for (const PolicyKind kind : kAllPolicies) {
      SCOPED_TRACE(std::string(PolicyName(kind)) + ", frames " + std::to_string(frames));
      const auto cache = FeatureCache::Open(*store_, "feat", Options(frames * 64));
      ASSERT_OK(cache);
      EXPECT_EQ((*cache)->frame_count(), std::min<std::uint64_t>(frames, kRows));
      const std::uint32_t frame_count = (*cache)->frame_count();
      ASSERT_OK((*cache)->Start(PolicyFor(kind, trace, frame_count)));
      ExpectRightRows(**cache, trace);

      const auto replayed = PolicyFor(kind, trace, frame_count);
      const ReplayCounts counts = *Replay(*replayed, trace);
      const GatherStats stats = (*cache)->stats();
      EXPECT_EQ(stats.rows_requested, trace.keys.size());
      EXPECT_EQ(stats.pool_hits, counts.hits);
      EXPECT_EQ(stats.rows_read, counts.reads());
      EXPECT_GE(stats.bytes_read, counts.reads() == 0 ? 0 : 64);
      EXPECT_LE(stats.reads_issued, stats.rows_read);
      EXPECT_EQ((*cache)->reader_stats().maker, GetParam());
    }
  }
}

TEST_P(FeatureCacheTest, RowsThatAreNotAMultipleOfASectorAreFine) {
  std::mt19937_64 random(testing::TestSeed());
  const Trace trace = RandomTrace(random, 25, kRows, 100);
  const auto cache = FeatureCache::Open(*store_, "half", Options(50 * 6 + 5));
  ASSERT_OK(cache);
  EXPECT_EQ((*cache)->frame_count(), 50u);
  ASSERT_OK((*cache)->Start(*MakeBeladySchedule(trace, 50, kRows)));
  ExpectRightRows(**cache, trace);
}

TEST_P(FeatureCacheTest, ASuperbatchReadsOfItsPrefillWhatTheOneBeforeHasNotLeft) {
  std::mt19937_64 random(testing::TestSeed());
  const auto cache = FeatureCache::Open(*store_, "feat", Options(90 * 64));
  ASSERT_OK(cache);
  const Trace unannounced = RandomTrace(random, 3, kRows, 50);
  ExpectRightRows(**cache, unannounced);  // without Start no row is kept
  EXPECT_EQ((*cache)->stats().pool_hits, 0u);
  std::uint64_t reads = (*cache)->stats().rows_read;
  for (const PolicyKind kind : kAllPolicies) {
    const Trace trace = RandomTrace(random, 10, kRows, 150);
    ASSERT_OK((*cache)->Start(PolicyFor(kind, trace, 90)));
    ExpectRightRows(**cache, trace);
    const auto replayed = PolicyFor(kind, trace, 90);
    reads += Replay(*replayed, trace)->reads();
    const GatherStats stats = (*cache)->stats();
    EXPECT_EQ(stats.rows_read + stats.rows_kept, reads) << PolicyName(kind);
  }
  EXPECT_GT((*cache)->stats().rows_kept, 0u);
}

TEST_P(FeatureCacheTest, HeldRowsStayWhileOthersAreRead) {
  std::mt19937_64 random(testing::TestSeed());
  FeatureCacheOptions options = Options(90 * 64);
  options.held = {.slots = 1000, .most = 4000};
  const auto cache = FeatureCache::Open(*store_, "feat", options);
  ASSERT_OK(cache);
  std::deque<std::pair<std::vector<Row>, HeldRows>> held;
  for (const PolicyKind kind : kAllPolicies) {
    const Trace trace = RandomTrace(random, 12, kRows, 150);
    (*cache)->SetStarved(true);  // this thread also releases, so it must not wait for a release
    ASSERT_OK((*cache)->Start(PolicyFor(kind, trace, 90)));
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      HeldRows rows;
      ASSERT_OK((*cache)->Hold(trace.step(s), rows));
      held.emplace_back(std::vector<Row>(trace.step(s).begin(), trace.step(s).end()),
                        std::move(rows));
      for (const auto& [wanted, where] : held) ExpectHeld(wanted, where);
      while (held.size() > random() % 5)
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
    }
  }
  std::vector<std::byte> out(64);
  held.clear();
  HeldRows rows;
  const std::vector<Row> one = {7};
  ASSERT_OK((*cache)->Start(nullptr));
  ASSERT_OK((*cache)->Hold(one, rows));
  EXPECT_STATUS((*cache)->Gather(one, out), kInvalidArgument);  // rows are held
  rows = HeldRows();
  EXPECT_OK((*cache)->Gather(one, out));
}

TEST_P(FeatureCacheTest, WhatIsReadAheadIsThereWhenItsSuperbatchBegins) {
  std::mt19937_64 random(testing::TestSeed());
  FeatureCacheOptions options = Options(90 * 64);
  options.held = {.slots = 150, .most = 150};
  const auto cache = FeatureCache::Open(*store_, "feat", options);
  ASSERT_OK(cache);
  std::vector<Trace> traces;
  std::vector<std::unique_ptr<Policy>> policies;
  std::uint64_t reads = 0;
  for (const PolicyKind kind : {PolicyKind::kBelady, PolicyKind::kCost, PolicyKind::kBelady,
                                PolicyKind::kLru, PolicyKind::kStatic, PolicyKind::kCost}) {
    traces.push_back(RandomTrace(random, 12, kRows, 150));
    policies.push_back(PolicyFor(kind, traces.back(), 90));
    reads += Replay(*PolicyFor(kind, traces.back(), 90), traces.back())->reads();
  }
  bool ahead = false;
  for (std::size_t p = 0; p < policies.size(); ++p) {
    ASSERT_OK((*cache)->Start(std::move(policies[p])));
    EXPECT_FALSE((*cache)->announced());
    for (std::size_t s = 0; s < traces[p].steps(); ++s) {
      HeldRows rows;
      ASSERT_OK((*cache)->Hold(traces[p].step(s), rows));
      if (p + 1 < policies.size() && !(*cache)->announced()) (*cache)->Announce(*policies[p + 1]);
      const Result<bool> read = (*cache)->ReadAhead();
      ASSERT_OK(read);
      ahead = ahead || *read;
      ExpectHeld(std::vector<Row>(traces[p].step(s).begin(), traces[p].step(s).end()), rows);
    }
    // no row is held or needed any more, so all missing rows are read ahead
    while (p + 1 < policies.size()) {
      const Result<bool> read = (*cache)->ReadAhead();
      ASSERT_OK(read);
      if (!*read) break;
      ahead = true;
    }
  }
  EXPECT_TRUE(ahead);
  const GatherStats stats = (*cache)->stats();
  EXPECT_EQ(stats.rows_read + stats.rows_kept, reads);
}

TEST_P(FeatureCacheTest, ADamagedRowThatIsReadAheadIsNamed) {
  Damage(300);
  FeatureCacheOptions options = Options(2 * 64);
  options.held = {.slots = 4, .most = 4};
  const auto cache = FeatureCache::Open(*store_, "feat", options);
  ASSERT_OK(cache);
  const Trace now = testing::MakeTrace({{4}}), next = testing::MakeTrace({{300, 5}});
  ASSERT_OK((*cache)->Start(PolicyFor(PolicyKind::kBelady, now, 2)));
  const auto policy = PolicyFor(PolicyKind::kBelady, next, 2);
  HeldRows rows;
  ASSERT_OK((*cache)->Hold(now.step(0), rows));
  (*cache)->Announce(*policy);
  const Result<bool> read = (*cache)->ReadAhead();
  EXPECT_STATUS(read, kCorruption);
  EXPECT_THAT(read.error().message(), HasSubstr("300"));
  ExpectHeld({4}, rows);
  rows = HeldRows();
  EXPECT_STATUS((*cache)->Hold(now.step(0), rows), kInvalidArgument);
  const Trace good = testing::MakeTrace({{5, 6}});
  ASSERT_OK((*cache)->Start(PolicyFor(PolicyKind::kBelady, good, 2)));
  ASSERT_OK((*cache)->Hold(good.step(0), rows));
  ExpectHeld({5, 6}, rows);
}

TEST_P(FeatureCacheTest, OneThreadHoldsWhileAnotherReleases) {
  std::mt19937_64 random(testing::TestSeed());
  FeatureCacheOptions options = Options(90 * 64);
  // little more than a step, so that holders have to wait
  options.held = {.slots = 160, .most = 160};
  const auto cache = FeatureCache::Open(*store_, "feat", options);
  ASSERT_OK(cache);
  std::vector<Trace> traces;
  for (int i = 0; i < 3; ++i) traces.push_back(RandomTrace(random, 20, kRows, 150));
  std::vector<std::pair<std::vector<Row>, HeldRows>> steps;
  std::mutex mutex;
  std::counting_semaphore<> ready(0);
  Status failed;
  std::thread reading([&] {
    for (const Trace& trace : traces) {
      if (failed.ok()) failed = (*cache)->Start(PolicyFor(PolicyKind::kBelady, trace, 90));
      for (std::size_t s = 0; s < trace.steps(); ++s) {
        HeldRows rows;
        if (failed.ok()) failed = (*cache)->Hold(trace.step(s), rows);
        const std::lock_guard lock(mutex);
        steps.emplace_back(std::vector<Row>(trace.step(s).begin(), trace.step(s).end()),
                           std::move(rows));
        ready.release();
      }
    }
  });
  for (std::size_t s = 0; s < 60; ++s) {
    ready.acquire();
    std::pair<std::vector<Row>, HeldRows> step;
    {
      const std::lock_guard lock(mutex);
      step = std::move(steps[s]);
    }
    if (step.second.slots().size() == step.first.size()) ExpectHeld(step.first, step.second);
  }
  reading.join();
  EXPECT_OK(failed);
}

TEST_P(FeatureCacheTest, RowsBecomeWhatIsKeptOnceWhenTheyArrive) {
  std::mt19937_64 random(testing::TestSeed());
  const Trace trace = RandomTrace(random, 25, kRows, 100);
  FeatureCacheOptions options = Options(50 * 8);
  options.kept_row_bytes = 8;
  std::uint64_t arrivals = 0;
  options.on_arrival = [&](std::span<std::byte> row) {
    ++arrivals;
    ASSERT_EQ(row.size(), 8u);
    row[6] = ~row[0];
    row[7] = std::byte{0x5a};
    row[0] = std::byte{0};
  };
  const auto cache = FeatureCache::Open(*store_, "half", options);
  ASSERT_OK(cache);
  EXPECT_EQ((*cache)->frame_count(), 50u);
  ASSERT_OK((*cache)->Start(*MakeBeladySchedule(trace, 50, kRows)));
  for (std::size_t s = 0; s < trace.steps(); ++s) {
    std::vector<std::byte> out(trace.step(s).size() * 8);
    ASSERT_OK((*cache)->Gather(trace.step(s), out));
    for (std::size_t i = 0; i < trace.step(s).size(); ++i) {
      const auto row = RowBytes(static_cast<std::uint64_t>(trace.step(s)[i]), 1, 6);
      EXPECT_EQ(out[i * 8], std::byte{0});
      EXPECT_EQ(out[i * 8 + 5], row[5]);
      EXPECT_EQ(out[i * 8 + 6], ~row[0]);
      EXPECT_EQ(out[i * 8 + 7], std::byte{0x5a});
    }
  }
  EXPECT_EQ(arrivals, (*cache)->stats().rows_read);
}

TEST_P(FeatureCacheTest, OpenRefusesWhatIsNotARowArray) {
  EXPECT_STATUS(FeatureCache::Open(*store_, "nothing", Options(0)), kNotFound);
  const auto packed = FeatureCache::Open(*store_, "packed", Options(0));
  EXPECT_STATUS(packed, kInvalidArgument);
  EXPECT_THAT(packed.error().message(), HasSubstr("packed"));
}

TEST_P(FeatureCacheTest, GatherRefusesWrongRowsAndSizesAndGoesOn) {
  const auto cache = FeatureCache::Open(*store_, "feat", Options(1 << 16));
  ASSERT_OK(cache);
  std::vector<std::byte> out(2 * 64);
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{1, Row{kRows}}, out), kInvalidArgument);
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{-1, 1}, out), kInvalidArgument);
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{1}, out), kInvalidArgument);
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{1, 2, 3}, out), kInvalidArgument);
  EXPECT_OK((*cache)->Gather(std::vector<Row>{1, Row{kRows} - 1}, out));
}

TEST_P(FeatureCacheTest, ADamagedRowIsNamedAndTheCacheMustBeStartedAgain) {
  Damage(300);
  const auto cache = FeatureCache::Open(*store_, "feat", Options(1 << 16));
  ASSERT_OK(cache);
  ASSERT_OK((*cache)->Start(MakeLruPolicy((*cache)->frame_count(), kRows)));
  std::vector<std::byte> out(2 * 64);
  const Status damaged = (*cache)->Gather(std::vector<Row>{4, 300}, out);
  EXPECT_STATUS(damaged, kCorruption);
  EXPECT_THAT(damaged.message(), HasSubstr("feat"));
  EXPECT_THAT(damaged.message(), HasSubstr("300"));
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{4, 5}, out), kInvalidArgument);

  const std::vector<CacheKey> ranking = {300};
  EXPECT_STATUS((*cache)->Start(*MakeStaticPolicy(1, kRows, ranking)), kCorruption);
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{4, 5}, out), kInvalidArgument);

  ASSERT_OK((*cache)->Start(MakeLruPolicy((*cache)->frame_count(), kRows)));
  ExpectRightRows(**cache, testing::MakeTrace({{4, 5}, {5, 4}}));
}

TEST_P(FeatureCacheTest, StepsAndPoliciesOfAnotherTraceAreRefused) {
  const auto cache = FeatureCache::Open(*store_, "feat", Options(4 * 64));
  ASSERT_OK(cache);
  const std::uint32_t frames = (*cache)->frame_count();
  std::vector<std::byte> out(2 * 64);
  std::vector<CacheKey> ranking(frames + 1);
  std::iota(ranking.begin(), ranking.end(), 0);
  EXPECT_STATUS((*cache)->Start(*MakeStaticPolicy(frames + 1, kRows, ranking)), kInvalidArgument);
  // A policy for fewer rows than the array has, a row twice in a step, and a schedule of another
  // trace.
  ASSERT_OK((*cache)->Start(MakeLruPolicy(frames, 5)));
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{4, 5}, out), kInvalidArgument);
  ASSERT_OK((*cache)->Start(MakeLruPolicy(frames, kRows)));
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{4, 4}, out), kInvalidArgument);
  const Trace trace = testing::MakeTrace({{4, 5}, {5, 4}});
  ASSERT_OK((*cache)->Start(*MakeBeladySchedule(trace, frames, kRows)));
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{5, 4}, out), kInvalidArgument);

  ASSERT_OK((*cache)->Start(*MakeBeladySchedule(trace, frames, kRows)));
  ExpectRightRows(**cache, trace);
}

TEST_P(FeatureCacheTest, AFailedReadSurfaces) {
  FeatureCacheOptions options = Options(1 << 16);
  options.reader.io.fault_hook = [](const ReadRequest&, std::int64_t) -> std::int64_t {
    return -EIO;
  };
  const auto cache = FeatureCache::Open(*store_, "feat", options);
  ASSERT_OK(cache);
  std::vector<std::byte> out(64);
  EXPECT_STATUS((*cache)->Gather(std::vector<Row>{4}, out), kIoError);
}

INSTANTIATE_TEST_SUITE_P(Makers, FeatureCacheTest,
                         ::testing::Values(IoMaker::kUring, IoMaker::kPread),
                         [](const auto& info) { return std::string(IoMakerName(info.param)); });

}  // namespace
}  // namespace rhizome
