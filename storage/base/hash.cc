#include "storage/base/hash.h"

#include <isa-l/crc.h>
#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // same names, dispatched to this processor's SIMD level
#endif

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace rhizome {
namespace {

// This file wraps ISA-L (CRC-32C) and xxHash (XXH3-128). Combining two CRCs without their bytes
// uses that appending zero bytes is a linear map of the CRC state over GF(2): kZeros holds the maps
// for 2^i zero bytes, from which ZerosMap composes the map for any length.

// ISA-L takes the length as an int.
constexpr std::size_t kMaxCrcPiece = std::size_t{1} << 30;

/// Makes xxHash choose its implementation for this processor now, while only one thread can be
/// here: it stores the choice in plain, unsynchronised variables.
void ChooseVectors() {
  static const XXH128_hash_t once = [] {
    constexpr std::array<char, 1024> kLong = {};
    return XXH3_128bits(kLong.data(), kLong.size());
  }();
  static_cast<void>(once);
}

Hash128 Canonical(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Hash128 out;
  static_assert(sizeof(canonical.digest) == sizeof(out));
  std::memcpy(out.data(), canonical.digest, out.size());
  return out;
}

// A linear map of CRC states over GF(2): column i is the image of bit i.
using CrcMap = std::array<std::uint32_t, 32>;

constexpr std::uint32_t Apply(const CrcMap& map, std::uint32_t state) {
  std::uint32_t image = 0;
  for (std::size_t i = 0; state != 0; ++i, state >>= 1)
    if ((state & 1) != 0) image ^= map[i];
  return image;
}

constexpr CrcMap Compose(const CrcMap& after, const CrcMap& before) {
  CrcMap map{};
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = Apply(after, before[i]);
  return map;
}

/// Entry i maps a CRC state to the state after 2^i more zero bytes.
constexpr std::array<CrcMap, 64> kZeros = [] {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // CRC-32C, reflected
  CrcMap power{};                                    // the map of one zero bit, then of 2, 4, ...
  power[0] = kPolynomial;
  for (std::size_t i = 1; i < power.size(); ++i) power[i] = std::uint32_t{1} << (i - 1);
  for (int doubling = 0; doubling < 3; ++doubling) power = Compose(power, power);
  std::array<CrcMap, 64> out{};
  for (CrcMap& map : out) {
    map = power;
    power = Compose(power, power);
  }
  return out;
}();

/// Returns `state` after `bytes` zero bytes.
std::uint32_t ApplyZeros(std::uint32_t state, std::uint64_t bytes) {
  for (std::size_t i = 0; bytes != 0; ++i, bytes >>= 1)
    if ((bytes & 1) != 0) state = Apply(kZeros[i], state);
  return state;
}

CrcMap ZerosMap(std::uint64_t bytes) {
  CrcMap map;
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = ApplyZeros(std::uint32_t{1} << i, bytes);
  return map;
}

}  // namespace

std::uint32_t Crc32cCombine(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return ApplyZeros(first, second_bytes) ^ second;
}

std::uint32_t Crc32cOfBlocks(std::span<const std::uint32_t> blocks, std::uint64_t block_bytes,
                             std::uint64_t total_bytes) {
  if (blocks.empty()) return 0;
  const CrcMap block = ZerosMap(block_bytes);
  std::array<std::array<std::uint32_t, 256>, 4> table;  // the map, for each byte of the state
  for (std::size_t byte = 0; byte < table.size(); ++byte)
    for (std::uint32_t value = 0; value < 256; ++value)
      table[byte][value] = Apply(block, value << (8 * byte));
  std::uint32_t sum = 0;
  for (const std::uint32_t crc : blocks.first(blocks.size() - 1)) {
    sum = table[0][sum & 0xFF] ^ table[1][(sum >> 8) & 0xFF] ^ table[2][(sum >> 16) & 0xFF] ^
          table[3][sum >> 24] ^ crc;
  }
  return Crc32cCombine(sum, blocks.back(), total_bytes - (blocks.size() - 1) * block_bytes);
}

std::uint32_t Crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  // ISA-L computes on the raw shift register: the caller complements the state before and after.
  std::uint32_t state = ~seed;
  while (!bytes.empty()) {
    const std::size_t piece = std::min(bytes.size(), kMaxCrcPiece);
    // The parameter is not const, but nothing is written through it.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(piece), state);
    bytes = bytes.subspan(piece);
  }
  return ~state;
}

Hash128 Xxh3(std::span<const std::byte> bytes) {
  ChooseVectors();
  return Canonical(XXH3_128bits(bytes.data(), bytes.size()));
}

struct StreamHash::State {
  State() : xxh3(XXH3_createState()) {
    if (xxh3 == nullptr) throw std::bad_alloc();
    ChooseVectors();
    XXH3_128bits_reset(xxh3);
  }
  ~State() { XXH3_freeState(xxh3); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxh3;  // from the library, because it needs more alignment than `new` gives
};

StreamHash::StreamHash() : state_(std::make_unique<State>()) {}
StreamHash::~StreamHash() = default;
StreamHash::StreamHash(StreamHash&&) noexcept = default;
StreamHash& StreamHash::operator=(StreamHash&&) noexcept = default;

void StreamHash::Update(std::span<const std::byte> bytes) {
  // Both hashes process one block at a time, so that the second hash finds the block in the L1 data
  // cache (at least 32 KiB on common processors).
  constexpr std::size_t kBlockBytes = std::size_t{32} << 10;
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(kBlockBytes, bytes.size()));
    XXH3_128bits_update(state_->xxh3, block.data(), block.size());
    crc32c_ = Crc32c(block, crc32c_);
    bytes = bytes.subspan(block.size());
  }
}

Hash128 StreamHash::xxh3() const { return Canonical(XXH3_128bits_digest(state_->xxh3)); }

}  // namespace rhizome
