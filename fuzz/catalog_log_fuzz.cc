#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "seeds.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/catalog/catalog_log.h"

// Scans arbitrary bytes as a RocksDB log after a power cut or damage. For every input, the scan
// accepts a prefix of whole records, and a log cut to that prefix must be undamaged.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const rhizome::LogScan scan = rhizome::ScanLog(bytes);
  RHIZOME_CHECK(scan.good_bytes <= bytes.size());
  const rhizome::LogScan whole = rhizome::ScanLog(bytes.first(scan.good_bytes));
  RHIZOME_CHECK(whole.good_bytes == scan.good_bytes && !whole.damaged);
  const rhizome::LogScan rest = rhizome::ScanLog(bytes, scan.good_bytes, scan.last_change);
  RHIZOME_CHECK(rest.good_bytes == scan.good_bytes && rest.damaged == scan.damaged);
  return 0;
}

namespace {

using namespace rhizome;

/// Builds a record of a RocksDB log whose payload starts like a write to the catalogue.
std::vector<std::byte> Record(std::uint64_t change, std::uint64_t synced, std::size_t bytes) {
  constexpr std::size_t kHeaderBytes = 7;
  const std::string mark = SyncMark(synced);
  std::vector<std::byte> record(kHeaderBytes + bytes, std::byte{0x55});
  std::byte* const payload = record.data() + kHeaderBytes;
  StoreLittle(payload, change);
  StoreLittle(payload + 8, std::uint32_t{1});
  payload[12] = std::byte{3};
  payload[13] = static_cast<std::byte>(mark.size());
  std::memcpy(payload + 14, mark.data(), mark.size());
  record[6] = std::byte{1};
  StoreLittle(record.data() + 4, static_cast<std::uint16_t>(bytes));
  StoreLittle(record.data(), MaskedLogCrc(Crc32c(std::span(record).subspan(6))));
  return record;
}

void Append(std::vector<std::byte>& log, const std::vector<std::byte>& record) {
  log.insert(log.end(), record.begin(), record.end());
}

}  // namespace

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  std::vector<std::byte> log = Record(1, 0, 40);
  Append(log, Record(2, 0, 1500));
  Append(log, Record(3, 2, 60));
  AddChanged(seeds, Joined({}, log), 0, 400);
  // A lost sector before a record that reports it as synced, and before a record that does not.
  for (const std::uint64_t synced : {0, 2}) {
    std::vector<std::byte> holed = log;
    Append(holed, Record(4, synced, 600));
    std::fill(holed.begin() + 512, holed.begin() + 1024, std::byte{0});
    AddChanged(seeds, Joined({}, holed), 0, 60);
  }
  log.resize(log.size() + 2000);  // zeros, as if the length reached the disk before the bytes
  AddChanged(seeds, Joined({}, log), 0, 100);
  std::vector<std::byte> blocks;  // a block whose tail is too short for a record
  while (kLogBlockBytes - blocks.size() > 700) Append(blocks, Record(blocks.size(), 0, 633));
  Append(blocks, Record(9, 0, kLogBlockBytes - blocks.size() - 7 - 4));
  blocks.resize(kLogBlockBytes);
  Append(blocks, Record(10, 0, 50));
  AddChanged(seeds, Joined({}, blocks), kLogBlockBytes - 20, 60);
  return seeds;
}
