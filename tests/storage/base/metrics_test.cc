#include "rhizome/metrics.h"

#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "storage/base/call_metrics.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using std::chrono::nanoseconds;

TEST(MetricsTest, AddsUpWhatManyThreadsCount) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t)  // more than there are shards
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        metrics.Add(Counter::kWrites);
        metrics.Add(Counter::kWriteBytes, 10);
        metrics.Observe(Timer::kWrite, nanoseconds(1000));
        metrics.CountError(StatusCode::kBusy);
        metrics.Change(Gauge::kCacheBytes, i % 2 == 0 ? 1 : -1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  metrics.Set(Gauge::kVertices, -5);
  const MetricsSnapshot all = metrics.Snapshot();
  EXPECT_EQ(all.of(Counter::kWrites), 10000U);
  EXPECT_EQ(all.of(Counter::kWriteBytes), 100000U);
  EXPECT_EQ(all.of(Counter::kRowLookups), 0U);
  EXPECT_EQ(all.of(Timer::kWrite).count(), 10000U);
  EXPECT_EQ(all.of(Timer::kWrite).sum_nanoseconds, 10000000U);
  EXPECT_EQ(all.of(StatusCode::kBusy), 10000U);
  EXPECT_EQ(all.of(Gauge::kCacheBytes), 0);
  EXPECT_EQ(all.of(Gauge::kVertices), -5);
}

TEST(MetricsTest, ATimeIsInTheBucketWhoseBoundsHoldIt) {
  std::mt19937_64 rng(testing::TestSeed());
  std::vector<std::uint64_t> times = {0, 1, 255, 256, 257, 511, 512, 513, UINT64_MAX};
  for (int i = 0; i < 2000; ++i) times.push_back(rng() >> (rng() % 64));
  for (const std::uint64_t time : times) {
    const std::size_t bucket = LatencyHistogram::BucketOf(time);
    ASSERT_LT(bucket, LatencyHistogram::kBuckets);
    if (bucket > 0) {
      EXPECT_GT(time, LatencyHistogram::kFirstNanoseconds << (bucket - 1)) << time;
    }
    if (bucket + 1 < LatencyHistogram::kBuckets) {
      EXPECT_LE(time, LatencyHistogram::kFirstNanoseconds << bucket) << time;
    }
  }
}

TEST(MetricsTest, AQuantileIsTheBoundOfItsBucket) {
  Metrics metrics;
  EXPECT_EQ(metrics.Snapshot().of(Timer::kWrite).Quantile(0.5), 0);
  for (int i = 0; i < 90; ++i) metrics.Observe(Timer::kWrite, nanoseconds(200));
  for (int i = 0; i < 10; ++i) metrics.Observe(Timer::kWrite, nanoseconds(100000));
  const LatencyHistogram histogram = metrics.Snapshot().of(Timer::kWrite);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.5), 256e-9);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.9), 256e-9);
  EXPECT_DOUBLE_EQ(histogram.Quantile(0.99), 256e-9 * 512);
}

TEST(MetricsTest, ACallIsTimedOnceInSixteenAndItsErrorCountedAlways) {
  Metrics metrics;
  for (std::uint64_t i = 0; i < 10 * kSampledCalls; ++i) {
    const CallMetrics call(&metrics, Timer::kRowLookup, Counter::kRowLookups);
    EXPECT_STATUS(call.Done(Status::Busy("as it was given")), kBusy);
  }
  {
    const CallMetrics nowhere(nullptr, Timer::kRowLookup, Counter::kRowLookups);
    EXPECT_OK(nowhere.Done(Status::Ok()));
  }
  const CallMetrics none(nullptr, Timer::kWrite);
  EXPECT_STATUS(none.Done(Status::Busy("nobody counts")), kBusy);
  const MetricsSnapshot all = metrics.Snapshot();
  EXPECT_EQ(all.of(Counter::kRowLookups), 10 * kSampledCalls);
  EXPECT_EQ(all.of(Timer::kRowLookup).count(), 10U);
  EXPECT_EQ(all.of(StatusCode::kBusy), 10 * kSampledCalls);
  EXPECT_EQ(all.of(Timer::kWrite).count(), 0U);
}

/// Returns a snapshot in which all numbers are different.
MetricsSnapshot Numbered() {
  MetricsSnapshot all;
  std::uint64_t next = 1;
  for (auto& value : all.counters) value = next++;
  for (auto& value : all.gauges) value = -static_cast<std::int64_t>(next++);
  for (auto& value : all.errors) value = next++;
  for (auto& histogram : all.timers) {
    for (auto& value : histogram.counts) value = next++;
    histogram.sum_nanoseconds = 1500 * next++;
  }
  return all;
}

// tests/python/metrics_test.py parses the same file with prometheus_client and compares it with the
// numbers of Numbered().
TEST(MetricsTest, TextHasHelpTypeAndEveryNumber) {
  const std::vector<std::pair<std::string, std::string>> labels = {
      {"store", "/a \"b\"\\c\nd"}, {"0bad", "left out"}, {"", "left out"}};
  const std::string text = MetricsText(Numbered(), labels);
  EXPECT_NE(text.find("# HELP rhizome_writes_total "), std::string::npos);
  EXPECT_NE(text.find("# TYPE rhizome_writes_total counter\n"
                      "rhizome_writes_total{store=\"/a \\\"b\\\"\\\\c\\nd\"} 1\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("left out"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
  if (const char* path = std::getenv("RHIZOME_METRICS_TEXT")) std::ofstream(path) << text;
}

TEST(MetricsTest, AReporterCallsNowAndThenAndAtTheEnd) {
  const auto metrics = std::make_shared<Metrics>();
  std::mutex mutex;
  std::condition_variable called;
  int calls = 0;
  std::uint64_t last = 0;
  {
    const MetricsReporter reporter(
        metrics,
        [&](const MetricsSnapshot& all) {
          {
            const std::lock_guard lock(mutex);
            ++calls;
            last = all.of(Counter::kWrites);
          }
          called.notify_all();
          throw std::runtime_error("from the callback");
        },
        std::chrono::milliseconds(1));
    std::unique_lock lock(mutex);
    called.wait(lock, [&] { return calls >= 3; });
    metrics->Add(Counter::kWrites, 42);
  }
  EXPECT_GE(calls, 4);
  EXPECT_EQ(last, 42U);
}

}  // namespace
}  // namespace rhizome
