#include "cache/ranks/serve_rate.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "rhizome/transport.h"
#include "testing/planted_graph.h"

namespace rhizome {
namespace {

using testing::TempDir;

struct Served {
  std::vector<Result<std::vector<ServeRate>>> rates;  // by rank
  std::vector<TransportStats> stats;
};

Served MeasureAsRanks(const Path& path, std::uint32_t ranks, const ServeRateOptions& options,
                      const LocalRanksOptions& network = {}) {
  Served served{
      .rates = std::vector<Result<std::vector<ServeRate>>>(ranks, Fail(Status::NotFound("none"))),
      .stats = std::vector<TransportStats>(ranks)};
  const auto transports = LocalRanks::Create(ranks, network);
  if (!transports) return served;
  static_cast<void>((*transports)->Run([&](Transport& transport) -> Status {
    const std::uint32_t rank = transport.rank();
    const auto store = Store::Open(FileSystem::Posix(), path, Store::Mode::kRead);
    if (!store) return store.error();
    const auto graph = Graph::Open(std::as_const(**store), {.partitions = {0}});
    if (!graph) return graph.error();
    served.rates[rank] = MeasureServing(**graph, transport, options, JobControl());
    served.stats[rank] = transport.stats();
    return served.rates[rank] ? Status::Ok() : served.rates[rank].error();
  }));
  return served;
}

TEST(ServeRateTest, EachPairIsMeasuredWithTheRowsThatItSays) {
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "s", {.partitions = 4}));
  const ServeRateOptions options{
      .io = IoMaker::kPread, .batch_rows = 20, .rounds = 2, .batches_a_round = 3};
  const Served served = MeasureAsRanks(folder / "s", 3, options);
  for (std::uint32_t r = 0; r < 3; ++r) {
    ASSERT_OK(served.rates[r]);
    ASSERT_EQ(served.rates[r]->size(), 2 - r);
    for (std::uint32_t i = 0; i < 2 - r; ++i) {
      const ServeRate& rate = (*served.rates[r])[i];
      EXPECT_EQ(rate.asker, r);
      EXPECT_EQ(rate.owner, r + 1 + i);
      EXPECT_EQ(rate.batch_rows, 20u);
      EXPECT_GT(rate.rows_per_second, 0);
      EXPECT_GT(rate.plain_rows_per_second, 0);
      EXPECT_GE(rate.processor_seconds_per_row, 0);
    }
    // Seven batches from each owner, one message each.
    const MessageStats& asked = served.stats[r].asked[static_cast<std::size_t>(Service::kRows)];
    EXPECT_EQ(asked.messages_in, (2 - r) * 7);
    if (r < 2) {
      const std::uint64_t row_bytes = (*served.rates[r])[0].row_bytes;
      EXPECT_EQ(asked.bytes_in, (2 - r) * 7 * (kMessageHeaderBytes + 20 * (row_bytes + 4)));
    }
  }
}

// A batch takes one round trip, which dominates the time: rates cannot exceed what the latency
// allows, and are not much lower unless other programs use the CPUs.
TEST(ServeRateTest, RatesAreThoseOfTheNetwork) {
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "s", {.partitions = 2}));
  const double latency = 10e-3, highest = 20 / (2 * latency);
  const double lowest = highest / (4 * testing::Patience());
  const Served served = MeasureAsRanks(
      folder / "s", 2, {.io = IoMaker::kPread, .batch_rows = 20, .rounds = 3, .batches_a_round = 6},
      {.latency_seconds = latency});
  ASSERT_OK(served.rates[0]);
  const ServeRate& rate = served.rates[0]->front();
  EXPECT_LE(rate.rows_per_second, highest);
  EXPECT_GE(rate.rows_per_second, lowest);
  EXPECT_LE(rate.plain_rows_per_second, highest);
  EXPECT_GE(rate.plain_rows_per_second, lowest);
  EXPECT_GT(rate.processor_seconds_per_row, 0);
  EXPECT_LT(rate.processor_seconds_per_row, 1 / rate.rows_per_second);
}

TEST(ServeRateTest, AnArrayThatIsNotThereIsNamedByAllRanks) {
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "s", {.partitions = 2}));
  const Served served = MeasureAsRanks(folder / "s", 2, {.features = "none"});
  for (const auto& rates : served.rates) {
    ASSERT_FALSE(rates.has_value());
    EXPECT_EQ(rates.error().code(), StatusCode::kNotFound) << rates.error().ToString();
  }
}

}  // namespace
}  // namespace rhizome
