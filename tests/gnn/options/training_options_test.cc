#include "gnn/options/training_options.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "gnn/options/infer_fields.h"
#include "gnn/options/train_fields.h"

// Tests of the tables of options: what is checked, what a checkpoint describes, what ranks compare.

namespace rhizome {
namespace {

using ::testing::HasSubstr;

TEST(OptionTableTest, NamesAreUniqueAndHelpIsASentenceWithoutPeriod) {
  std::set<std::string> fields, flags;
  EachTrainRow([&](const Option& row, const auto&) {
    SCOPED_TRACE(row.field);
    EXPECT_TRUE(fields.insert(std::string(row.field)).second);
    EXPECT_TRUE(flags.insert(std::string(row.flag)).second);
    EXPECT_FALSE(row.help.empty());
    EXPECT_NE(row.help.back(), '.');
    EXPECT_EQ(row.flag.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), row.flag.npos);
  });
  EXPECT_GT(fields.size(), 50u);
}

TEST(OptionTableTest, LeafIsTheLastPart) {
  EXPECT_EQ(LeafOf("learning.loss.class_weights"), "class_weights");
  EXPECT_EQ(LeafOf("seed"), "seed");
}

TEST(TrainingOptionsTest, DefaultsAreInRangeAndDescribeNothing) {
  EXPECT_TRUE(CheckRanges({}).ok());
  EXPECT_TRUE(CheckRanges({.mode = FullGraphOptions()}).ok());
  EXPECT_EQ(DescribeModelOptions({}).dump(), "{}");
}

TEST(TrainingOptionsTest, ANumberOutOfRangeIsNamed) {
  const auto refusal = [](auto change) {
    TrainOptions options;
    change(options);
    const Status status = CheckRanges(options);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    return status.message();
  };
  EXPECT_EQ(refusal([](TrainOptions& o) { o.learning.learning_rate = 0; }),
            "`learning.learning_rate` is 0; it must be above 0");
  EXPECT_EQ(refusal([](TrainOptions& o) { o.learning.weight_decay = -1; }),
            "`learning.weight_decay` is -1; it must be at least 0");
  EXPECT_THAT(refusal([](TrainOptions& o) { o.learning.weight_decay = std::nan(""); }),
              HasSubstr("`learning.weight_decay` is nan"));
  EXPECT_THAT(refusal([](TrainOptions& o) {
                o.learning.learning_rate = -std::numeric_limits<double>::infinity();
              }),
              HasSubstr("is -inf"));
  EXPECT_THAT(refusal([](TrainOptions& o) { o.learning.loss.label_smoothing = 1; }),
              HasSubstr("`learning.loss.label_smoothing` is 1; it must be in [0, 0.99]"));
  EXPECT_THAT(refusal([](TrainOptions& o) { o.learning.epochs = 0; }),
              HasSubstr("`learning.epochs` is 0"));
  EXPECT_THAT(refusal([](TrainOptions& o) { o.learning.seeds = 0; }),
              HasSubstr("`learning.seeds` is 0"));
  EXPECT_THAT(refusal([](TrainOptions& o) { o.learning.eval_every = 0; }),
              HasSubstr("`learning.eval_every` is 0"));
  EXPECT_THAT(refusal([](TrainOptions& o) { o.minibatch()->batch_size = 0; }),
              HasSubstr("`minibatch.batch_size` is 0"));
  EXPECT_THAT(refusal([](TrainOptions& o) { o.mode = FullGraphOptions{.checkpoint_seconds = -1}; }),
              HasSubstr("`full_graph.checkpoint_seconds` is -1"));
}

/// Checkpoints of older versions have these names, and the omission of defaults.
TEST(TrainingOptionsTest, DescriptionHasTheNamesOfOlderVersions) {
  TrainOptions options;
  options.learning.loss.label_smoothing = 0.1;
  options.learning.learning_rate = 0.5;
  options.learning.weight_decay = 0.25;
  options.learning.optimizer.decay_first_layer_only = true;
  options.learning.optimizer.clip_norm = 2;
  options.learning.seed = 9;
  options.learning.eval_every = 3;
  options.minibatch()->batch_size = 64;
  options.minibatch()->fanouts = {5, -1};
  options.minibatch()->eval_fanouts = {-1, -1};
  options.minibatch()->steps = 7;
  // Not part of it: what does not change the weights, and what is described by what it refers to.
  options.resources.threads = 4;
  options.learning.patience = 3;
  options.minibatch()->feed.superbatch = 5;
  options.data.features = "other";
  EXPECT_EQ(DescribeModelOptions(options).dump(),
            R"({"batch_size":64,"clip_norm":2.0,"decay_first_layer_only":true,)"
            R"("eval_every":3,"eval_fanouts":[-1,-1],"fanouts":[5,-1],"label_smoothing":0.1,)"
            R"("learning_rate":0.5,"seed":9,"steps":7,"weight_decay":0.25})");
}

TEST(TrainingOptionsTest, RanksCompareWhatMustBeEqual) {
  TrainOptions options;
  options.minibatch()->ranks.emplace();
  options.minibatch()->ranks->prefetch = {.policy = Prefetch::kScored, .remote_bytes = 4096};
  options.job.resume = true;
  std::set<std::string> facts;
  for (const RankFact& fact : FactsOfRanks(options)) facts.insert(fact.name + " " + fact.value);
  for (const char* const fact :
       {"`learning.epochs` 10", "`learning.patience` 0", "`learning.min_delta` 0",
        "`learning.seeds` 1", "`learning.test` true", "`resources.threads` 1",
        "`minibatch.feed.superbatch` 0", "`ranks.prefetch.policy` scored",
        "`ranks.prefetch.remote_bytes` 4096", "`ranks.prefetch.gamma` 0.995",
        "`job.checkpoint_every` 0", "`job.resume` true"})
    EXPECT_EQ(facts.count(fact), 1u) << fact;
}

TEST(TrainingOptionsTest, FanoutsAndTransportFollowTheMode) {
  TrainOptions options;
  options.model.layers = 3;
  EXPECT_EQ(FanoutsOf(options), (std::vector<std::int64_t>{10, 10}));
  EXPECT_EQ(TransportOf(options), nullptr);
  options.minibatch()->ranks.emplace();
  EXPECT_EQ(TransportOf(options), nullptr);
  options.mode = FullGraphOptions();
  EXPECT_EQ(FanoutsOf(options), (std::vector<std::int64_t>(3, kAllNeighbors)));
  EXPECT_EQ(TransportOf(options), nullptr);
}

}  // namespace
}  // namespace rhizome
