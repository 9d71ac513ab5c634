#include "index/ingest/ingest_plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "rhizome/ingest.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

using testing::TempDir;

constexpr int kLines = 10'000;

/// Writes edges between 2,000 vertices whose ids are numbers or names.
void WriteEdges(const Path& path, const std::string& prefix) {
  std::ofstream out(path);
  for (int i = 0; i < kLines; ++i)
    out << prefix << i % 2000 << '\t' << prefix << i * 7919 % 2000 << '\n';
}

std::uint64_t BytesBelow(const Path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "generations"))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

TEST(IngestPlanTest, WhatFitsIsHeld) {
  const TempDir dir;
  for (const std::string prefix : {"", "name-"}) {
    for (const bool undirected : {false, true}) {
      SCOPED_TRACE(prefix + (undirected ? " undirected" : ""));
      const Path edges = dir / ("edges" + prefix + ".tsv");
      WriteEdges(edges, prefix);
      IngestOptions options;
      options.edges = {EdgeFile(edges)};
      options.undirected = undirected;
      options.build.partition.kind = PartitionerKind::kHdrf;
      const auto plan = PlanIngest(FileSystem::Posix(), options);
      ASSERT_OK(plan);
      EXPECT_EQ(plan->edges, static_cast<std::uint64_t>(kLines) * (undirected ? 2 : 1));
      EXPECT_FALSE(plan->spilled);
      EXPECT_EQ(plan->scratch_bytes, 0U);
      EXPECT_EQ(plan->partitioner, PartitionerKind::kHdrf);
      EXPECT_LE(plan->min_memory, plan->memory_to_hold);
      EXPECT_EQ(plan->memory_bytes, plan->memory_to_hold);
      EXPECT_GT(plan->seconds, 0);
      // The size of the store is close to the plan.
      const JobControl control;
      const Path store = dir / ("g" + prefix + (undirected ? "u" : "d"));
      ASSERT_OK(Ingest(FileSystem::Posix(), store, options, control));
      const std::uint64_t real = BytesBelow(store);
      EXPECT_LT(plan->store_bytes, 3 * real);
      EXPECT_GT(3 * plan->store_bytes, real);
    }
  }
}

TEST(IngestPlanTest, WhatDoesNotFitIsSpilled) {
  const TempDir dir;
  WriteEdges(dir / "edges.tsv", "name-");
  IngestOptions options;
  options.edges = {EdgeFile(dir / "edges.tsv")};
  options.build.partition.partitions = 4;
  const auto whole = PlanIngest(FileSystem::Posix(), options);
  ASSERT_OK(whole);
  options.memory_bytes = whole->memory_to_hold / 2;
  const auto less = PlanIngest(FileSystem::Posix(), options);
  ASSERT_OK(less);
  EXPECT_TRUE(less->spilled);
  EXPECT_GE(less->partitions, 4U);
  EXPECT_GT(less->scratch_bytes, 0U);
  EXPECT_EQ(less->disk_bytes, less->store_bytes + less->scratch_bytes);
  EXPECT_LE(less->peak_memory_bytes, options.memory_bytes);
  EXPECT_EQ(less->store_bytes, whole->store_bytes);
}

TEST(IngestPlanTest, AMissingFileIsNamed) {
  IngestOptions options;
  options.edges = {EdgeFile(Path("/no/such/edges.tsv"))};
  const auto plan = PlanIngest(FileSystem::Posix(), options);
  EXPECT_STATUS(plan, kNotFound);
  EXPECT_NE(plan.error().message().find("/no/such/edges.tsv"), std::string::npos);
}

}  // namespace
}  // namespace rhizome
