#include "cache/layout/pass_cost.h"

#include <list>

#include "cache/layout/pass_testing.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::RandomPassLists;

/// Returns the chunks of every block, computed naively.
std::vector<std::set<CacheKey>> BruteForceBlocks(const PassLists& lists, const PassLayout& layout,
                                                 const PassShape& shape) {
  std::vector<std::set<CacheKey>> blocks;
  for (std::size_t i = 0; i < layout.order.size(); ++i) {
    if (i % shape.block_rows == 0) blocks.emplace_back();
    std::vector<LocalRow> rows = {lists.targets[layout.order[i]]};
    for (const LocalRow row : lists.ReadsOf(layout.order[i])) rows.push_back(row);
    for (const LocalRow row : rows) {
      blocks.back().insert(static_cast<CacheKey>(layout.position[row] / shape.chunk_rows));
    }
  }
  return blocks;
}

void ExpectEqual(const Trace& trace, const std::vector<std::set<CacheKey>>& blocks) {
  ASSERT_EQ(trace.steps(), blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const std::vector<CacheKey> step(trace.step(b).begin(), trace.step(b).end());
    EXPECT_EQ(step, std::vector<CacheKey>(blocks[b].begin(), blocks[b].end())) << "block " << b;
  }
}

/// Simulates a cache of chunks: LRU if `touch`, else FIFO. With `first`, the cached chunks of a
/// block are used before others are read. Returns the number of reads.
std::uint64_t BruteForceReads(const Trace& blocks, std::size_t frames, bool touch, bool first) {
  std::list<CacheKey> queue;  // oldest first
  std::uint64_t reads = 0;
  const auto find = [&](CacheKey key) { return std::find(queue.begin(), queue.end(), key); };
  const auto read = [&](CacheKey key) {
    if (const auto found = find(key); found != queue.end()) {
      if (touch) queue.splice(queue.end(), queue, found);
      return;
    }
    ++reads;
    if (queue.size() == frames) queue.pop_front();
    queue.push_back(key);
  };
  for (std::size_t b = 0; b < blocks.steps(); ++b) {
    std::vector<CacheKey> rest;
    for (const CacheKey key : blocks.step(b)) {
      if (!first || find(key) == queue.end()) rest.push_back(key);
    }
    for (const CacheKey key : rest) read(key);
  }
  return reads;
}

TEST(PassCostTest, TracesEqualBruteForce) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    const PassLists lists = RandomPassLists(random, random() % 150, 6);
    const PassShape shape{.block_rows = 1 + random() % 30, .chunk_rows = 1 + random() % 20};
    for (const LayoutRule& rule : CandidateLayouts()) {
      SCOPED_TRACE(LayoutName(rule));
      const PassLayout layout = LayOut(lists, rule, shape.block_rows);
      ExpectEqual(ChunkTrace(lists, layout, shape), BruteForceBlocks(lists, layout, shape));
    }
  }
}

TEST(PassCostTest, CachesReadWhatSimulationsRead) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 40; ++round) {
    const PassLists lists = RandomPassLists(random, 1 + random() % 200, 5);
    const PassShape shape{.block_rows = 1 + random() % 30, .chunk_rows = 1 + random() % 8};
    const std::uint64_t chunks = ChunksOf(lists.rows.size(), shape.chunk_rows);
    const Trace blocks = ChunkTrace(
        lists, LayOut(lists, {RowRule::kStored, TargetOrder::kStored}, shape.block_rows), shape);
    const auto frames = static_cast<std::uint32_t>(1 + random() % (chunks + 3));
    const Trace arriving = InArrivalOrder(blocks);
    const auto reads = [&](PolicyKind policy) {
      return *CountReads(arriving, chunks, policy, frames);
    };
    EXPECT_EQ(reads(PolicyKind::kFifo), BruteForceReads(blocks, frames, false, false));
    EXPECT_EQ(reads(PolicyKind::kLru), BruteForceReads(blocks, frames, true, false));
    EXPECT_EQ(*CountReads(blocks, chunks, PolicyKind::kFifo, frames),
              BruteForceReads(blocks, frames, false, true));
    EXPECT_LE(reads(PolicyKind::kBelady), reads(PolicyKind::kFifo));
    EXPECT_LE(reads(PolicyKind::kBelady), reads(PolicyKind::kLru));
    EXPECT_EQ(reads(PolicyKind::kCost), reads(PolicyKind::kBelady));
    if (frames >= chunks) {
      const std::set<CacheKey> distinct(blocks.keys.begin(), blocks.keys.end());
      EXPECT_EQ(reads(PolicyKind::kBelady), distinct.size());
    }
    EXPECT_EQ(*CountReads(arriving, chunks, PolicyKind::kBelady, 0), blocks.keys.size());
  }
}

TEST(PassCostTest, WhatIsChosenIsTheLeastAndNeverWorseThanNaturalOrder) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 20; ++round) {
    const PassLists lists = RandomPassLists(random, random() % 200, 5);
    ChooseOptions options;
    options.shape = {.block_rows = 1 + random() % 30, .chunk_rows = 1 + random() % 20};
    options.cache_chunks = random() % 8;
    const LayoutChoice choice = *ChooseLayout(lists, options);
    ASSERT_EQ(choice.costs.size(), options.candidates.size());
    EXPECT_EQ(choice.blocks, ChunksOf(lists.targets.size(), options.shape.block_rows));
    for (const LayoutCost& cost : choice.costs) {
      EXPECT_LE(choice.costs[choice.chosen].reads, cost.reads) << LayoutName(cost.rule);
      EXPECT_LE(cost.reads, cost.requests);
      const Trace trace = ChunkTrace(
          lists, LayOut(lists, cost.rule, options.shape.block_rows, options.seed), options.shape);
      EXPECT_EQ(cost.requests, trace.keys.size());
    }
  }
}

TEST(PassCostTest, RowsThatTheSameBlocksReadShareAChunk) {
  // Four targets in blocks of two, and 8 rows that only they read: the first block reads the even
  // ones, the second the odd ones. In the layout by blocks, each set has chunks of its own.
  PassLists lists;
  for (LocalRow row = 0; row < 12; ++row) {
    lists.rows.push_back(row);
    lists.vertices.push_back(row);
    lists.owners.push_back(0);
    lists.degrees.push_back(1);
  }
  lists.targets = {8, 9, 10, 11};
  lists.offsets = {0, 2, 4, 6, 8};
  lists.neighbors = {0, 2, 4, 6, 1, 3, 5, 7};
  const PassShape shape{.block_rows = 2, .chunk_rows = 6};
  const auto requests = [&](RowRule rule) {
    return ChunkTrace(lists, LayOut(lists, {rule, TargetOrder::kStored}, 2), shape).keys.size();
  };
  EXPECT_EQ(requests(RowRule::kStored), 4u);
  EXPECT_EQ(requests(RowRule::kBlocks), 2u);
}

}  // namespace
}  // namespace rhizome
