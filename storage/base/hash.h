#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/export.h"
#include "rhizome/types.h"

namespace RHIZOME_API rhizome {

/// Returns the CRC-32C (Castagnoli), as defined by Zarr's codec, iSCSI and RocksDB. `seed` is the
/// CRC of preceding bytes and continues their checksum.
std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

/// Returns the CRC-32C of a concatenation, given the CRCs of both parts and the length of the
/// second part. The bytes themselves are not needed. Source: M. Adler's crc32_combine in zlib.
std::uint32_t Crc32cCombine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

/// Returns the CRC-32C of a file of `total_bytes`, given the CRCs of its blocks. Every block has
/// `block_bytes` bytes except the last, which ends with the file.
std::uint32_t Crc32cOfBlocks(std::span<const std::uint32_t> blocks, std::uint64_t block_bytes,
                             std::uint64_t total_bytes);

Hash128 Xxh3(std::span<const std::byte> bytes);

/// Computes XXH3-128 and CRC-32C of a stream in one pass. Threads: one at a time.
class StreamHash {
 public:
  StreamHash();
  ~StreamHash();
  StreamHash(StreamHash&&) noexcept;
  StreamHash& operator=(StreamHash&&) noexcept;

  void Update(std::span<const std::byte> bytes);
  /// Return the hashes of all bytes so far. More bytes may follow.
  Hash128 xxh3() const;
  std::uint32_t crc32c() const { return crc32c_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::uint32_t crc32c_ = 0;
};

}  // namespace rhizome
