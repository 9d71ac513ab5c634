#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rhizome {

/// How RocksDB lays out its logs, the write-ahead log and the MANIFEST: blocks of 32 KiB of records
/// [masked CRC-32C | length | type | payload]; what is left of a block, less than a header, is
/// zero.
inline constexpr std::uint64_t kLogBlockBytes = 32768;

/// What a part of such a log holds that begins at a block and goes to the end of the file.
struct LogScan {
  /// Whole records with the right checksum from the beginning on end here.
  std::uint64_t good_bytes = 0;

  /// What follows is no record that a power cut cut short, but damage.
  bool damaged = false;
};

/// Reads records up to the first that is not whole. A power cut leaves of the last records a
/// beginning, and behind it, where the length came before the bytes, zeros from some sector (512
/// bytes) on. Everything else is damage: a record behind the bad one, bytes that are not zero, a
/// last record that would be right if it said another length. `begin`: where to start, the end of a
/// record. Touches no file.
LogScan ScanLog(std::span<const std::byte> bytes, std::uint64_t begin = 0);

}  // namespace rhizome
