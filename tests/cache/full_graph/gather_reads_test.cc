#include "cache/full_graph/gather_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "cache/feed/row_degrees.h"
#include "testing/planted_graph.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;

/// Returns blocks of random sizes that cover all rows.
std::vector<Block> RandomBlocks(std::uint64_t rows, std::mt19937_64& random) {
  std::vector<Block> blocks;
  const std::uint64_t most = 1 + random() % (random() % 2 == 0 ? 40 : 2 * rows);
  for (std::uint64_t begin = 0; begin < rows;) {
    const std::uint64_t end = std::min(rows, begin + 1 + random() % most);
    blocks.push_back({.begin = static_cast<Row>(begin), .end = static_cast<Row>(end)});
    begin = end;
  }
  return blocks;
}

/// Appends the chunks that a block reads, from the lists that BlockPlanner returns for it.
void AppendVisits(const BlockLists& lists, GatherReads& reads) {
  for (std::size_t window = 0; window < lists.windows(); ++window)
    for (const BlockLists::Visit& visit : lists.VisitsOf(window))
      reads.chunks.push_back(static_cast<std::uint32_t>(visit.chunk));
  reads.block_ends.push_back(reads.chunks.size());
}

// Aggregations in both directions, and some that no model uses, are counted together and under a
// memory limit that requires several walks. Each has the chunks that the planner of its blocks
// stages.
TEST(GatherReadsTest, WhatIsCountedInOneWalkIsWhatBlocksStage) {
  std::mt19937_64 random(testing::TestSeed());
  const TempDir folder;
  testing::PlantedOptions planted;
  planted.vertices = 700;
  planted.degree = 5;
  planted.seed = random();
  ASSERT_OK(testing::WriteStore(folder / "s", planted));
  const auto store = Store::Open(FileSystem::Posix(), folder / "s", Store::Mode::kRead);
  ASSERT_OK(store);
  const auto live = Graph::Open(**store);
  ASSERT_OK(live);
  const auto graph = (*live)->Snapshot();
  const std::uint64_t rows = graph->vertex_count();
  const JobControl control;
  std::vector<std::vector<std::uint32_t>> degrees;
  for (const Direction direction : {Direction::kIn, Direction::kOut}) {
    Result<std::vector<std::uint32_t>> of = DegreesOfRows(*graph, direction);
    ASSERT_OK(of);
    degrees.push_back(*std::move(of));
  }
  for (int round = 0; round < 6; ++round) {
    std::vector<CountedGather> gathers(1 + random() % 12);
    for (CountedGather& gather : gathers) {
      BlockPlannerOptions& planner = gather.planner;
      const bool out = random() % 2 == 0;
      planner.draw.direction = out ? Direction::kOut : Direction::kIn;
      planner.draw.no_edges = random() % 6 == 0;
      planner.draw.threads = 1 + random() % 2;
      planner.degrees = degrees[out ? 1 : 0];
      planner.source_chunk_rows = 1 + random() % 150;
      planner.stage_rows = 1 + random() % (random() % 2 == 0 ? 30 : 900);
      planner.own = {.before = random() % 2 == 0, .after = random() % 2 == 0};
      gather.blocks = RandomBlocks(rows, random);
    }
    gathers.push_back(gathers[random() % gathers.size()]);  // one of them twice
    const std::uint64_t memory = random() % 2 == 0 ? 1 << 20 : random() % 400;
    const Result<std::vector<GatherReads>> counted = CountGathers(*graph, gathers, memory, control);
    ASSERT_OK(counted);
    for (std::size_t g = 0; g < gathers.size(); ++g) {
      Result<BlockPlanner> planner = BlockPlanner::Create(*graph, gathers[g].planner);
      ASSERT_OK(planner);
      GatherReads reads;
      for (const Block& block : gathers[g].blocks) {
        const Result<BlockLists> lists = planner->Plan(block);
        ASSERT_OK(lists);
        AppendVisits(*lists, reads);
      }
      EXPECT_EQ((*counted)[g].chunks, reads.chunks) << "gathering " << g;
      EXPECT_EQ((*counted)[g].block_ends, reads.block_ends) << "gathering " << g;
    }
    if (HasFailure()) return;
  }
}

TEST(GatherReadsTest, CountingEndsWhenItIsInterrupted) {
  const TempDir folder;
  ASSERT_OK(testing::WriteStore(folder / "s", {}));
  const auto store = Store::Open(FileSystem::Posix(), folder / "s", Store::Mode::kRead);
  ASSERT_OK(store);
  const auto live = Graph::Open(**store);
  ASSERT_OK(live);
  const auto graph = (*live)->Snapshot();
  const auto degrees = DegreesOfRows(*graph, Direction::kIn);
  ASSERT_OK(degrees);
  JobControl control;
  control.Cancel();
  const Block all{.begin = 0, .end = static_cast<Row>(graph->vertex_count())};
  const Result<GatherReads> reads = CountGather(*graph, {.degrees = *degrees}, {&all, 1}, control);
  ASSERT_FALSE(reads.has_value());
  EXPECT_EQ(reads.error().code(), StatusCode::kInterrupted);
}

}  // namespace
}  // namespace rhizome
