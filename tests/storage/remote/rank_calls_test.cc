#include "storage/remote/rank_calls.h"

#include <array>
#include <atomic>
#include <random>
#include <string>

#include "rhizome/transport.h"
#include "storage/base/little_endian.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using Bytes = std::vector<std::byte>;

/// Returns the contribution of a rank. Each rank contributes a different length.
Bytes GivenBy(std::uint32_t rank) { return Bytes(rank * 1000, static_cast<std::byte>(rank)); }

class RankCallsTest : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, RankCallsTest, ::testing::Values(1, 2, 3, 4, 8));

TEST_P(RankCallsTest, AllRanksGetWhatTheFirstGives) {
  const auto ranks = LocalRanks::Create(GetParam());
  ASSERT_OK(ranks);
  std::atomic<std::uint32_t> right = 0;
  ASSERT_OK((*ranks)->Run([&](Transport& transport) -> Status {
    for (const std::size_t size : {0, 1, 100'000}) {
      const Bytes own(transport.rank() == 0 ? size : 3, std::byte{5});
      RHIZOME_ASSIGN_OR_RETURN(const Bytes all, Broadcast(transport, own));
      if (all == Bytes(size, std::byte{5})) ++right;
    }
    return Status::Ok();
  }));
  EXPECT_EQ(right, 3 * GetParam());
}

TEST_P(RankCallsTest, TheFirstRankGetsWhatAllGiveInTheirOrder) {
  const auto ranks = LocalRanks::Create(GetParam());
  ASSERT_OK(ranks);
  std::vector<Bytes> gathered;
  std::atomic<std::uint32_t> empty = 0;
  ASSERT_OK((*ranks)->Run([&](Transport& transport) -> Status {
    RHIZOME_ASSIGN_OR_RETURN(auto all, GatherAtFirst(transport, GivenBy(transport.rank())));
    if (all.empty()) ++empty;
    if (transport.rank() == 0) gathered = std::move(all);
    return Status::Ok();
  }));
  ASSERT_EQ(gathered.size(), GetParam());
  for (std::uint32_t rank = 0; rank < GetParam(); ++rank) EXPECT_EQ(gathered[rank], GivenBy(rank));
  EXPECT_EQ(empty, GetParam() - 1);
}

TEST_P(RankCallsTest, NobodyPassesABarrierBeforeAllHaveCome) {
  const auto ranks = LocalRanks::Create(GetParam());
  ASSERT_OK(ranks);
  std::atomic<std::uint32_t> came = 0, early = 0;
  ASSERT_OK((*ranks)->Run([&](Transport& transport) -> Status {
    for (std::uint32_t round = 1; round <= 20; ++round) {
      ++came;
      RHIZOME_RETURN_IF_ERROR(Barrier(transport));
      if (came < round * transport.ranks()) ++early;
    }
    return Status::Ok();
  }));
  EXPECT_EQ(early, 0U);
}

TEST_P(RankCallsTest, RanksThatHaveTheSameAgree) {
  const auto ranks = LocalRanks::Create(GetParam());
  ASSERT_OK(ranks);
  EXPECT_OK((*ranks)->Run([](Transport& transport) {
    return Agree(transport, std::array<RankFact, 2>{{{"store", "a b"}, {"seed", ""}}});
  }));
}

// For any differing fact on any rank, all ranks return the same message.
TEST_P(RankCallsTest, ADifferenceIsNamedOnAllRanksWithBothValues) {
  std::mt19937_64 random(testing::TestSeed());
  if (GetParam() == 1) return;
  for (int i = 0; i < 20; ++i) {
    const auto odd = static_cast<std::uint32_t>(1 + random() % (GetParam() - 1));
    const std::size_t fact = random() % 3;
    const auto ranks = LocalRanks::Create(GetParam());
    ASSERT_OK(ranks);
    std::vector<Status> said(GetParam());
    static_cast<void>((*ranks)->Run([&](Transport& transport) {
      std::array<RankFact, 3> facts = {
          {{"the store", "x"}, {"generation", "16"}, {"--batch-size", "100"}}};
      if (transport.rank() == odd) facts[fact].value = "17";
      said[transport.rank()] = Agree(transport, facts);
      return Status::Ok();
    }));
    const std::array<std::string, 3> names = {"the store x", "generation 16", "--batch-size 100"};
    const std::array<std::string, 3> odds = {"the store 17", "generation 17", "--batch-size 17"};
    const std::string number = std::to_string(odd);
    for (const Status& status : said) {
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message(), "rank " + number + " (thread " + number + ") has " + odds[fact] +
                                      ", but rank 0 (thread 0) has " + names[fact] +
                                      ": all ranks of a job must have the same");
    }
  }
}

// Numbers are compared first, so that the message names the number that differs.
TEST(RankCallsTest, CopiesThatHaveDivergedAreNamed) {
  for (const bool numbers_differ : {true, false}) {
    const auto ranks = LocalRanks::Create(2);
    ASSERT_OK(ranks);
    const Status status = (*ranks)->Run([&](Transport& transport) {
      const auto rank = static_cast<std::byte>(transport.rank());
      StorePoint point;
      point.sequence = 5 + (numbers_differ ? transport.rank() : 0);
      return AgreeOnState(transport, point, {.files = {std::byte{1}}, .commits = {rank}});
    });
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    const std::string& said = status.message();
    EXPECT_EQ(said.find("diverged") == said.npos, numbers_differ) << said;
    EXPECT_EQ(said.find("changes up to 6") == said.npos, !numbers_differ) << said;
  }
}

TEST(RankCallsTest, AFactThatIsMissingIsADifference) {
  for (const bool first_has_more : {true, false}) {
    const auto ranks = LocalRanks::Create(2);
    ASSERT_OK(ranks);
    const Status status = (*ranks)->Run([&](Transport& transport) {
      std::vector<RankFact> facts = {{"seed", "1"}};
      if ((transport.rank() == 0) == first_has_more) facts.push_back({"model", "gat"});
      return Agree(transport, facts);
    });
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("has model gat"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("has nothing more to compare"), std::string::npos);
  }
}

TEST(RankCallsTest, ALengthThatCannotBeIsRefused) {
  const auto ranks = LocalRanks::Create(2);
  ASSERT_OK(ranks);
  std::array<std::byte, 8> length = {};
  StoreLittle(length.data(), kMaxRankBytes + 1);
  ASSERT_OK((**ranks)[0].Exchange(1, length, {}));
  const auto broadcast = Broadcast((**ranks)[1], {});
  ASSERT_FALSE(broadcast);
  EXPECT_EQ(broadcast.error().code(), StatusCode::kCorruption);
  EXPECT_NE(broadcast.error().message().find("rank 0 (thread 0) announces"), std::string::npos);
  const std::span<const std::byte> huge(length.data(), kMaxRankBytes + 1);
  EXPECT_EQ(Broadcast((**ranks)[0], huge).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(GatherAtFirst((**ranks)[1], huge).error().code(), StatusCode::kInvalidArgument);
}

// Facts from another build can be arbitrary bytes.
TEST(RankCallsTest, FactsThatCannotBeReadAreAnError) {
  const auto ranks = LocalRanks::Create(2);
  ASSERT_OK(ranks);
  const Status status = (*ranks)->Run([](Transport& transport) -> Status {
    if (transport.rank() == 0) return Agree(transport, std::array<RankFact, 1>{{{"a", "b"}}});
    RHIZOME_RETURN_IF_ERROR(GatherAtFirst(transport, Bytes(11, std::byte{255})));
    return Broadcast(transport, {}).map([](auto&&) {}).error();
  });
  EXPECT_EQ(status.code(), StatusCode::kCorruption);
}

}  // namespace
}  // namespace rhizome
