#include "testing/compressed.h"

#include <bzlib.h>
#include <gtest/gtest.h>
#include <lzma.h>

#include <fstream>
#include <span>

#include "storage/array/codec.h"
#include "testing/testing.h"

namespace rhizome::testing {
namespace {

std::uint32_t Crc32(std::string_view text) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

void AppendLittle(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

}  // namespace

std::string Gzip(std::string_view text) {
  std::string out("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", 10);
  std::string_view rest = text;
  do {
    const std::string_view block = rest.substr(0, 0xFFFF);
    rest.remove_prefix(block.size());
    out.push_back(rest.empty() ? '\x01' : '\x00');
    AppendLittle(out, block.size(), 2);
    AppendLittle(out, ~block.size(), 2);
    out.append(block);
  } while (!rest.empty());
  AppendLittle(out, Crc32(text), 4);
  AppendLittle(out, text.size(), 4);
  return out;
}

std::string Zstd(std::string_view text) {
  if (text.empty()) return {"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00", 9};
  const auto encoded = EncodeChunk({.kind = CodecKind::kZstd, .level = 3, .element_bytes = 1},
                                   std::as_bytes(std::span(text)));
  EXPECT_OK(encoded);
  // A chunk is a frame and a checksum of four bytes.
  return {reinterpret_cast<const char*>(encoded->data()), encoded->size() - 4};
}

std::string Bzip2(std::string_view text) {
  std::string out(text.size() + text.size() / 100 + 600, '\0');
  auto bytes = static_cast<unsigned>(out.size());
  EXPECT_EQ(BZ2_bzBuffToBuffCompress(out.data(), &bytes, const_cast<char*>(text.data()),
                                     static_cast<unsigned>(text.size()), 1, 0, 0),
            BZ_OK);
  out.resize(bytes);
  return out;
}

std::string Xz(std::string_view text, std::uint32_t dictionary_bytes) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, 0);
  options.dict_size = dictionary_bytes;
  lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t bytes = 0;
  EXPECT_EQ(
      lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC64, nullptr,
                                reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                                reinterpret_cast<std::uint8_t*>(out.data()), &bytes, out.size()),
      LZMA_OK);
  out.resize(bytes);
  return out;
}

void WriteInput(const std::filesystem::path& path, std::string_view text) {
  std::string bytes(text);
  if (path.extension() == ".gz") bytes = Gzip(text);
  if (path.extension() == ".zst") bytes = Zstd(text);
  if (path.extension() == ".bz2") bytes = Bzip2(text);
  if (path.extension() == ".xz") bytes = Xz(text);
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace rhizome::testing
