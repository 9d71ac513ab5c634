#include "storage/section/job_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "storage/base/bytes.h"
#include "storage/base/check.h"
#include "storage/base/hash.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {

namespace {

// A log starts with a header of magic, version and reserved bytes. Records follow, each at a
// multiple of 8 bytes: marker, length, index, CRC-32C of length, index and payload, reserved bytes,
// payload, zero padding to a multiple of 8 (storage/FORMAT.md, "Job log").
//
// Open reads the whole log (ReadContents): it checks the header (CheckHead), decodes records up to
// the first that is incomplete (Decode), cuts off the torn tail, and continues to append after it.
constexpr std::string_view kMagic = "RZJOBLOG";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 16;
constexpr std::uint32_t kMarker = 0x4C4A5A52;  // "RZJL"
constexpr std::size_t kRecordHeadBytes = 24;
constexpr std::uint64_t kMaxLogBytes = std::uint64_t{1} << 30;

std::vector<std::byte> EncodeHead() {
  ByteWriter out;
  out.Bytes(std::as_bytes(std::span(kMagic)));
  out.Number(kVersion);
  out.Number(std::uint32_t{0});
  return out.Take();
}

std::uint32_t RecordCrc(std::uint32_t length, std::uint64_t index,
                        std::span<const std::byte> payload) {
  ByteWriter head;
  head.Number(length);
  head.Number(index);
  return Crc32c(payload, Crc32c(head.bytes()));
}

std::vector<std::byte> EncodeRecord(std::uint64_t index, std::string_view record) {
  const auto payload = std::as_bytes(std::span(record));
  const auto length = static_cast<std::uint32_t>(record.size());
  ByteWriter out;
  out.Number(kMarker);
  out.Number(length);
  out.Number(index);
  out.Number(RecordCrc(length, index, payload));
  out.Number(std::uint32_t{0});
  out.Bytes(payload);
  std::vector<std::byte> bytes = out.Take();
  RHIZOME_DCHECK(bytes.size() == kRecordHeadBytes + record.size());
  bytes.resize(AlignUp(bytes.size(), 8));
  return bytes;
}

struct Record {
  std::string payload;
  std::uint64_t index = 0;
  std::size_t end = 0;
};

/// Returns the record at `offset`; nullopt unless it is complete and its checksum is correct.
std::optional<Record> DecodeRecord(std::span<const std::byte> log, std::size_t offset) {
  if (log.size() - offset < kRecordHeadBytes) return std::nullopt;
  const std::byte* head = log.data() + offset;
  const auto length = LoadLittle<std::uint32_t>(head + 4);
  if (LoadLittle<std::uint32_t>(head) != kMarker || length > JobLog::kMaxRecordBytes)
    return std::nullopt;
  const std::size_t end = AlignUp(offset + kRecordHeadBytes + length, 8);
  if (end > log.size() || LoadLittle<std::uint32_t>(head + 20) != 0) return std::nullopt;
  const auto index = LoadLittle<std::uint64_t>(head + 8);
  const auto payload = log.subspan(offset + kRecordHeadBytes, length);
  if (RecordCrc(length, index, payload) != LoadLittle<std::uint32_t>(head + 16))
    return std::nullopt;
  const auto padding =
      log.subspan(offset + kRecordHeadBytes + length, end - offset - kRecordHeadBytes - length);
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; }))
    return std::nullopt;
  return Record{{reinterpret_cast<const char*>(payload.data()), payload.size()}, index, end};
}

struct Contents {
  std::vector<std::string> records;
  std::size_t sound_bytes = 0;
};

// A crash can only tear the end of the log. A valid record after an invalid part proves that this
// part was once complete and that its records are lost: damage.
Result<Contents> Decode(std::span<const std::byte> log) {
  const std::vector<std::byte> head = EncodeHead();
  const bool head_sound =
      log.size() >= kHeadBytes && std::equal(head.begin(), head.end(), log.begin());
  Contents contents;
  if (head_sound) contents.sound_bytes = kHeadBytes;
  while (contents.sound_bytes > 0) {
    auto record = DecodeRecord(log, contents.sound_bytes);
    if (!record || record->index != contents.records.size()) break;
    contents.records.push_back(std::move(record->payload));
    contents.sound_bytes = record->end;
  }
  for (std::size_t at = AlignUp(contents.sound_bytes, 8); at < log.size(); at += 8) {
    if (!DecodeRecord(log, at)) continue;
    return Fail(Status::Corruption(fmt::format(
        "offset {}: damaged, but a sound record follows at offset {}", contents.sound_bytes, at)));
  }
  return contents;
}

bool IsTornHead(std::span<const std::byte> log) {
  if (log.size() < kHeadBytes) return true;
  return std::all_of(log.begin(), log.begin() + kHeadBytes,
                     [](std::byte b) { return b == std::byte{0}; });
}

Status CheckHead(std::span<const std::byte> log) {
  if (IsTornHead(log)) return Status::Ok();
  if (!std::equal(kMagic.begin(), kMagic.end(), reinterpret_cast<const char*>(log.data())))
    return Status::Corruption("offset 0, magic: not a job log");
  const auto version = LoadLittle<std::uint32_t>(log.data() + 8);
  if (version > kVersion)
    return Status::Unsupported(
        fmt::format("job log format {} is newer than this build's {}", version, kVersion));
  if (version == 0 || LoadLittle<std::uint32_t>(log.data() + 12) != 0)
    return Status::Corruption("offset 8, version: damaged");
  return Status::Ok();
}

Result<Contents> ReadContents(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadWholeFile(fs, path, kMaxLogBytes));
  if (const Status head = CheckHead(bytes); !head.ok())
    return Fail(head.WithContext(path.string()));
  auto decoded = Decode(bytes);
  if (!decoded) return Fail(decoded.error().WithContext(path.string()));
  return decoded;
}

}  // namespace

Result<std::vector<std::string>> JobLog::ReadRecords(FileSystem& fs, const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(Contents contents, ReadContents(fs, path));
  return std::move(contents.records);
}

Result<std::unique_ptr<JobLog>> JobLog::Open(FileSystem& fs, const Path& path) {
  std::unique_ptr<JobLog> log(new JobLog);
  Contents contents;
  if (auto found = ReadContents(fs, path)) {
    contents = *std::move(found);
    RHIZOME_ASSIGN_OR_RETURN(log->file_, fs.OpenAppend(path, contents.sound_bytes));
  } else {
    if (found.error().code() != StatusCode::kNotFound) return Fail(found.error());
    RHIZOME_ASSIGN_OR_RETURN(log->file_, fs.CreateFile(path));
  }
  if (contents.sound_bytes == 0) RHIZOME_RETURN_IF_ERROR(log->file_->Append(EncodeHead()));
  RHIZOME_RETURN_IF_ERROR(log->file_->Sync());
  RHIZOME_RETURN_IF_ERROR(fs.SyncDirectory(path.parent_path()));
  log->records_ = std::move(contents.records);
  log->count_ = log->records_.size();
  return log;
}

Status JobLog::Append(std::string_view record) {
  if (record.size() > kMaxRecordBytes)
    return Status::InvalidArgument(
        fmt::format("a record of {} bytes is longer than {}", record.size(), kMaxRecordBytes));
  RHIZOME_RETURN_IF_ERROR(file_->Append(EncodeRecord(count_, record)));
  RHIZOME_RETURN_IF_ERROR(file_->Sync());
  ++count_;
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
