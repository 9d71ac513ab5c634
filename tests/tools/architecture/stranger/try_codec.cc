#include <cstdio>

#include "storage/array/codec.h"
#include "storage/array/zarr_format.h"

// Finds the codec `flip` by its name, encodes and decodes a chunk, and an array's metadata.
int main() {
  const auto kind = rhizome::ParseCodec("flip");
  if (!kind) return 1;
  const rhizome::Codec codec{.kind = *kind, .level = 1, .element_bytes = 1};
  const std::vector<std::byte> raw(5, std::byte{7});
  const auto encoded = rhizome::EncodeChunk(codec, raw);
  std::vector<std::byte> decoded(raw.size());
  if (!encoded || !rhizome::DecodeChunk(codec, *encoded, decoded).ok()) return 1;
  rhizome::ArrayEntry entry;
  entry.name = "x";
  entry.rows = 10;
  entry.dim = 1;
  entry.chunk_rows = 5;
  entry.dtype = rhizome::DataType::kUint8;
  entry.layout = rhizome::ArrayLayout::kChunk;
  entry.codec = codec;
  const auto again = rhizome::DecodeArrayJson(rhizome::EncodeArrayJson(entry), "x");
  std::printf("%s: %d bytes, %s, %s\n", std::string(rhizome::CodecName(*kind)).c_str(),
              static_cast<int>(encoded->size()), raw == decoded ? "the same again" : "others",
              again && again->codec.kind == *kind ? "known again" : "unknown");
  return 0;
}
