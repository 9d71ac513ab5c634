#include "rhizome/storage/catalog_log.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "rhizome/storage/hash.h"
#include "rhizome/storage/little_endian.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::size_t kHeaderBytes = 7;

/// Records of RocksDB's log format, in one block; where each ends.
struct Log {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> ends;

  void Add(std::mt19937_64& rng, std::size_t payload_bytes) {
    std::vector<std::byte> record(kHeaderBytes + payload_bytes);
    for (std::byte& byte : record) byte = static_cast<std::byte>(1 + rng() % 255);
    record[6] = std::byte{1};  // a whole one
    StoreLittle(record.data() + 4, static_cast<std::uint16_t>(payload_bytes));
    const std::uint32_t crc = Crc32c(std::span(record).subspan(6));
    StoreLittle(record.data(), ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U);
    bytes.insert(bytes.end(), record.begin(), record.end());
    ends.push_back(bytes.size());
  }
};

Log ThreeRecords(std::mt19937_64& rng) {
  Log log;
  for (const std::size_t size : {100, 700, 900}) log.Add(rng, size);
  return log;
}

TEST(CatalogLogTest, FlippedBitsAreDamageWhereverTheyAre) {
  std::mt19937_64 rng(testing::TestSeed());
  const Log log = ThreeRecords(rng);
  EXPECT_EQ(ScanLog(log.bytes).good_bytes, log.bytes.size());
  EXPECT_FALSE(ScanLog(log.bytes).damaged);
  for (std::size_t bit = 0; bit < log.bytes.size() * 8; ++bit) {
    auto bytes = log.bytes;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_TRUE(ScanLog(bytes).damaged) << "bit " << bit;
  }
}

TEST(CatalogLogTest, CutAnywhereItEndsWithTheLastWholeRecord) {
  std::mt19937_64 rng(testing::TestSeed());
  const Log log = ThreeRecords(rng);
  for (std::size_t size = 0; size < log.bytes.size(); ++size) {
    const LogScan scan = ScanLog(std::span(log.bytes).first(size));
    std::size_t whole = 0;
    for (const std::size_t end : log.ends)
      if (end <= size) whole = end;
    EXPECT_EQ(scan.good_bytes, whole) << size;
    EXPECT_FALSE(scan.damaged) << size;
  }
}

// The length came before the bytes: zeros from a sector on.
TEST(CatalogLogTest, ZerosFromASectorOnAreNoDamage) {
  std::mt19937_64 rng(testing::TestSeed());
  const Log log = ThreeRecords(rng);
  for (const std::size_t sector : {0, 512, 1024, 1536}) {
    auto bytes = log.bytes;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(sector), bytes.end(), std::byte{0});
    EXPECT_FALSE(ScanLog(bytes).damaged) << sector;
    // But not where a record follows them.
    if (sector == 1536) continue;
    auto middle = log.bytes;
    std::fill_n(middle.begin() + static_cast<std::ptrdiff_t>(sector), 20, std::byte{0});
    EXPECT_TRUE(ScanLog(middle).damaged) << sector;
  }
}

}  // namespace
}  // namespace rhizome
