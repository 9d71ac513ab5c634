#include <bzlib.h>
#include <lzma.h>
#include <zstd.h>

#include <string>
#include <vector>

#include "gzip.h"
#include "index/input/input_stream.h"
#include "memory_files.h"
#include "seeds.h"
#include "storage/base/check.h"

namespace {

using namespace rhizome;

constexpr const char* kNames[] = {"plain", "packed.gz", "packed.zst", "packed.bz2", "packed.xz"};

// Reading stops after this many bytes, since a small input can decompress to a thousand times its
// size.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;

std::vector<std::byte> Zstd(std::string_view text) {
  std::vector<std::byte> out(ZSTD_compressBound(text.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

std::vector<std::byte> Bzip2(std::string_view text) {
  std::vector<std::byte> out(text.size() + 1000);
  auto bytes = static_cast<unsigned>(out.size());
  RHIZOME_CHECK(BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data()), &bytes,
                                         const_cast<char*>(text.data()),
                                         static_cast<unsigned>(text.size()), 1, 0, 0) == BZ_OK);
  out.resize(bytes);
  return out;
}

std::vector<std::byte> Xz(std::string_view text) {
  std::vector<std::byte> out(lzma_stream_buffer_bound(text.size()));
  std::size_t bytes = 0;
  RHIZOME_CHECK(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr,
                                        reinterpret_cast<const std::uint8_t*>(text.data()),
                                        text.size(), reinterpret_cast<std::uint8_t*>(out.data()),
                                        &bytes, out.size()) == LZMA_OK);
  out.resize(bytes);
  return out;
}

/// The compressions in the order of kNames.
constexpr std::vector<std::byte> (*kPack[])(std::string_view) = {fuzzing::Gzip, Zstd, Bzip2, Xz};

}  // namespace

// Reads raw bytes as a file, plain or compressed, in pieces of any size. The file must be
// rejected as invalid input, or yield the same bytes for every piece size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  const Path path = kNames[data[0] % std::size(kNames)];
  fuzzing::MemoryFiles files;
  files.files[path] = {bytes.begin(), bytes.end()};
  std::vector<std::byte> read[2];
  Status ended[2];
  for (const int run : {0, 1}) {
    const auto stream = InputStream::Open(files, path);
    RHIZOME_CHECK(stream.has_value());
    std::vector<std::byte> piece(run == 0 ? 1 + data[1] % 64 : 4096);
    while (read[run].size() < kMaxBytes) {
      const auto got = (*stream)->ReadFull(piece);
      if (!got) ended[run] = got.error();
      if (!got || *got == 0) break;
      RHIZOME_CHECK(*got <= piece.size());
      read[run].insert(read[run].end(), piece.begin(),
                       piece.begin() + static_cast<std::ptrdiff_t>(*got));
    }
    RHIZOME_CHECK(ended[run].ok() || ended[run].code() == StatusCode::kInvalidArgument);
    RHIZOME_CHECK((*stream)->consumed_bytes() <= bytes.size());
  }
  if (read[0].size() >= kMaxBytes || read[1].size() >= kMaxBytes) return 0;
  RHIZOME_CHECK(ended[0].ok() == ended[1].ok());
  if (ended[0].ok()) RHIZOME_CHECK(read[0] == read[1]);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  std::string text;
  for (int i = 0; i < 60; ++i) text += std::to_string(i * i) + "\t";
  AddChanged(seeds, Joined({0, 9}, text), 2, 20);
  std::uint8_t name = 0;
  for (const auto& pack : kPack) {
    std::vector<std::byte> packed = pack(text);
    AddChanged(seeds, Joined({++name, 9}, packed), 2, 500);
    const std::vector<std::byte> more = pack("more");
    packed.insert(packed.end(), more.begin(), more.end());
    AddChanged(seeds, Joined({name, 9}, packed), 2, 100);
  }
  return seeds;
}
