#include "cache/ranks/rank_seconds.h"

#include <gtest/gtest.h>

namespace rhizome {
namespace {

// 1,024 bytes with the checksum; 1,024 rows a request
constexpr std::uint64_t kWireRowBytes = 1020;

class RankSecondsTest : public ::testing::Test {
 protected:
  RankSecondsTest() {
    options_.minibatch.ranks->link = {.bits_per_second = 8e9, .latency_seconds = 0};
    options_.read_seconds = 0;
  }

  /// Returns the seconds of rank 0 of three.
  double Moving(std::uint64_t own, std::uint64_t one, std::uint64_t other, double served,
                std::uint64_t sweeps = 1) const {
    RankFetches fetched(3);
    fetched.rows_of = {own, one, other};
    fetched.asking_sweeps = sweeps;
    return RankSeconds(options_, kWireRowBytes).Moving(0, fetched, served);
  }

  RankPlanOptions options_{.minibatch = {.ranks = RankOptions{}}};
};

constexpr double kCarried = 1024 / 1e9;  // seconds a row

TEST_F(RankSecondsTest, TheLinkCarriesWhatComesAndWhatGoesAtOnce) {
  EXPECT_NEAR(Moving(500, 3000, 2000, 0), 5000 * kCarried, 1e-9);
  EXPECT_NEAR(Moving(500, 3000, 2000, 8000), 8000 * kCarried, 1e-9);
  EXPECT_NEAR(Moving(500, 0, 0, 8000, 0), 8000 * kCarried, 1e-9);
  EXPECT_EQ(Moving(500, 0, 0, 0, 0), 0);
}

TEST_F(RankSecondsTest, EachSweepIsARoundTripAndTwoWhereRepliesAreLong) {
  options_.minibatch.ranks->link.latency_seconds = 1e-3;
  EXPECT_NEAR(Moving(0, 40, 0, 0), 40 * kCarried + 2e-3, 1e-9);
  EXPECT_NEAR(Moving(0, 40, 0, 0, 4), 40 * kCarried + 4 * 2e-3, 1e-9);
  EXPECT_NEAR(Moving(0, 4000, 0, 0, 4), 4000 * kCarried + 4 * 4e-3, 1e-9);
}

TEST_F(RankSecondsTest, RequestsOverlapSoThatTheFirstAloneWaitsForAllThatIsDone) {
  options_.read_seconds = 3e-6;
  options_.row_seconds = 2e-6;  // half for the owner, half for this rank
  // The owner needs 4 us a row; then the first 1,024 rows are transferred and verified here.
  EXPECT_NEAR(Moving(0, 10240, 0, 0), 10240 * 4e-6 + 1024 * (kCarried + 1e-6), 1e-9);
  EXPECT_NEAR(Moving(0, 10240, 0, 0, 2), 10240 * 4e-6 + 2 * 1024 * (kCarried + 1e-6), 1e-9);
  EXPECT_NEAR(Moving(0, 100, 0, 0), 100 * (4e-6 + kCarried + 1e-6), 1e-9);
  // Two owners read concurrently.
  EXPECT_NEAR(Moving(0, 10240, 10240, 0), 10240 * 4e-6 + 1024 * (2 * kCarried + 2e-6), 1e-9);
  // The disk of this rank is slower, with its own rows or with the rows that it serves.
  EXPECT_NEAR(Moving(20000, 10240, 0, 0), 20000 * 3e-6, 1e-9);
  EXPECT_NEAR(Moving(0, 10240, 0, 20000), 20000 * 3e-6, 1e-9);
}

TEST_F(RankSecondsTest, ProcessorsAreSharedByWhatComesAndGoes) {
  options_.row_seconds = 20e-6;
  options_.processors = 1;
  options_.own_seconds = 3e-6;
  EXPECT_NEAR(Moving(1000, 2000, 0, 3000), 1000 * 3e-6 + 5000 * 10e-6 + 1024 * (kCarried + 10e-6),
              1e-9);
  options_.processors = 0;
  EXPECT_NEAR(Moving(1000, 2000, 0, 3000), 2000 * 10e-6 + 1024 * (kCarried + 10e-6), 1e-9);
}

TEST_F(RankSecondsTest, GradientsGoUpATreeAndDownAgain) {
  options_.minibatch.ranks->link.latency_seconds = 1e-3;
  const RankSeconds seconds(options_, kWireRowBytes);
  EXPECT_EQ(seconds.Exchange(1, 1 << 20), 0);
  EXPECT_NEAR(seconds.Exchange(2, 1000), 2 * (1e-3 + 1e-6), 1e-12);
  EXPECT_NEAR(seconds.Exchange(4, 1000), 4 * (1e-3 + 1e-6), 1e-12);
  EXPECT_NEAR(seconds.Exchange(5, 1000), 6 * (1e-3 + 1e-6), 1e-12);
  EXPECT_NEAR(seconds.Exchange(2, 1'000'000), 2 * (3e-3 + 1e-3), 1e-12);
}

}  // namespace
}  // namespace rhizome
