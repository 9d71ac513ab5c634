#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gnn/ranks/ranks_testing.h"
#include "rhizome/task_metrics.h"
#include "rhizome/train_options.h"
#include "rhizome/transport.h"

// Tests of evaluation over ranks (threads here): all ranks compute the same metrics for any number
// of ranks, and an interrupt, a lost rank or a damaged chunk during evaluation ends all ranks with
// an error.

namespace rhizome {
namespace {

using testing::TrainedRanks;
using testing::TrainThreads;

using ::testing::HasSubstr;

/// Returns the bits of the metrics of all sets.
std::vector<std::uint64_t> BitsOf(const TaskMetrics& metrics) {
  std::vector<std::uint64_t> bits;
  for (const auto* const set : {&metrics.train, &metrics.valid, &metrics.test}) {
    if (!*set) continue;
    bits.push_back((*set)->vertices);
    for (const MetricValue& value : (*set)->values) {
      const double number = value.value.value_or(-1);
      std::uint64_t word = 0;
      std::memcpy(&word, &number, sizeof word);
      bits.push_back(word);
    }
  }
  return bits;
}

class MeasureRanksTest : public testing::RanksTest {
 protected:
  static TrainOptions Options() {
    TrainOptions options = RanksTest::Options();
    options.learning.epochs = 1;
    return options;
  }
};

TEST_F(MeasureRanksTest, AllRanksComeToTheSameMetricsWhateverTheirNumber) {
  for (const testing::NetworkCase& network : testing::UntypedNetworks()) {
    TrainOptions options = Options();
    options.model = network.spec;
    options.minibatch()->steps = 1;
    std::vector<std::uint64_t> bits;
    for (const std::uint32_t ranks : {1U, 3U}) {
      SCOPED_TRACE(network.name + ", " + std::to_string(ranks) + " ranks");
      const TrainedRanks trained = TrainThreads(options, ranks);
      for (const auto& report : trained.reports) {
        ASSERT_OK(report);
        if (bits.empty()) bits = BitsOf(report->metrics);
        EXPECT_GT(report->metrics.test->vertices, 0u);
        EXPECT_EQ(BitsOf(report->metrics), bits);
      }
    }
  }
}

/// Three layers, so that each of the two scratch arrays is used again, with neighbour lists on disk
/// and a cache for two chunks.
TEST_F(MeasureRanksTest, LayersGoAroundWithListsOnDiskAndLittleMemory) {
  TrainOptions options = Options();
  options.model.layers = 3;
  options.minibatch()->fanouts = {3, 3, 3};
  std::vector<std::uint64_t> bits;
  for (const std::uint32_t ranks : {1U, 4U}) {
    options.data.topology = ranks == 1 ? TopologyPlace::kMemory : TopologyPlace::kDirect;
    options.minibatch()->feed.cache_bytes = ranks == 1 ? 1 << 20 : 64 * 100;
    const TrainedRanks trained = TrainThreads(options, ranks);
    for (const auto& report : trained.reports) {
      ASSERT_OK(report);
      if (bits.empty()) bits = BitsOf(report->metrics);
      EXPECT_EQ(BitsOf(report->metrics), bits);
    }
  }
}

/// A rank that is cancelled during evaluation ends all ranks. A resumed run evaluates again but
/// does not train again.
TEST_F(MeasureRanksTest, AnInterruptEndsAllAndOnlyTheMeasuringIsDoneAgain) {
  TrainOptions options = Options();
  options.job.checkpoint_every = 1000;
  const TrainedRanks undisturbed = TrainThreads(options, 2);
  ASSERT_OK(undisturbed.reports[0]);
  JobControl* asked = nullptr;
  JobControl control([&](const JobControl::Progress& progress) {
    if (progress.phase.starts_with("layer")) asked->Cancel();
  });
  asked = &control;
  for (const auto& report : TrainThreads(options, 3, &control).reports) {
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code(), StatusCode::kInterrupted) << report.error().ToString();
  }
  options.job.resume = true;
  const TrainedRanks resumed = TrainThreads(options, 4);
  for (const auto& report : resumed.reports) {
    ASSERT_OK(report);
    EXPECT_EQ(report->resumed_minibatches, report->minibatches * options.learning.epochs);
    EXPECT_EQ(BitsOf(report->metrics), BitsOf(undisturbed.reports[0]->metrics));
  }
}

/// A rank is lost, or sends a damaged message, during evaluation. The other ranks return an error
/// that names it.
TEST_F(MeasureRanksTest, ALostRankAndAGarbledChunkEndAll) {
  std::mt19937_64 random(testing::TestSeed());
  TrainOptions options = Options();
  options.model.layers = 3;
  options.minibatch()->fanouts = {3, 3, 3};
  const std::uint64_t all = TrainThreads(options, 3).messages[1];
  options.learning.test = false;
  const std::uint64_t before = TrainThreads(options, 3).messages[1];
  options.learning.test = true;
  ASSERT_GT(all, before + 6);
  for (const auto kind :
       {LocalFault::Kind::kDie, LocalFault::Kind::kSilence, LocalFault::Kind::kFlip}) {
    const std::uint64_t at = before + random() % (all - before - 2);
    SCOPED_TRACE(::testing::Message() << "message " << at << " of " << before << " to " << all);
    const TrainedRanks trained =
        TrainThreads(options, 3, nullptr,
                     {.peer_timeout_seconds = 0.5 * testing::Patience(),
                      .faults = {{.kind = kind, .rank = 1, .at_message = at}}});
    for (std::size_t r = 0; r < 3; ++r) {
      ASSERT_FALSE(trained.reports[r].has_value());
      if (r == 1) continue;
      const Status& error = trained.reports[r].error();
      EXPECT_EQ(error.code(),
                kind == LocalFault::Kind::kFlip ? StatusCode::kCorruption : StatusCode::kIoError)
          << error.ToString();
      EXPECT_THAT(error.message(), HasSubstr("rank"));
    }
  }
}

/// A rank in the middle of a layer sends no messages. It still stops when another rank is lost.
TEST_F(MeasureRanksTest, ALayerEndsWhereAnotherRankIsLost) {
  TrainOptions options = Options();
  options.learning.test = false;
  const std::uint64_t before = TrainThreads(options, 2).messages[0];
  options.learning.test = true;
  int of_layers = 0;
  const JobControl counting([&](const JobControl::Progress& progress) {
    if (progress.phase.starts_with("layer")) ++of_layers;
  });
  TrainThreads(options, 2, &counting);
  int after = -1;  // number of layer progress reports after the first
  const JobControl waiting([&](const JobControl::Progress& progress) {
    if (!progress.phase.starts_with("layer") || ++after > 0) return;
    // Wait until the loss of the other rank is detected.
    std::this_thread::sleep_for(std::chrono::seconds(1 + testing::Patience()));
  });
  // Tries again where rank 0 died before rank 1 began a layer, as happens on a busy machine.
  for (int tries = 0; after < 0 && tries < 20; ++tries) {
    const TrainedRanks trained = TrainThreads(
        options, 2, &waiting,
        {.peer_timeout_seconds = 0.3 * testing::Patience(),
         .faults = {{.kind = LocalFault::Kind::kDie, .rank = 0, .at_message = before}}});
    ASSERT_FALSE(trained.reports[1].has_value());
    EXPECT_THAT(trained.reports[1].error().message(), HasSubstr("rank 0"));
  }
  EXPECT_GT(of_layers, 1);
  EXPECT_EQ(after, 0);
}

}  // namespace
}  // namespace rhizome
