#include <cstring>
#include <span>
#include <vector>

#include "seeds.h"
#include "storage/array/codec.h"
#include "storage/base/hash.h"

// Decodes an arbitrary frame as a chunk, with a correct checksum in seven of eight cases. The frame
// must be rejected, or decoded without writing outside the output.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rhizome;
  if (size < 3) return 0;
  Codec codec;
  codec.kind = static_cast<CodecKind>(1 + data[0] % 5);
  std::uint16_t raw_bytes = 0;
  std::memcpy(&raw_bytes, data + 1, sizeof(raw_bytes));
  const auto frame = std::as_bytes(std::span(data + 3, size - 3));
  std::vector<std::byte> encoded(frame.begin(), frame.end());
  if (codec.kind != CodecKind::kRaw) {
    const std::uint32_t crc = Crc32c(frame) + (data[0] / 5 % 8 == 7 ? 1 : 0);
    const auto* bytes = reinterpret_cast<const std::byte*>(&crc);
    encoded.insert(encoded.end(), bytes, bytes + sizeof(crc));
  }
  std::vector<std::byte> out(raw_bytes);
  static_cast<void>(DecodeChunk(codec, encoded, out).ok());
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  constexpr std::uint16_t kRawBytes = 300;
  std::vector<std::byte> raw(kRawBytes);
  for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i * i / 7);
  for (std::uint8_t kind = 1; kind <= 5; ++kind) {
    for (const std::uint16_t claimed : {kRawBytes, std::uint16_t{299}, std::uint16_t{0}}) {
      const Codec codec{.kind = static_cast<CodecKind>(kind), .level = 3, .element_bytes = 4};
      auto encoded = EncodeChunk({codec.kind, codec.kind == CodecKind::kRaw ? 0 : 3, 4}, raw);
      if (!encoded) continue;
      if (codec.kind != CodecKind::kRaw) encoded->resize(encoded->size() - 4);
      const auto low = static_cast<std::uint8_t>(claimed % 256);
      const auto high = static_cast<std::uint8_t>(claimed / 256);
      AddChanged(seeds,
                 Joined({static_cast<std::uint8_t>(kind - 1), low, high},
                        std::span<const std::byte>(*encoded)),
                 3, 200);
    }
  }
  // A five-byte zstd frame without a content size, and frames that are decoded with the wrong
  // codec.
  constexpr std::uint8_t kFrame[] = {0x28, 0xB5, 0x2F, 0xFD, 0, 0x50, 0x2B, 0, 0, 'a'};
  for (const std::uint8_t claimed : {5, 6})
    seeds.push_back(Joined({1, claimed, 0}, std::as_bytes(std::span(kFrame))));
  const std::size_t made = seeds.size();
  for (std::size_t i = 0; i < made; i += 50) {
    for (const std::uint8_t other : {0, 1, 2, 3, 4, 35, 36, 37, 38, 39}) {
      seeds.push_back(seeds[i]);
      seeds.back()[0] = other;
    }
  }
  return seeds;
}
