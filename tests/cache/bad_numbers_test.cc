#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "cache/disk_cache/disk_cache.h"
#include "cache/layout/pass_lists.h"
#include "cache/layout/pass_plan.h"
#include "index/generation/graph_builder.h"
#include "rhizome/feature_cache.h"
#include "testing/test_store.h"
#include "testing/testing.h"

// Tests that the caches refuse numbers of rows, chunks, workers, targets and places that do not
// exist.

namespace rhizome {
namespace {

constexpr std::uint64_t kGraphVertices = 40;

/// Returns numbers of rows and chunks that do not exist.
std::vector<std::int64_t> RowsThatAreNot() {
  return {static_cast<std::int64_t>(kGraphVertices),
          std::int64_t{1} << 31,
          std::int64_t{1} << 32,
          std::numeric_limits<std::int64_t>::max(),
          std::numeric_limits<std::int64_t>::min(),
          -2,
          -1};
}

class BadNumbersOfCachesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GraphInput input;
    input.vertex_count = kGraphVertices;
    input.vertex_type_names = {"v"};
    input.edge_type_names = {"e"};
    for (VertexId v = 1; v < static_cast<VertexId>(kGraphVertices); ++v) {
      input.edges.src.push_back(v);
      input.edges.dst.push_back(v / 2);
    }
    ArrayInput feat;
    feat.name = "feat";
    feat.dim = 2;
    feat.dtype = DataType::kInt64;
    feat.chunk_rows = 16;
    feat.read_rows = [](std::span<const VertexId>, std::span<std::byte> out) {
      std::memset(out.data(), 1, out.size());
      return Status::Ok();
    };
    input.arrays.push_back(std::move(feat));
    ASSERT_OK(testing::BuildStore(folder_ / "g.rz", std::move(input), {}));
    auto open = testing::OpenStoreGraph(folder_ / "g.rz");
    ASSERT_OK(open);
    open_ = *std::move(open);
    auto array = open_.store->OpenArray("feat");
    ASSERT_OK(array);
    array_ = *std::move(array);
  }

  Result<std::unique_ptr<DiskCache>> Fill(const std::vector<Row>& rows,
                                          const std::vector<std::uint32_t>& position,
                                          const DiskCacheOptions& options) {
    StoredChunkSource source(*array_);
    return DiskCache::Fill(FileSystem::Posix(), source, rows, position, options, control_);
  }

  testing::TempDir folder_;
  testing::OpenGraph open_;
  std::unique_ptr<ChunkArray> array_;
  const JobControl control_ = {};
};

TEST_F(BadNumbersOfCachesTest, RowsOfAFeatureCacheAreRefused) {
  FeatureCacheOptions options;
  options.read_cost = ReadCost();
  const auto cache = FeatureCache::Open(*open_.graph, "feat", options);
  ASSERT_OK(cache);
  std::vector<std::byte> out((*cache)->kept_row_bytes());
  for (const std::int64_t row : RowsThatAreNot()) {
    SCOPED_TRACE(row);
    HeldRows held;
    EXPECT_STATUS((*cache)->Gather(std::span(&row, 1), out), kInvalidArgument);
    EXPECT_STATUS((*cache)->Hold(std::span(&row, 1), held), kInvalidArgument);
  }
  const Row last = kGraphVertices - 1;
  EXPECT_OK((*cache)->Gather(std::span(&last, 1), out));
  EXPECT_STATUS((*cache)->Gather(std::span(&last, 1), std::span(out).first(1)), kInvalidArgument);
}

TEST_F(BadNumbersOfCachesTest, RowsAndPlacesOfADiskCacheAreRefused) {
  const DiskCacheOptions options{.folder = folder_ / "cache", .chunk_rows = 8};
  EXPECT_OK(Fill({0, 39}, {1, 0}, options));
  for (const std::int64_t row : RowsThatAreNot()) {
    SCOPED_TRACE(row);
    EXPECT_STATUS(Fill({row}, {0}, options), kInvalidArgument);
    EXPECT_STATUS(Fill({row, 39}, {0, 1}, options), kInvalidArgument);
    EXPECT_STATUS(Fill({0, row}, {0, 1}, options), kInvalidArgument);
  }
  EXPECT_STATUS(Fill({3, 3}, {0, 1}, options), kInvalidArgument);
  EXPECT_STATUS(Fill({4, 3}, {0, 1}, options), kInvalidArgument);
  EXPECT_STATUS(Fill({3, 4}, {0}, options), kInvalidArgument);
  EXPECT_STATUS(Fill({3, 4}, {0, 1, 2}, options), kInvalidArgument);
  EXPECT_STATUS(Fill({3, 4}, {0, 0}, options), kInvalidArgument);
  EXPECT_STATUS(Fill({3, 4}, {0, 2}, options), kInvalidArgument);
  EXPECT_STATUS(Fill({3, 4}, {0, ~0U}, options), kInvalidArgument);
  for (const std::uint64_t rows : {std::uint64_t{0}, std::uint64_t{1} << 60, ~std::uint64_t{0}}) {
    DiskCacheOptions other = options;
    other.chunk_rows = rows;
    EXPECT_STATUS(Fill({3, 4}, {0, 1}, other), kInvalidArgument);
  }
}

TEST_F(BadNumbersOfCachesTest, ChunksOfADiskCacheAreRefused) {
  const auto cache = Fill({3, 4, 5}, {0, 1, 2}, {.folder = folder_ / "cache", .chunk_rows = 2});
  ASSERT_OK(cache);
  ASSERT_EQ((*cache)->chunk_count(), 2U);
  std::vector<std::byte> out(array_->entry().row_bytes());
  EXPECT_OK((*cache)->ReadChunk(1, out));
  StoredChunkSource source(*array_);
  for (const std::uint64_t chunk :
       {std::uint64_t{3}, std::uint64_t{1} << 31, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    SCOPED_TRACE(chunk);
    EXPECT_STATUS((*cache)->ReadChunk(chunk, out), kInvalidArgument);
    EXPECT_STATUS((*cache)->ReadChunk(chunk, {}), kInvalidArgument);
    EXPECT_EQ((*cache)->RowsInChunk(chunk), 0U);
    EXPECT_STATUS(source.ReadChunk(chunk, {}), kInvalidArgument);
    EXPECT_EQ(source.RowsInChunk(chunk), 0U);
  }
}

TEST_F(BadNumbersOfCachesTest, OneWorkerTooManyIsRefused) {
  DiskCachesAhead caches(
      1, [&](std::size_t) { return Fill({3}, {0}, {.folder = folder_ / "cache"}); });
  EXPECT_OK(caches.Next());
  EXPECT_STATUS(caches.Next(), kInvalidArgument);
}

TEST_F(BadNumbersOfCachesTest, TargetsAndShapesOfAPassAreRefused) {
  for (const std::int64_t row : RowsThatAreNot()) {
    SCOPED_TRACE(row);
    for (const bool no_edges : {false, true})
      EXPECT_STATUS(
          DrawPassLists(*open_.graph, std::span(&row, 1), {.no_edges = no_edges}, control_),
          kInvalidArgument);
  }
  EXPECT_TRUE(TargetsOf(*open_.graph, 65535).empty());
  const auto plan = [&](std::uint64_t block_rows, std::uint64_t chunk_rows) {
    WorkerPassOptions options;
    options.shape = {.block_rows = block_rows, .chunk_rows = chunk_rows};
    return PlanWorkerPass(*open_.graph, options, control_);
  };
  EXPECT_OK(plan(16, 16));
  EXPECT_STATUS(plan(0, 16), kInvalidArgument);
  EXPECT_STATUS(plan(16, 0), kInvalidArgument);
}

}  // namespace
}  // namespace rhizome
