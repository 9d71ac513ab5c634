#include "gnn/ranks/train_ranks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cache/job/safetensors.h"
#include "gnn/ranks/ranks_testing.h"
#include "rhizome/policy.h"
#include "rhizome/transport.h"

// Tests of training over ranks (threads here): what is learnt does not depend on the number of
// ranks, the remote cache policy or where neighbour lists are; a stopped training resumes with any
// number of ranks; slow ranks are waited for; lost ranks and ranks with different options are
// reported.

namespace rhizome {
namespace {

using testing::SmallTraining;
using testing::TempDir;

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Returns the report of each rank of a training whose ranks are threads.
std::vector<Result<TrainReport>> TrainAsRanks(const TrainOptions& options, std::uint32_t ranks,
                                              const JobControl* control_of_last = nullptr,
                                              const LocalRanksOptions& network = {},
                                              const testing::ChangeOptions& change_last = {}) {
  return testing::TrainThreads(options, ranks, control_of_last, network, change_last).reports;
}

std::string HashOf(const Path& model) {
  const auto loaded = LoadSafetensors(FileSystem::Posix(), model);
  return loaded ? ToHex(loaded->hash) : loaded.error().ToString();
}

class TrainRanksTest : public testing::RanksTest {};

TEST_F(TrainRanksTest, WhatIsLearntDoesNotDependOnTheRanks) {
  TrainOptions options = Options();
  options.learning.epochs = 6;
  std::string hash;
  std::optional<TrainReport> first;
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 8U}) {
    const auto reports = TrainAsRanks(options, ranks);
    for (const auto& report : reports) ASSERT_OK(report);
    if (!first) {
      first = *reports[0];
      hash = HashOf(options.job.out);
      EXPECT_GE(*first->test_accuracy, 0.45);  // of 4 classes
    }
    EXPECT_EQ(HashOf(options.job.out), hash) << ranks;
    for (const auto& report : reports) {
      EXPECT_EQ(report->test_accuracy, first->test_accuracy);
      ASSERT_EQ(report->epochs.size(), first->epochs.size());
      for (std::size_t e = 0; e < first->epochs.size(); ++e) {
        EXPECT_EQ(report->epochs[e].loss, first->epochs[e].loss);
        EXPECT_EQ(report->epochs[e].valid_loss, first->epochs[e].valid_loss);
        EXPECT_EQ(report->epochs[e].valid_metric, first->epochs[e].valid_metric);
      }
    }
  }
}

/// Neither the remote cache policy nor the place of neighbour lists changes what is learnt.
TEST_F(TrainRanksTest, PoliciesAndListsOnDiskLearnTheSame) {
  TrainOptions options = Options();
  options.learning.epochs = 1;
  ASSERT_OK(TrainAsRanks(options, 1)[0]);
  const std::string hash = HashOf(options.job.out);
  for (const Prefetch policy : AllPrefetches()) {
    options.minibatch()->ranks->prefetch.policy = policy;
    options.minibatch()->feed.superbatch = policy == Prefetch::kEpoch ? 0 : 3;
    options.minibatch()->feed.overlap = policy == Prefetch::kNone ? Overlap::kNone : Overlap::kAll;
    ASSERT_OK(TrainAsRanks(options, 3)[0]);
    EXPECT_EQ(HashOf(options.job.out), hash) << PrefetchName(policy);
  }
  options.minibatch()->ranks->prefetch = {};
  options.minibatch()->feed.superbatch = 3;
  options.minibatch()->feed.prior = Prior::kNone;
  options.data.topology = TopologyPlace::kDirect;
  ASSERT_OK(TrainAsRanks(options, 2)[0]);
  EXPECT_EQ(HashOf(options.job.out), hash);
}

/// With one home, a training over ranks has the same minibatches as a training without ranks, and
/// the same steps up to rounding.
TEST_F(TrainRanksTest, OneHomeLearnsWhatATrainingAloneDoes) {
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "s", {.partitions = 1}));
  TrainOptions options = SmallTraining(folder / "s");
  options.model.dropout = 0.2;
  for (const bool weighted : {false, true}) {
    if (weighted) options.learning.loss.class_weights = "balanced";
    const Result<TrainReport> alone = rhizome_gnn_entry_v1()->Train(options, JobControl());
    ASSERT_OK(alone);
    const Result<TrainReport> ranked = TrainAsRanks(options, 1)[0];
    ASSERT_OK(ranked);
    for (std::size_t e = 0; e < options.learning.epochs; ++e) {
      EXPECT_NEAR(ranked->epochs[e].loss, alone->epochs[e].loss, 1e-4);
      EXPECT_NEAR(*ranked->epochs[e].valid_loss, *alone->epochs[e].valid_loss, 1e-4);
    }
  }
}

/// A rank that is asked to stop stops all ranks after the same step, and the training resumes from
/// there with any number of ranks.
TEST_F(TrainRanksTest, StopsTogetherAndGoesOnWithOtherRanks) {
  std::mt19937_64 random(testing::TestSeed());
  TrainOptions options = Options();
  options.learning.epochs = 3;
  ASSERT_OK(TrainAsRanks(options, 2)[0]);
  const std::string undisturbed = HashOf(options.job.out);
  options.job.checkpoint_every = 4;
  for (const auto& [before, after] : {std::pair{4U, 2U}, {2U, 4U}, {3U, 1U}}) {
    std::filesystem::remove(options.job.out);
    options.job.resume = false;
    const std::uint64_t at = 1 + random() % 20;
    JobControl* asked = nullptr;
    JobControl control([&](const JobControl::Progress& progress) {
      if (progress.phase == "train" && progress.done == at) asked->Cancel();
    });
    asked = &control;
    const auto stopped = TrainAsRanks(options, before, &control);
    for (const auto& report : stopped) {
      ASSERT_FALSE(report.has_value());
      EXPECT_EQ(report.error().code(), StatusCode::kInterrupted) << report.error().ToString();
    }
    options.job.resume = true;
    const auto resumed = TrainAsRanks(options, after);
    for (const auto& report : resumed) ASSERT_OK(report);
    EXPECT_EQ(resumed[0]->resumed_minibatches, at + 1);
    EXPECT_EQ(HashOf(options.job.out), undisturbed) << before << " ranks, then " << after;
  }
}

/// The same batch-norm statistics and dropout are used in a step for any number of ranks.
TEST_F(TrainRanksTest, NormsDropoutAndOtherTasksDoNotDependOnTheRanks) {
  TrainOptions options = Options();
  options.learning.epochs = 2;
  options.model.dropout = 0.3;
  options.learning.train_metrics = true;
  options.learning.optimizer.clip_norm = 1;
  for (const auto& [kind, norm] : {std::pair{"gcn", "batch"}, {"gin", "batch"}, {"gat", "layer"}}) {
    options.model.kind = kind;
    options.model.options = {{"norm", norm}};
    std::string hash;
    for (const std::uint32_t ranks : {1U, 3U}) {
      const auto reports = TrainAsRanks(options, ranks);
      ASSERT_OK(reports[0]);
      EXPECT_FALSE(reports[0]->epochs[0].train_metrics.empty());
      if (hash.empty()) hash = HashOf(options.job.out);
      EXPECT_EQ(HashOf(options.job.out), hash) << kind << ", " << ranks << " ranks";
    }
  }
}

// Homes may have minibatches of one vertex, which a batch norm accepts, and the result does not
// depend on the number of ranks.
TEST_F(TrainRanksTest, MinibatchesOfOneVertexAreTaken) {
  TrainOptions options = Options();
  options.learning.epochs = 1;
  options.minibatch()->batch_size = 2;
  options.minibatch()->steps = 30;
  options.model.kind = "gin";
  std::string hash;
  for (const std::uint32_t ranks : {1U, 3U}) {
    const auto reports = TrainAsRanks(options, ranks);
    ASSERT_OK(reports[0]);
    if (hash.empty()) hash = HashOf(options.job.out);
    EXPECT_EQ(HashOf(options.job.out), hash) << ranks << " ranks";
  }
}

TEST_F(TrainRanksTest, FeaturesThatAreNoNumbersAreNamed) {
  const TempDir folder;
  testing::PlantedOptions planted{.partitions = testing::kHomes};
  testing::PlantedGraph graph = testing::MakePlanted(planted);
  graph.features[70 * planted.dim] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_OK(testing::WriteStore(folder / "s", planted, graph));
  TrainOptions options = Options();
  options.store = folder / "s";
  const auto reports = TrainAsRanks(options, 2);
  EXPECT_STATUS(reports[0], kInvalidArgument);
  EXPECT_NE(reports[0].error().message().find("vertex 70"), std::string::npos)
      << reports[0].error().message();
}

// The other ranks wait for a rank whose step takes longer than the peer timeout, because its
// transport keeps sending that it is alive.
TEST_F(TrainRanksTest, ASlowRankIsWaitedForAndChangesNothing) {
  TrainOptions options = Options();
  options.learning.epochs = 1;
  options.minibatch()->steps = 2;
  options.learning.test = false;
  ASSERT_OK(TrainAsRanks(options, 3)[0]);
  const std::string hash = HashOf(options.job.out);
  const double timeout = 1.5 * testing::Patience();
  std::uint64_t steps = 0;
  const JobControl slow([&](const JobControl::Progress& progress) {
    if (progress.phase != "train") return;
    if (++steps == 1) std::this_thread::sleep_for(std::chrono::duration<double>(timeout * 1.5));
  });
  for (const auto& report : TrainAsRanks(options, 3, &slow, {.peer_timeout_seconds = timeout}))
    ASSERT_OK(report);
  EXPECT_GE(steps, 2u);
  EXPECT_EQ(HashOf(options.job.out), hash);
}

TEST_F(TrainRanksTest, RefusesMoreRanksThanHomes) {
  const auto too_many = TrainAsRanks(Options(), testing::kHomes + 1);
  for (const auto& report : too_many) {
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(report.error().message(), HasSubstr("9 ranks"));
  }
}

TEST_F(TrainRanksTest, RanksThatDisagreeAreRefusedAndBothSidesAreNamed) {
  TrainOptions options = Options();
  options.minibatch()->ranks->prefetch.policy = Prefetch::kScored;
  const std::pair<std::string, testing::ChangeOptions> changes[] = {
      {"`learning.epochs`", [](TrainOptions& o) { ++o.learning.epochs; }},
      {"`minibatch.feed.superbatch`", [](TrainOptions& o) { ++o.minibatch()->feed.superbatch; }},
      {"`ranks.prefetch.policy`",
       [](TrainOptions& o) { o.minibatch()->ranks->prefetch.policy = Prefetch::kLru; }},
      {"`ranks.prefetch.remote_bytes`",
       [](TrainOptions& o) { o.minibatch()->ranks->prefetch.remote_bytes = 4096; }},
      {"`ranks.prefetch.gamma`",
       [](TrainOptions& o) { o.minibatch()->ranks->prefetch.gamma = 0.5; }},
      {"the job", [](TrainOptions& o) { o.learning.learning_rate *= 2; }},
  };
  for (const auto& change : changes) {
    SCOPED_TRACE(change.first);
    for (const auto& report : TrainAsRanks(options, 2, nullptr, {}, change.second)) {
      ASSERT_FALSE(report.has_value());
      EXPECT_EQ(report.error().code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(report.error().message(),
                  AllOf(HasSubstr(change.first), HasSubstr("rank 0"), HasSubstr("rank 1")));
    }
  }
}

/// A rank that is lost in the middle ends the training of the others. Their errors name it and say
/// how to resume; the remaining ranks then finish with the same bits.
TEST_F(TrainRanksTest, ALostRankEndsAllAndTheRestGoOn) {
  std::mt19937_64 random(testing::TestSeed());
  TrainOptions options = Options();
  options.learning.epochs = 3;
  ASSERT_OK(TrainAsRanks(options, 2)[0]);
  const std::string undisturbed = HashOf(options.job.out);
  options.job.checkpoint_every = 3;
  for (const auto kind : {LocalFault::Kind::kDie, LocalFault::Kind::kSilence}) {
    options.job.resume = false;
    const LocalRanksOptions network{
        .peer_timeout_seconds = 0.5 * testing::Patience(),
        .faults = {{.kind = kind, .rank = 2, .at_message = 120 + random() % 60}}};
    const auto lost = TrainAsRanks(options, 4, nullptr, network);
    for (std::size_t r = 0; r < 4; ++r) {
      ASSERT_FALSE(lost[r].has_value());
      if (r == 2) continue;
      EXPECT_EQ(lost[r].error().code(), StatusCode::kIoError) << lost[r].error().ToString();
      EXPECT_THAT(lost[r].error().message(), HasSubstr("rank 2"));
      EXPECT_THAT(lost[r].error().message(), HasSubstr("`resume` continues after step"));
    }
    options.job.resume = true;
    const auto resumed = TrainAsRanks(options, 3);
    ASSERT_OK(resumed[0]);
    EXPECT_GT(resumed[0]->resumed_minibatches, 0u);
    EXPECT_EQ(HashOf(options.job.out), undisturbed);
  }
}

}  // namespace
}  // namespace rhizome
