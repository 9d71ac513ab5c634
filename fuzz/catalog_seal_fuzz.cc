#include <algorithm>
#include <string>
#include <vector>

#include "edits.h"
#include "seeds.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/catalog/catalog_seal.h"
#include "storage/io/files.h"
#include "testing/fake_file_system.h"

namespace {

using namespace rhizome;
using testing::FakeFileSystem;

constexpr const char* kNames[] = {"/c/SEAL", "/c/CURRENT", "/c/MANIFEST-000005"};

void Put(FakeFileSystem& fs, const char* path, std::string_view text) {
  RHIZOME_CHECK(WriteWholeFile(fs, path, std::as_bytes(std::span(text))).ok());
}

/// Creates a sealed catalogue.
void Make(FakeFileSystem& fs) {
  RHIZOME_CHECK(fs.CreateDirectory("/c").ok());
  Put(fs, "/c/CURRENT", "MANIFEST-000005\n");
  Put(fs, "/c/MANIFEST-000005", "what RocksDB writes there");
  RHIZOME_CHECK(SealCatalog(fs, "/c").ok());
}

constexpr std::size_t kCrcBytes = sizeof(std::uint32_t);
constexpr std::size_t kMinSealBytes = 8 + kCrcBytes;  // a magic and the checksum

/// Returns a file with edits. Its checksum is corrected if `resealed`.
std::vector<std::byte> Edited(std::vector<std::byte> bytes, bool resealed,
                              std::span<const std::uint8_t> edits) {
  if (!resealed) return fuzzing::WithEdits(std::move(bytes), edits);
  bytes.resize(bytes.size() - kCrcBytes);
  bytes = fuzzing::WithEdits(std::move(bytes), edits);
  const std::uint32_t crc = Crc32c(bytes);
  bytes.resize(bytes.size() + kCrcBytes);
  StoreLittle(bytes.data() + bytes.size() - kCrcBytes, crc);
  return bytes;
}

}  // namespace

// Checks a sealed catalogue in which one file has edits, is empty, or is missing. For an edited
// seal the input chooses whether its checksum is corrected. The check must report damage, unless
// the catalogue is unchanged or has no complete seal.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  FakeFileSystem fs;
  Make(fs);
  RHIZOME_CHECK(CheckCatalogSeal(fs, "/c").ok());
  const std::uint8_t which = data[0] % 3;
  const Path path = kNames[which];
  bool harmless = false;
  if (data[0] / 3 % 4 == 3) {
    RHIZOME_CHECK(fs.RemoveFile(path).ok());
    harmless = which != 2;  // no seal, or a catalogue that was never finished
  } else {
    const auto before = *ReadWholeFile(fs, path, 1 << 20);
    const bool resealed = which == 0 && data[0] / 3 % 4 == 1;
    const std::vector<std::byte> bytes = Edited(before, resealed, {data + 1, size - 1});
    RHIZOME_CHECK(fs.Overwrite(path, bytes).ok());
    // A seal with a wrong checksum counts as never finished. The name in CURRENT may lack its
    // newline.
    const auto is_prefix = [&] {
      return bytes.size() + 1 == before.size() &&
             std::equal(bytes.begin(), bytes.end(), before.begin());
    };
    harmless = bytes == before || (which == 0 && (!resealed || bytes.size() < kMinSealBytes)) ||
               (which == 1 && is_prefix());
  }
  const Status status = CheckCatalogSeal(fs, "/c");
  RHIZOME_CHECK(status.ok() || status.code() == StatusCode::kCorruption);
  if (!harmless) RHIZOME_CHECK(!status.ok());
  RHIZOME_CHECK(BreakCatalogSeal(fs, "/c").ok() && CheckCatalogSeal(fs, "/c").ok());
  static_cast<void>(SealCatalog(fs, "/c").ok());
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  for (std::uint8_t kind = 0; kind < 12; ++kind) AddEdits(seeds, {kind}, 60, 200);
  return seeds;
}
