#include "cache/policy/replay.h"

#include <set>

#include "cache/policy/basic_policies.h"
#include "cache/policy/schedule_history.h"
#include "cache/policy/trace_testing.h"
#include "cache/pool/buffer_pool.h"
#include "rhizome/policy.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::MakeTrace;
using testing::RandomTrace;

constexpr std::uint64_t kReplayRowBytes = 1024;

/// Returns a cost at which gaps of up to 20 rows are read through.
ReadCost TwentyRowsAGapOfReplay() { return {.seconds_per_read = 61.5e-6, .bytes_per_second = 1e9}; }

/// The reads of a step are formed one by one: the next row joins a read if it is near its end.
TEST(ReplayReadsTest, EqualsReadsThatAreMadeOneByOne) {
  std::mt19937_64 random(testing::TestSeed());
  const ReadCost cost = TwentyRowsAGapOfReplay();
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t key_count = 1 + random() % 2000;
    const Trace trace = RandomTrace(random, 1 + random() % 10, key_count, 1 + random() % 60);
    std::uint64_t reads = 0, bytes = 0, rows = 0;
    for (std::size_t s = 0; s < trace.steps(); ++s) {
      std::set<CacheKey> step(trace.step(s).begin(), trace.step(s).end());
      rows += step.size();
      while (!step.empty()) {
        const CacheKey first = *step.begin();
        CacheKey last = first;
        step.erase(first);
        while (!step.empty() && *step.begin() - last - 1 <= 20) {
          last = *step.begin();
          step.erase(last);
        }
        ++reads;
        bytes += static_cast<std::uint64_t>(last - first + 1) * kReplayRowBytes;
      }
    }
    const ReplayTime time = *ReplayReads(*MakeNonePolicy(), trace, kReplayRowBytes, cost);
    EXPECT_EQ(time.reads, reads);
    EXPECT_EQ(time.bytes, bytes);
    EXPECT_EQ(time.rows, rows);
    EXPECT_NEAR(time.seconds,
                static_cast<double>(reads) * cost.seconds_per_read + cost.SecondsFor(bytes),
                1e-9 * time.seconds + 1e-12);
  }
}

/// Returns the average number of rows that a pool reads for each step, without the first superbatch
/// if there are several. `full` becomes false if a superbatch did not fill all frames.
double RowsReadByAPool(const Trace& trace, std::size_t superbatch, const PolicyOptions& options,
                       bool& full) {
  Result<BufferPool> pool = BufferPool::Create(sizeof(CacheKey), options.frame_count);
  std::uint64_t rows = 0, first = 0;
  std::size_t steps = 0;
  for (; steps + superbatch <= trace.steps(); steps += superbatch) {
    if (steps == superbatch) first = rows;
    Trace part;
    for (std::size_t s = steps; s < steps + superbatch; ++s) part.AddStep(trace.step(s));
    auto policy = *MakePolicy(options, part);
    full = full && policy->Prefill().size() == options.frame_count;
    EXPECT_OK(pool->SetPolicy(std::move(policy)));
    for (const auto& [key, frame] : pool->Prefill()) {
      pool->Fill(key, frame);
      ++rows;
    }
    StepPlan plan;
    for (std::size_t s = 0; s < superbatch; ++s) {
      EXPECT_OK(pool->Plan(part.step(s), plan));
      rows += plan.misses.size();
      for (const StepPlan::Place& insert : plan.inserts)
        pool->Fill(part.step(s)[insert.request], insert.frame);
    }
  }
  if (steps == superbatch) return static_cast<double>(rows) / static_cast<double>(steps);
  return static_cast<double>(rows - first) / static_cast<double>(steps - superbatch);
}

TEST(ReplaySuperbatchesTest, ReadsWhatAPoolReads) {
  std::mt19937_64 random(testing::TestSeed());
  int compared = 0;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t key_count = 1 + random() % 80;
    const PolicyOptions options{
        .frame_count = static_cast<std::uint32_t>(random() % 60),
        .key_count = key_count,
        .unit_bytes = 1,
        .cost = {.seconds_per_read = 1, .bytes_per_second = 1e18, .fixed_gap_bytes = 0}};
    Trace trace = RandomTrace(random, 1 + random() % 20, key_count, 1 + random() % 30);
    PolicyOptions spread = options;  // so that no read has two rows
    Trace apart = trace;
    for (CacheKey& key : apart.keys) key *= 2;
    spread.key_count *= 2;
    const std::size_t superbatch = 1 + random() % trace.steps();
    bool full = true;
    ScheduleHistory history(key_count);
    PolicyOptions of_pool = options;
    if (round % 2 == 1) of_pool.history = &history;
    const Prior prior = round % 2 == 1 ? Prior::kUses : Prior::kNone;
    const double read = RowsReadByAPool(trace, superbatch, of_pool, full);
    const double replayed = ReplaySuperbatches(apart, superbatch, spread, prior)->step_seconds;
    // A pool that is larger than needed still holds some rows of earlier superbatches.
    EXPECT_LE(read, replayed + 1e-6) << "round " << round;
    if (full) {
      EXPECT_NEAR(read, replayed, 1e-6) << "round " << round;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST(ReplaySuperbatchesTest, RefusesMoreStepsThanThereAre) {
  const Trace trace = testing::MakeTrace({{0}, {1}});
  const PolicyOptions options{.frame_count = 1, .key_count = 2, .cost = {}};
  EXPECT_STATUS(ReplaySuperbatches(trace, 0, options), kInvalidArgument);
  EXPECT_STATUS(ReplaySuperbatches(trace, 3, options), kInvalidArgument);
  EXPECT_STATUS(ReplaySuperbatches(trace, 1, {.frame_count = 1, .key_count = 1, .cost = {}}),
                kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
