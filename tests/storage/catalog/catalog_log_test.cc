#include "storage/catalog/catalog_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "testing/testing.h"

namespace rhizome {
namespace {

constexpr std::size_t kHeaderBytes = 7;

/// Records in the format of a RocksDB log, in one block, with the end of each record.
struct Log {
  std::vector<std::byte> bytes;
  std::vector<std::size_t> ends;

  void Add(std::mt19937_64& rng, std::size_t payload_bytes) {
    std::vector<std::byte> record(kHeaderBytes + payload_bytes);
    for (std::byte& byte : record) byte = static_cast<std::byte>(1 + rng() % 255);
    record[6] = std::byte{1};  // a whole record
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

// The length of the file reached the disk before its bytes, which leaves zeros from some sector on.
TEST(CatalogLogTest, ZerosFromASectorOnAreNoDamage) {
  std::mt19937_64 rng(testing::TestSeed());
  const Log log = ThreeRecords(rng);
  for (const std::size_t sector : {0, 512, 1024, 1536}) {
    auto bytes = log.bytes;
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(sector), bytes.end(), std::byte{0});
    EXPECT_FALSE(ScanLog(bytes).damaged) << sector;
    // Zeros are damage if a record follows them.
    if (sector == 1536) continue;
    auto middle = log.bytes;
    std::fill_n(middle.begin() + static_cast<std::ptrdiff_t>(sector), 20, std::byte{0});
    EXPECT_TRUE(ScanLog(middle).damaged) << sector;
  }
}

/// Builds a log of three writes in RocksDB's format. Each has a mark with the last write that was
/// synced before it.
Log ThreeWrites(std::mt19937_64& rng, std::array<std::uint64_t, 3> synced) {
  Log log;
  for (std::size_t i = 0; i < synced.size(); ++i) {
    const std::string mark = SyncMark(synced[i]);
    const std::size_t at = log.bytes.size();
    log.Add(rng, 900);
    const auto payload = std::span(log.bytes).subspan(at + kHeaderBytes);
    StoreLittle(payload.data(), static_cast<std::uint64_t>(10 + i));
    StoreLittle(payload.data() + 8, std::uint32_t{1});
    payload[12] = std::byte{3};
    payload[13] = static_cast<std::byte>(mark.size());
    std::ranges::copy(std::as_bytes(std::span(mark)), payload.begin() + 14);
    const auto record = std::span(log.bytes).subspan(at);
    StoreLittle(record.data(), MaskedLogCrc(Crc32c(record.subspan(6))));
  }
  return log;
}

// Writes 11 and 12 were not synced, and the sectors of 12 reached the disk first.
TEST(CatalogLogTest, AHoleInWhatWasNotSyncedEndsTheLog) {
  std::mt19937_64 rng(testing::TestSeed());
  Log log = ThreeWrites(rng, {0, 10, 10});
  std::fill_n(log.bytes.begin() + 1024, 512, std::byte{0});
  const LogScan scan = ScanLog(log.bytes);
  EXPECT_EQ(scan.good_bytes, log.ends[0]);
  EXPECT_EQ(scan.last_change, 10U);
  EXPECT_FALSE(scan.damaged);
}

// Write 12 says that write 11 was synced, so the disk lost one of its sectors later.
TEST(CatalogLogTest, AHoleInWhatWasSyncedIsDamage) {
  std::mt19937_64 rng(testing::TestSeed());
  Log log = ThreeWrites(rng, {0, 10, 11});
  std::fill_n(log.bytes.begin() + 1024, 512, std::byte{0});
  EXPECT_TRUE(ScanLog(log.bytes).damaged);
}

// The last sector of the record is zero, like the end of a torn record.
TEST(CatalogLogTest, FlippedBitsOfALastRecordThatEndsInZerosAreDamage) {
  std::mt19937_64 rng(testing::TestSeed());
  Log log = ThreeRecords(rng);
  const std::size_t at = log.ends[1];
  std::fill(log.bytes.begin() + 1024, log.bytes.end(), std::byte{0});
  const auto record = std::span(log.bytes).subspan(at);
  StoreLittle(record.data(), MaskedLogCrc(Crc32c(record.subspan(6))));
  ASSERT_EQ(ScanLog(log.bytes).good_bytes, log.bytes.size());
  for (std::size_t bit = at * 8; bit < log.bytes.size() * 8; ++bit) {
    auto bytes = log.bytes;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_TRUE(ScanLog(bytes).damaged) << "bit " << bit;
  }
}

// Bytes that end in zeros may be torn, unless a valid record begins anywhere in them.
TEST(CatalogLogTest, ARecordBehindDamageIsFoundWhereverItBegins) {
  std::mt19937_64 rng(testing::TestSeed());
  for (int round = 0; round < 30; ++round) {
    std::vector<std::byte> bytes(600 + rng() % 100'000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(1 + rng() % 255);
    StoreLittle(bytes.data() + 4, std::uint16_t{100});  // does not reach the zeros
    const std::size_t left = kLogBlockBytes - bytes.size() % kLogBlockBytes;
    Log log;
    log.Add(rng, rng() % 3000);
    if (log.bytes.size() > left) continue;
    const std::size_t at = bytes.size();
    bytes.insert(bytes.end(), log.bytes.begin(), log.bytes.end());
    bytes.resize(bytes.size() + 1024);
    EXPECT_TRUE(ScanLog(bytes).damaged) << at;
    bytes[at + rng() % log.bytes.size()] ^= std::byte{0x55};
    EXPECT_FALSE(ScanLog(bytes).damaged) << at;
  }
}

// Each byte of the pattern could begin a record of thousands of bytes.
TEST(CatalogLogTest, OnePatternTakesNoLongerThanOtherBytes) {
  std::vector<std::byte> bytes(std::size_t{256} << 10, std::byte{3});
  for (std::size_t i = 5; i < bytes.size(); i += 7) bytes[i] = std::byte{0x20};
  const std::clock_t begun = std::clock();
  (void)ScanLog(bytes);
  // The scan takes some hundredths of a second. An earlier version took several times this limit in
  // a build without optimisation.
  EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, 1.0);
}

}  // namespace
}  // namespace rhizome
