#include <deque>

#include "cache/policy/schedule_history.h"
#include "cache/policy/trace_testing.h"
#include "cache/pool/rank_schedule.h"
#include "cache/pool/row_fetcher.h"
#include "cache/ranks/rank_pool.h"
#include "rhizome/feature_cache.h"
#include "testing/planted_graph.h"

namespace rhizome {
namespace {

using testing::RandomTrace;
using testing::TempDir;

constexpr std::uint64_t kCachedRows = 256;

/// Reads rows from disk, and counts them by the rank that they belong to.
class CountingRows final : public RowFetcher {
 public:
  CountingRows(std::unique_ptr<RowReader> local, std::span<const std::uint16_t> rank_of,
               std::vector<std::uint64_t>& rows_of)
      : local_(std::move(local)), rank_of_(rank_of), rows_of_(rows_of) {}
  Status Read(std::span<RowTarget> targets) override {
    for (const RowTarget& target : targets)
      ++rows_of_[rank_of_[static_cast<std::size_t>(target.row)]];
    return local_->Read(targets);
  }
  RowReaderStats stats() const override { return local_->stats(); }

 private:
  const std::unique_ptr<RowReader> local_;
  const std::span<const std::uint16_t> rank_of_;
  std::vector<std::uint64_t>& rows_of_;
};

/// Random superbatches over random pools. The next superbatch is announced early, late or not at
/// all, rows are read ahead at random, and steps are held for a while.
TEST(RankCacheTest, WhatIsFetchedDoesNotDependOnWhenTheNextSuperbatchIsKnown) {
  std::mt19937_64 random(testing::TestSeed());
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "s", testing::PlantedOptions{.vertices = kCachedRows}));
  const auto store = *Store::Open(FileSystem::Posix(), folder / "s", Store::Mode::kRead);
  const std::vector<float> truth = *testing::ReadArray(folder / "s", "feat");
  std::uint64_t read_ahead = 0;
  for (int round = 0; round < 150; ++round) {
    const auto frames = static_cast<std::uint32_t>(random() % 120);
    const Prior prior = random() % 2 == 0 ? Prior::kNone : Prior::kUses;
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ", frames " << frames << ", prior " << PriorName(prior));
    std::vector<std::uint16_t> rank_of;
    for (std::uint64_t row = 0; row < kCachedRows; ++row)
      rank_of.push_back(static_cast<std::uint16_t>(random() % 4));
    const RowsOverRanks rows{.ranks = {.rank_of = rank_of, .rank = 1},
                             .local_cost = 1,
                             .remote_cost = random() % 2 == 0 ? 1.5 : 7.0};
    std::vector<std::uint64_t> fetched(4, 0);
    FeatureCacheOptions options;
    options.capacity_bytes = frames * 64;
    options.held = {.slots = 3 * kCachedRows, .most = 3 * kCachedRows};
    options.reader.io.maker = IoMaker::kPread;
    options.reader.staging_bytes = 512 << 10;
    options.read_cost = ReadCost();
    options.fetcher = [&](std::unique_ptr<RowReader> local,
                          const ArrayEntry&) -> Result<std::unique_ptr<RowFetcher>> {
      return std::make_unique<CountingRows>(std::move(local), rank_of, fetched);
    };
    const auto cache = *FeatureCache::Open(*store, "feat", options);
    ASSERT_EQ(cache->frame_count(), frames);

    std::vector<Trace> traces;
    for (std::size_t s = 0, count = 1 + random() % 5; s < count; ++s)
      traces.push_back(RandomTrace(random, 1 + random() % 6, kCachedRows, 1 + random() % 80));
    RankSchedules schedules(rows, frames);
    std::optional<ScheduleHistory> history;
    if (prior == Prior::kUses) history.emplace(kCachedRows);
    std::deque<std::unique_ptr<Policy>> policies;
    for (const Trace& trace : traces)
      policies.push_back(*schedules.Make(trace, history ? &*history : nullptr));
    std::deque<HeldRows> held;
    for (std::size_t k = 0; k < traces.size(); ++k) {
      ASSERT_OK(cache->Start(std::move(policies[k])));
      const bool known = k + 1 < traces.size() && random() % 4 != 0;
      const std::size_t known_at = random() % traces[k].steps();
      for (std::size_t s = 0; s < traces[k].steps(); ++s) {
        if (held.size() > random() % 3) held.pop_front();
        ASSERT_OK(cache->Hold(traces[k].step(s), held.emplace_back()));
        for (std::size_t i = 0; i < traces[k].step(s).size(); ++i) {
          const auto row = static_cast<std::size_t>(traces[k].step(s)[i]);
          ASSERT_EQ(
              std::memcmp(&held.back().table()[held.back().slots()[i] * 64], &truth[row * 16], 64),
              0);
        }
        if (!known || s < known_at) continue;
        if (!cache->announced()) cache->Announce(*policies[k + 1]);
        if (random() % 2 == 0) read_ahead += *cache->ReadAhead();
      }
    }
    held.clear();

    RankPool pool({.rank = 1,
                   .ranks = 4,
                   .frame_count = frames,
                   .prior = prior,
                   .local_cost = rows.local_cost,
                   .remote_cost = rows.remote_cost},
                  rank_of);
    RankFetches replayed(4);
    for (const Trace& trace : traces) replayed += *pool.Play(trace);
    ASSERT_EQ(fetched, replayed.rows_of);
    std::uint64_t all = 0;
    for (const std::uint64_t rows_of_one : fetched) all += rows_of_one;
    ASSERT_EQ(cache->stats().rows_read, all);
  }
  EXPECT_GT(read_ahead, 10U);
}

}  // namespace
}  // namespace rhizome
