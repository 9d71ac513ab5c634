#include <algorithm>
#include <cstring>
#include <string_view>

#include "edits.h"
#include "manifests.h"
#include "sections.h"
#include "seeds.h"
#include "storage/array/manifest_format.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/maintenance/backup_format.h"

namespace {

using namespace rhizome;

constexpr std::size_t kSealBytes = sizeof(std::uint32_t);

/// Returns a sample record of version 1, without its seal. Version 1 has no states.
const std::vector<std::byte>& Sample() {
  static const auto* const sample = [] {
    BackupRecord record{.number = 3,
                        .unix_seconds = 1'700'000'000,
                        .sequence = 9,
                        .base_sequence = 4,
                        .delta_entries = 2,
                        .delta = {.path = {}, .size_bytes = 100, .xxh3 = {}, .crc32c = 7},
                        .manifest = fuzzing::SampleManifest()};
    auto* bytes = new std::vector<std::byte>(EncodeBackupRecord(record, fuzzing::FuzzStoreId()));
    bytes->resize(bytes->size() - kSealBytes);
    return bytes;
  }();
  return *sample;
}

void Seal(std::vector<std::byte>& bytes) {
  const std::uint32_t seal = Crc32c(bytes);
  const auto* const begin = reinterpret_cast<const std::byte*>(&seal);
  bytes.insert(bytes.end(), begin, begin + kSealBytes);
}

void CheckRefused(const Status& status) {
  RHIZOME_CHECK(status.code() == StatusCode::kCorruption ||
                status.code() == StatusCode::kUnsupported);
}

void Check(std::span<const std::byte> bytes) {
  const auto record = DecodeBackupRecord(bytes, fuzzing::FuzzStoreId());
  if (!record) return CheckRefused(record.error());
  RHIZOME_CHECK(std::ranges::equal(EncodeBackupRecord(*record, fuzzing::FuzzStoreId()), bytes));
}

void CheckText(std::string_view text) {
  const auto id = ParseBackupText(text);
  if (!id) return CheckRefused(id.error());
  const auto again = ParseBackupText(BackupText(*id));  // in small letters
  RHIZOME_CHECK(again.has_value() && again->bytes == id->bytes);
}

/// Returns a sample record of version 2, without its seal.
std::vector<std::byte> SampleWithStates() {
  BackupRecord record{.number = 3, .sequence = 9, .base_sequence = 4, .last_delta = 8};
  record.base_state.commits.fill(std::byte{1});
  record.state.commits.fill(std::byte{2});
  record.state.leader = LeaderState{.store = fuzzing::FuzzStoreId(), .commit = 5, .commits = {}};
  record.manifest = fuzzing::SampleManifest();
  std::vector<std::byte> bytes = EncodeBackupRecord(record, fuzzing::FuzzStoreId());
  bytes.resize(bytes.size() - kSealBytes);
  return bytes;
}

/// Builds a valid record whose manifest has edits; all seals are correct. The bytes around the
/// manifest are unchanged.
std::vector<std::byte> WithOtherManifest(std::span<const std::uint8_t> input) {
  const std::vector<std::byte> manifest =
      EncodeManifest(fuzzing::SampleManifest(), fuzzing::FuzzStoreId());
  std::vector<std::byte> edited = fuzzing::WithEdits(
      std::vector<std::byte>(manifest.begin(), manifest.end() - kSealBytes), input);
  Seal(edited);
  const std::vector<std::byte>& sample = Sample();
  std::vector<std::byte> bytes(sample.begin(),
                               sample.end() - static_cast<std::ptrdiff_t>(manifest.size()));
  const std::uint64_t length = edited.size();
  std::memcpy(bytes.data() + bytes.size() - sizeof(length), &length, sizeof(length));
  bytes.insert(bytes.end(), edited.begin(), edited.end());
  return bytes;
}

}  // namespace

// Decodes raw bytes, a valid record with edits and a correct seal, a record with edits in its
// manifest, and the text of BACKUP. Each must be rejected, or decode to a value that encodes to the
// same bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  std::vector<std::byte> bytes;
  switch (data[0] % 6) {
    case 0:
      Check(std::as_bytes(input));
      return 0;
    case 1:
      CheckText({reinterpret_cast<const char*>(input.data()), input.size()});
      return 0;
    case 2:
      CheckText(fuzzing::WithEdits(BackupText(fuzzing::FuzzStoreId()), input));
      return 0;
    case 3:
      bytes = fuzzing::WithEdits(Sample(), input);
      break;
    case 5:
      bytes = fuzzing::WithEdits(SampleWithStates(), input);
      break;
    default:
      bytes = WithOtherManifest(input);
  }
  Seal(bytes);
  Check(bytes);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  std::vector<std::byte> record = Sample();
  Seal(record);
  AddChanged(seeds, Joined({0}, record), 1, 40);
  AddChanged(seeds, Joined({1}, BackupText(FuzzStoreId())), 1);
  AddEdits(seeds, {2}, BackupText(FuzzStoreId()).size());
  AddEdits(seeds, {3}, Sample().size());
  AddEdits(seeds, {5}, SampleWithStates().size());
  AddEdits(seeds, {4}, EncodeManifest(SampleManifest(), FuzzStoreId()).size() - kSealBytes);
  return seeds;
}
