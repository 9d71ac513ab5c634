#include <cstdint>
#include <span>

#include "rhizome/storage/catalog_log.h"
#include "rhizome/storage/check.h"

// RocksDB's log as a power cut or damage may leave it: whatever the bytes, the whole records come
// first, and a log that ends with them is sound.
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
