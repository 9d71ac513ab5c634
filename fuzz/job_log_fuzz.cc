#include <algorithm>
#include <string>
#include <vector>

#include "edits.h"
#include "seeds.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/files.h"
#include "storage/section/job_log.h"
#include "testing/fake_file_system.h"

namespace {

using namespace rhizome;
using testing::FakeFileSystem;

const Path kLog = "/log";
constexpr std::size_t kHeadBytes = 16;
constexpr std::size_t kRecordHeadBytes = 24;

std::vector<std::byte> Sample() {
  FakeFileSystem fs;
  const auto log = JobLog::Open(fs, kLog);
  RHIZOME_CHECK(log.has_value());
  for (const char* const record : {"first", "", "the third record", "4"})
    RHIZOME_CHECK((*log)->Append(record).ok());
  return *ReadWholeFile(fs, kLog, 1 << 20);
}

/// Corrects the checksums of the records, up to the first that extends beyond the file.
void Reseal(std::vector<std::byte>& log) {
  for (std::size_t at = kHeadBytes; at + kRecordHeadBytes <= log.size();) {
    std::byte* const head = log.data() + at;
    const std::size_t length = LoadLittle<std::uint32_t>(head + 4);
    if (length > log.size() - at - kRecordHeadBytes) return;
    std::uint32_t crc = Crc32c(std::span(head + 4, 12));
    crc = Crc32c(std::span(head + kRecordHeadBytes, length), crc);
    StoreLittle(head + 16, crc);
    at += (kRecordHeadBytes + length + 7) / 8 * 8;
  }
}

}  // namespace

// Opens raw bytes as the log of a job, and a valid log with edits, with or without corrected
// checksums. The log must be rejected, or opened; after an append it must contain the new record
// and all earlier ones.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::uint8_t> input(data + 1, size - 1);
  const auto raw = std::as_bytes(input);
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  if (data[0] % 3 != 0) bytes = fuzzing::WithEdits(Sample(), input);
  if (data[0] % 3 == 2) Reseal(bytes);
  FakeFileSystem fs;
  RHIZOME_CHECK(WriteWholeFile(fs, kLog, bytes).ok());
  std::vector<std::string> records;
  {
    const auto log = JobLog::Open(fs, kLog);
    if (!log) {
      RHIZOME_CHECK(log.error().code() == StatusCode::kCorruption ||
                    log.error().code() == StatusCode::kUnsupported);
      return 0;
    }
    records = (*log)->records();
    RHIZOME_CHECK((*log)->Append("one more").ok());
    RHIZOME_CHECK(!(*log)->Append(std::string(JobLog::kMaxRecordBytes + 1, 'x')).ok());
  }
  records.emplace_back("one more");
  const auto again = JobLog::Open(fs, kLog);
  RHIZOME_CHECK(again.has_value() && (*again)->records() == records);
  return 0;
}

std::vector<rhizome::fuzzing::Seed> rhizome::fuzzing::MakeSeeds() {
  std::vector<Seed> seeds;
  AddChanged(seeds, Joined({0}, Sample()), 1, 400);
  AddEdits(seeds, {1}, Sample().size(), 800);
  AddEdits(seeds, {2}, Sample().size(), 1500);
  std::vector<std::byte> zeros(40);
  AddChanged(seeds, Joined({0}, zeros), 1, 60);
  return seeds;
}
