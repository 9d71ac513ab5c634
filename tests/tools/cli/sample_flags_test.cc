#include "tools/cli/sample_flags.h"

#include <gmock/gmock.h>

#include "index/base/edge_list.h"
#include "index/generation/graph_builder.h"
#include "rhizome/sampler.h"
#include "testing/test_store.h"

namespace rhizome {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Fanouts = std::vector<std::vector<std::int64_t>>;

/// A graph of three edge types, with a time and an amount for each edge.
class SampleFlagsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphInput input;
    input.vertex_count = 4;
    input.vertex_type_names = {"v"};
    input.edge_type_names = {"likes", "knows", "is.a"};
    input.edges.src = {0, 1, 2};
    input.edges.dst = {1, 2, 3};
    input.edges.type = {0, 1, 2};
    input.edges.attributes = {EdgeAttribute("time"), EdgeAttribute("amount")};
    for (const std::int64_t time : {10, 20, 30}) input.edges.attributes[0].Add(time);
    for (const float amount : {0.5F, 1.5F, 2.5F}) input.edges.attributes[1].Add(amount);
    ASSERT_OK(testing::BuildStore(folder_ / "g.rz", std::move(input), {}));
    auto open = testing::OpenStoreGraph(folder_ / "g.rz");
    ASSERT_OK(open);
    open_ = *std::move(open);
  }

  /// Parses arguments; returns nothing if the parser itself refuses them.
  std::optional<Result<SamplerOptions>> Parse(std::vector<std::string> arguments) {
    SampleFlags flags;
    CLI::App app;
    AddSampleFlags(app, flags);
    std::reverse(arguments.begin(), arguments.end());  // CLI11 expects them in reverse order
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError&) {
      return std::nullopt;
    }
    return ResolveSampleFlags(flags, *open_.graph);
  }
  SamplerOptions Options(std::vector<std::string> arguments) {
    auto options = Parse(std::move(arguments));
    EXPECT_TRUE(options.has_value());
    if (!options) return {};
    EXPECT_OK(*options);
    return *options ? **options : SamplerOptions();
  }
  Fanouts Typed(const std::string& fanout) { return Options({"--fanout", fanout}).typed_fanouts; }

  const testing::TempDir folder_;
  testing::OpenGraph open_;
};

TEST_F(SampleFlagsTest, FanoutsAreNumbersOrAll) {
  const SamplerOptions options = Options({"--fanout", "10,all,3"});
  EXPECT_THAT(options.fanouts, ElementsAre(10, kAllNeighbors, 3));
  EXPECT_TRUE(options.typed_fanouts.empty());
  EXPECT_EQ(options.direction, Direction::kIn);
  EXPECT_EQ(options.frontier, Frontier::kOnce);
  EXPECT_FALSE(options.replace || options.weighted || options.disjoint);
  EXPECT_EQ(options.times, nullptr);
}

TEST_F(SampleFlagsTest, FanoutsByTypeAreResolvedHopByHop) {
  EXPECT_EQ(Typed("likes=5,knows=2"), (Fanouts{{5, 2, 0}})) << "a type not named is not walked";
  EXPECT_EQ(Typed("likes=5,*=2;knows=all"), (Fanouts{{5, 2, 2}, {0, kAllNeighbors, 0}}));
  EXPECT_EQ(Typed("*=1,knows=7"), (Fanouts{{1, 7, 1}})) << "the order does not matter";
  EXPECT_EQ(Typed("is.a=4"), (Fanouts{{0, 0, 4}}));
  EXPECT_TRUE(Options({"--fanout", "likes=5"}).fanouts.empty());
}

TEST_F(SampleFlagsTest, MalformedFanoutsAreRefusedByTheParser) {
  for (const char* fanout : {"", "0", "-1", "x", "5,", "5,,5", "likes=", "=5", "likes=0",
                             "likes=5,2", "likes=5;", ";likes=5", "likes=5;;likes=5", "likes=x"}) {
    EXPECT_FALSE(Parse({"--fanout", fanout}).has_value()) << fanout;
  }
  EXPECT_FALSE(Parse({"--fanout", "5", "--direction", "both"}).has_value());
  EXPECT_FALSE(Parse({"--fanout", "5", "--frontier", "never"}).has_value());
  EXPECT_FALSE(Parse({"--fanout", "5", "--time-pick", "first"}).has_value());
}

TEST_F(SampleFlagsTest, TypesThatTheGraphLacksAreNamed) {
  const auto refused = Parse({"--fanout", "hates=5"});
  ASSERT_TRUE(refused.has_value());
  EXPECT_STATUS(*refused, kNotFound);
  EXPECT_THAT(refused->error().message(), HasSubstr("'hates'"));
  EXPECT_THAT(refused->error().message(), HasSubstr("likes, knows, is.a"));
  EXPECT_STATUS(*Parse({"--fanout", "likes=1,likes=2"}), kInvalidArgument);
  EXPECT_STATUS(*Parse({"--fanout", "5", "--meta-path", "hates"}), kNotFound);
}

TEST_F(SampleFlagsTest, MetaPathsNameTypes) {
  const SamplerOptions options = Options({"--fanout", "5,5", "--meta-path", "knows,likes"});
  EXPECT_THAT(options.meta_path, ElementsAre(1, 0));
}

TEST_F(SampleFlagsTest, TheOtherFlagsAreTaken) {
  const SamplerOptions options =
      Options({"--fanout", "5", "--direction", "out", "--replace", "--weighted", "--disjoint",
               "--frontier", "again", "--seed", "99"});
  EXPECT_EQ(options.direction, Direction::kOut);
  EXPECT_EQ(options.frontier, Frontier::kAgain);
  EXPECT_TRUE(options.replace && options.weighted && options.disjoint);
  EXPECT_EQ(options.seed, 99U);
}

TEST_F(SampleFlagsTest, TimesComeFromAnAttributeAndMakeSamplesDisjoint) {
  const SamplerOptions options =
      Options({"--fanout", "5", "--time", "time", "--time-pick", "last"});
  EXPECT_TRUE(options.disjoint);
  EXPECT_EQ(options.temporal_pick, TemporalPick::kLast);
  ASSERT_NE(options.times, nullptr);
  EXPECT_THAT(options.times->OfPartition(0), ElementsAre(10, 20, 30));
  EXPECT_STATUS(*Parse({"--fanout", "5", "--time", "nothing"}), kNotFound);
  EXPECT_STATUS(*Parse({"--fanout", "5", "--time", "amount"}), kInvalidArgument);
  // A sampler accepts what was parsed: in-edges of a store with attributes have ids.
  EXPECT_OK(Sampler::Create(*open_.graph, options));
}

}  // namespace
}  // namespace rhizome
