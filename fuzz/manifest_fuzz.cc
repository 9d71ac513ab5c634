#include <algorithm>
#include <array>
#include <cstring>

#include "edits.h"
#include "manifests.h"
#include "rhizome/manifest.h"
#include "sections.h"
#include "seeds.h"
#include "storage/array/manifest_format.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"

namespace {

using namespace rhizome;

constexpr std::size_t kHeadBytes = 40;  // magic, version, reserved, store id, length

/// Returns a manifest of version 3, or of version 6.
const std::vector<std::byte>& Sample(bool ends = false) {
  static const auto* const samples = new std::array<std::vector<std::byte>, 2>{
      EncodeManifest(fuzzing::SampleManifest(), fuzzing::FuzzStoreId()),
      EncodeManifest(fuzzing::SampleManifestWithEnds(), fuzzing::FuzzStoreId())};
  return (*samples)[ends ? 1 : 0];
}

/// Puts `body` between a correct header and a correct seal.
std::vector<std::byte> Sealed(std::span<const std::byte> body, bool ends = false) {
  std::vector<std::byte> bytes(Sample(ends).begin(), Sample(ends).begin() + kHeadBytes);
  bytes.insert(bytes.end(), body.begin(), body.end());
  const std::uint64_t length = bytes.size() + sizeof(std::uint32_t);
  std::memcpy(bytes.data() + kHeadBytes - sizeof(length), &length, sizeof(length));
  const std::uint32_t seal = Crc32c(bytes);
  const auto* end = reinterpret_cast<const std::byte*>(&seal);
  bytes.insert(bytes.end(), end, end + sizeof(seal));
  return bytes;
}

void Check(std::span<const std::byte> bytes) {
  const auto manifest = DecodeManifest(bytes, fuzzing::FuzzStoreId());
  if (!manifest) return;
  RHIZOME_CHECK(std::ranges::equal(EncodeManifest(*manifest, fuzzing::FuzzStoreId()), bytes));
  for (const FileEntry& file : manifest->files)
    RHIZOME_CHECK(manifest->FindFile(file.path) == &file);
  for (const ArrayEntry& array : manifest->arrays)
    RHIZOME_CHECK(manifest->FindArray(array.name) == &array);
  for (const ArraySeries& series : manifest->series) {
    RHIZOME_CHECK(manifest->FindSeries(series.name) == &series);
    for (const ArrayAlias& alias : series.aliases)
      RHIZOME_CHECK(manifest->FindArray(series.name + "@" + alias.name) != nullptr);
  }
}

}  // namespace

// Decodes raw bytes, an arbitrary body with a correct seal, and a valid manifest with edits. Each
// must be rejected, or decode to a manifest that encodes to the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  if (data[0] % 4 == 0) {
    Check(std::as_bytes(input));
  } else if (data[0] % 4 == 1) {
    Check(Sealed(std::as_bytes(input)));
  } else {
    const bool ends = data[0] % 4 == 3;
    std::vector<std::byte> body(Sample(ends).begin() + kHeadBytes, Sample(ends).end() - 4);
    Check(Sealed(fuzzing::WithEdits(std::move(body), input), ends));
  }
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  AddChanged(seeds, Joined({0}, Sample()), 1, 200);
  AddEdits(seeds, {2}, Sample().size() - kHeadBytes - 4, 4000);
  AddChanged(seeds, Joined({0}, Sample(true)), 1, 200);
  AddEdits(seeds, {3}, Sample(true).size() - kHeadBytes - 4, 4000);
  return seeds;
}
