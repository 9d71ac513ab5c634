#include "rhizome/cuda/gather.h"

#include <random>
#include <vector>

#include "testing/testing.h"

namespace rhizome {
namespace {

struct Gathering {
  std::size_t row_bytes = 0;
  std::vector<std::byte> table;
  std::vector<std::int64_t> rows;
  std::vector<std::byte> out;
};

Gathering RandomGathering(std::size_t row_bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Gathering g{.row_bytes = row_bytes, .table = {}, .rows = {}, .out = {}};
  const std::size_t row_count = 1 + random() % 300;
  g.table.resize(row_count * row_bytes);
  for (std::byte& b : g.table) b = static_cast<std::byte>(random());
  g.rows.resize(random() % 500);
  for (std::int64_t& row : g.rows) row = static_cast<std::int64_t>(random() % row_count);
  g.out.resize(g.rows.size() * row_bytes);
  return g;
}

void ExpectGathered(const Gathering& g) {
  for (std::size_t i = 0; i < g.out.size(); ++i) {
    const auto row = static_cast<std::size_t>(g.rows[i / g.row_bytes]);
    ASSERT_EQ(g.out[i], g.table[row * g.row_bytes + i % g.row_bytes]) << "byte " << i;
  }
}

TEST(GatherTest, CpuCopiesEachRequestedRow) {
  const std::uint64_t seed = testing::TestSeed();
  for (const std::size_t row_bytes : {1, 2, 4, 10, 12, 256}) {
    Gathering g = RandomGathering(row_bytes, seed + row_bytes);
    ASSERT_OK(GatherRowsCpu(g.table, g.row_bytes, g.rows, g.out));
    ExpectGathered(g);
  }
}

TEST(GatherTest, RefusesRowsAndSizesThatDoNotFit) {
  const std::vector<std::byte> table(24);
  std::vector<std::byte> out(16);
  const auto gather = {GatherRowsCpu, GatherRowsCuda};
  for (const auto& function : gather) {
    EXPECT_STATUS(function(table, 8, std::vector<std::int64_t>{0, 3}, out), kInvalidArgument);
    EXPECT_STATUS(function(table, 8, std::vector<std::int64_t>{0, -1}, out), kInvalidArgument);
    EXPECT_STATUS(function(table, 8, std::vector<std::int64_t>{0}, out), kInvalidArgument);
    EXPECT_STATUS(function(table, 7, std::vector<std::int64_t>{0, 1}, out), kInvalidArgument);
    EXPECT_STATUS(function(table, 0, std::vector<std::int64_t>{}, out), kInvalidArgument);
  }
}

// With a device the result equals the CPU reference; without one the call must report kUnsupported.
TEST(GatherTest, DeviceEqualsCpuOrIsUnsupported) {
  const std::uint64_t seed = testing::TestSeed();
  for (const std::size_t row_bytes : {1, 4, 10, 12, 256, 3072}) {
    Gathering g = RandomGathering(row_bytes, seed + row_bytes);
    if (!CudaAvailable()) {
      EXPECT_STATUS(GatherRowsCuda(g.table, g.row_bytes, g.rows, g.out), kUnsupported);
      continue;
    }
    ASSERT_OK(GatherRowsCuda(g.table, g.row_bytes, g.rows, g.out));
    ExpectGathered(g);
  }
}

}  // namespace
}  // namespace rhizome
