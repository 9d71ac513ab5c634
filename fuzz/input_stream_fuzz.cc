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

constexpr const char* kNames[] = {"plain", "packed.gz", "packed.zst"};

// Reading stops after this many bytes, since a small input can decompress to a thousand times its
// size.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 20;

std::vector<std::byte> Zstd(std::string_view text) {
  std::vector<std::byte> out(ZSTD_compressBound(text.size()));
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

}  // namespace

// Reads raw bytes as a file, plain or through gzip or zstd, in pieces of any size. The file must be
// rejected as invalid input, or yield the same bytes for every piece size.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  const Path path = kNames[data[0] % 3];
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
  for (const bool gzip : {true, false}) {
    std::vector<std::byte> packed = gzip ? fuzzing::Gzip(text) : Zstd(text);
    AddChanged(seeds, Joined({static_cast<std::uint8_t>(gzip ? 1 : 2), 9}, packed), 2, 500);
    const std::vector<std::byte> more = gzip ? fuzzing::Gzip("more") : Zstd("more");
    packed.insert(packed.end(), more.begin(), more.end());
    AddChanged(seeds, Joined({static_cast<std::uint8_t>(gzip ? 1 : 2), 9}, packed), 2, 100);
  }
  return seeds;
}
