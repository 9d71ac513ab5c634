#include <algorithm>

#include "rhizome/file_system.h"
#include "testing/testing.h"
#include "tools/bench/cache/bench_pool.h"
#include "tools/bench/cache/bench_pool_device.h"
#include "tools/bench/cache/bench_remote.h"
#include "tools/bench/graph/bench_sample.h"
#include "tools/bench/harness/fio.h"
#include "tools/bench/store/bench_gather.h"
#include "tools/bench/store/bench_ingest.h"

// Tests of `rhizome bench`: each bench runs on a small graph, its JSON has plausible figures,
// scratch files are removed, and wrong options or a failing fio are reported.

namespace rhizome {
namespace {

using testing::TempDir;

BenchGraphOptions SmallGraph(const TempDir& dir) {
  BenchGraphOptions graph;
  graph.dir = dir.path();
  graph.scale = 10;
  graph.edge_factor = 8;
  graph.partitions = 2;
  graph.fanouts = {5, 5};
  graph.batch_size = 50;
  return graph;
}

TEST(BenchTest, GatherComparesRowsWithFioAndLeavesNothingBehind) {
  TempDir dir;
  BenchGatherOptions options;
  options.dir = dir.path();
  options.bytes = 8 << 20;
  options.rounds = 2;
  options.seconds = 0.1;
  const JobControl control;
  const auto json = BenchGather(options, control);
  ASSERT_OK(json);
  EXPECT_EQ((*json)["workload"], "gather");
  EXPECT_GT((*json)["figure"], 0.0);
  EXPECT_EQ((*json)["rows"], 8192);
  EXPECT_EQ((*json)["block_bytes"], 1024);
  EXPECT_EQ((*json)["rounds"]["rows"].size(), 2u);
  if ((*json)["reference"].is_null()) {
    EXPECT_FALSE((*json)["reference_missing"].get<std::string>().empty());
  } else {
    EXPECT_GT((*json)["ratio"], 0.0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchTest, IngestRunsEveryContestant) {
  TempDir dir;
  BenchIngestOptions options;
  options.dir = dir.path();
  options.scale = 10;
  options.partitions = 3;
  const JobControl control;
  const auto json = BenchIngest(options, control);
  ASSERT_OK(json);
  ASSERT_EQ((*json)["runs"].size(), 7u);
  for (const auto& run : (*json)["runs"]) {
    EXPECT_GT(run["edges_per_second"], 0.0);
    EXPECT_EQ(run["spilled"], run["spilled_bytes"] > 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchTest, SampleCountsEdges) {
  TempDir dir;
  BenchSampleOptions options;
  options.graph = SmallGraph(dir);
  options.batches = 3;
  options.rounds = 3;
  const JobControl control;
  const auto json = BenchSample(options, control);
  ASSERT_OK(json);
  EXPECT_GT((*json)["figure"], 0.0);
  EXPECT_EQ((*json)["rounds"].size(), 3u);
  EXPECT_EQ((*json)["vertices"], 1024);
  EXPECT_GT((*json)["edges_per_batch"], 0.0);
  EXPECT_LE((*json)["edges_per_batch"], 50.0 * (5 + 25));
  EXPECT_FALSE(json->contains("delta"));
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchTest, SampleWithADeltaIsMeasuredToo) {
  TempDir dir;
  BenchSampleOptions options;
  options.graph = SmallGraph(dir);
  options.batches = 2;
  options.rounds = 2;
  options.delta = 0.1;
  const JobControl control;
  const auto json = BenchSample(options, control);
  ASSERT_OK(json);
  const auto& delta = (*json)["delta"];
  EXPECT_GT(delta["puts"], 0);
  EXPECT_GT(delta["deletes"], 0);
  EXPECT_GT(delta["of_plain"], 0.0);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchTest, PoolShowsBeladyBelowEveryOtherPolicy) {
  TempDir dir;
  BenchPoolOptions options;
  options.graph = SmallGraph(dir);
  options.superbatch = 20;
  const JobControl control;
  const auto json = BenchPool(options, control);
  ASSERT_OK(json);
  ASSERT_EQ((*json)["pools"].size(), 4u);
  for (const auto& pool : (*json)["pools"]) {
    const auto belady = pool["belady"]["reads"].get<std::uint64_t>();
    EXPECT_GT(belady, 0u);
    for (const char* policy : {"lru", "fifo", "static"}) {
      EXPECT_LE(belady, pool[policy]["reads"].get<std::uint64_t>()) << policy;
    }
    EXPECT_EQ(
        pool["belady"]["hits"].get<std::uint64_t>() + belady,
        (*json)["requests"].get<std::uint64_t>() + pool["belady"]["prefill"].get<std::uint64_t>());
  }
  EXPECT_GT((*json)["schedule_accesses_per_second"], 0.0);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchTest, PoolOnADeviceCountsTheBytesOfEachPolicy) {
  TempDir dir;
  BenchPoolOptions options;
  options.graph = SmallGraph(dir);
  options.superbatch = 12;
  options.shares = {};
  options.device_shares = {0.1, 1.0};
  const JobControl control;
  const auto json = BenchPool(options, control);
  ASSERT_OK(json);
  const double none = 1024.0 * (*json)["requests"].get<double>() / 12;
  for (const auto& pool : (*json)["device_pools"]) {
    EXPECT_NEAR(pool["none_bytes"].get<double>(), none, 1);
    EXPECT_LE(pool["belady_bytes"].get<double>(), pool["match_bytes"].get<double>());
    EXPECT_LE(pool["belady_bytes"].get<double>(), pool["best_static_bytes"].get<double>());
    EXPECT_LE(pool["best_static_bytes"].get<double>(), pool["gnnlab_static_bytes"].get<double>());
  }
  const auto& all = (*json)["device_pools"][1];
  EXPECT_LT(all["belady_bytes"].get<double>(), none / 2);
  EXPECT_EQ(all["pool_bytes"].get<double>(), 1024.0 * all["frames"].get<double>());
}

// Three decays of the score times seven intervals: the intervals in MassiveGNN's text, and 256 from
// its Table 6.
TEST(BenchTest, RemoteTriesMassiveGnnInAllItsSettings) {
  TempDir dir;
  BenchRemoteOptions options;
  options.dir = dir.path();
  options.traces = {"rmat10"};
  options.fractions = {.25};
  options.policies = {"scored", "static"};
  options.trace.batch_size = 8;
  options.trace.epochs = 1;
  const JobControl control;
  const auto json = BenchRemote(options, control);
  ASSERT_OK(json);
  ASSERT_EQ((*json)["results"].size(), 2u);
  EXPECT_EQ((*json)["results"][0]["best_of"], 21);
  EXPECT_EQ((*json)["results"][1]["best_of"], 1);
  EXPECT_LE((*json)["results"][0]["over_optimum"], (*json)["results"][1]["over_optimum"]);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(BenchTest, SharesAreReadAsPercentOrFractions) {
  EXPECT_DOUBLE_EQ(*ParseShare("5%"), 0.05);
  EXPECT_DOUBLE_EQ(*ParseShare("0.2"), 0.2);
  EXPECT_DOUBLE_EQ(*ParseShare("100%"), 1);
  for (const char* text : {"", "%", "0%", "101%", "five", "nan", "5%%", "-1"})
    EXPECT_FALSE(ParseShare(text).has_value()) << text;
}

TEST(BenchTest, PoolWithAReorderedTraceReadsAsOftenInAllAndSaysWhatItSaves) {
  TempDir dir;
  BenchPoolOptions options;
  options.graph = SmallGraph(dir);
  options.superbatch = 12;
  options.shares = {0.1, 1.0};
  options.reorder = 6;
  options.seeds = BenchSeeds::kGrouped;
  const JobControl control;
  const auto json = BenchPool(options, control);
  ASSERT_OK(json);
  EXPECT_EQ((*json)["seeds"], "grouped");
  EXPECT_EQ((*json)["reorder"], 6);
  for (const auto& pool : (*json)["pools"]) {
    for (const char* policy : {"belady", "lru", "match"}) {
      const auto& given = pool[policy];
      const auto& reordered = given["reordered"];
      // The minibatches are the same, in another order.
      EXPECT_EQ(reordered["reads"].get<std::uint64_t>() + reordered["hits"].get<std::uint64_t>() -
                    reordered["prefill"].get<std::uint64_t>(),
                (*json)["requests"].get<std::uint64_t>())
          << policy;
      EXPECT_DOUBLE_EQ(reordered["reads_saved"].get<double>(),
                       1 - reordered["reads"].get<double>() / given["reads"].get<double>());
    }
  }
  // A pool for all rows reads each of them once in any order; a pool for one minibatch does not.
  const auto& whole = (*json)["pools"][1];
  EXPECT_EQ(whole["belady"]["reads"], whole["belady"]["reordered"]["reads"]);
  EXPECT_GT(whole["match"]["reads"], whole["belady"]["reads"]);
}

TEST(BenchTest, WrongOptionsAreRefused) {
  TempDir dir;
  const JobControl control;
  BenchGatherOptions gather;
  gather.dir = dir.path();
  gather.row_bytes = 6;
  EXPECT_STATUS(BenchGather(gather, control), kInvalidArgument);
  gather.row_bytes = 1024;
  gather.rounds = 0;
  EXPECT_STATUS(BenchGather(gather, control), kInvalidArgument);
  gather.rounds = 1;
  gather.dir = dir / "nowhere";
  EXPECT_STATUS(BenchGather(gather, control), kNotFound);
  BenchPoolOptions pool;
  pool.shares = {1.5};
  EXPECT_STATUS(BenchPool(pool, control), kInvalidArgument);
  BenchSampleOptions sample;
  sample.batches = 0;
  EXPECT_STATUS(BenchSample(sample, control), kInvalidArgument);
}

TEST(BenchTest, FioThatFailsIsAnIoErrorWithItsCommand) {
  TempDir dir;
  FioJob job;
  job.folder = dir / "nowhere";
  job.files = {"a:b"};
  const auto rate = RunFio(job, dir.path());
  if (testing::AsStatus(rate).code() == StatusCode::kUnsupported)
    GTEST_SKIP() << "fio is not installed";
  EXPECT_STATUS(rate, kIoError);
  EXPECT_NE(rate.error().message().find("a\\:b"), std::string::npos) << rate.error().message();
}

}  // namespace
}  // namespace rhizome
