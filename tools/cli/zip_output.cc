#include "tools/cli/zip_output.h"

#include <fmt/format.h>
#include <zlib.h>

#include "storage/io/files.h"

namespace rhizome {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kCentralSignature = 0x02014b50;
constexpr std::uint32_t kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocator64Signature = 0x07064b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::uint16_t kZipVersion = 20;
constexpr std::uint16_t kVersion64 = 45;
// 1980-01-01, a fixed time, so that equal content results in equal archives
constexpr std::uint32_t kNoTime = 0x00210000;
constexpr std::uint32_t kInZip64 = 0xFFFFFFFF;

/// Appends little-endian numbers.
class Record {
 public:
  template <typename T>
  Record& Put(T number) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_ += static_cast<char>((static_cast<std::uint64_t>(number) >> (8 * i)) & 0xFF);
    }
    return *this;
  }
  Record& Put16(std::uint64_t number) { return Put(static_cast<std::uint16_t>(number)); }
  Record& Put32(std::uint64_t number) { return Put(static_cast<std::uint32_t>(number)); }
  Record& Put64(std::uint64_t number) { return Put(number); }
  Record& PutText(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::uint32_t Crc(std::uint32_t seed, std::span<const std::byte> bytes) {
  // The data pointer of an empty span may be null, which zlib interprets as a request to restart
  // the checksum.
  if (bytes.empty()) return seed;
  return static_cast<std::uint32_t>(
      crc32_z(seed, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

Result<ZipOutput> ZipOutput::Create(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  return ZipOutput(std::move(file));
}

Status ZipOutput::Append(std::string_view bytes) {
  RHIZOME_RETURN_IF_ERROR(file_.Append(std::as_bytes(std::span(bytes))));
  offset_bytes_ += bytes.size();
  return Status::Ok();
}

Status ZipOutput::Add(std::string_view name, std::string_view head,
                      std::span<const std::byte> body) {
  const std::uint64_t size = head.size() + body.size();
  if (size >= kInZip64) {
    return Status::InvalidArgument(fmt::format(
        "{}: a member of {} bytes does not fit into the archive; use smaller batches", name, size));
  }
  const std::uint32_t crc = Crc(Crc(0, std::as_bytes(std::span(head))), body);
  Member member{std::string(name), crc, static_cast<std::uint32_t>(size), offset_bytes_};
  Record local;
  local.Put32(kLocalSignature).Put16(kZipVersion).Put16(0).Put16(0).Put32(kNoTime);
  local.Put32(crc).Put32(size).Put32(size).Put16(name.size()).Put16(0).PutText(name);
  RHIZOME_RETURN_IF_ERROR(Append(local.bytes()));
  RHIZOME_RETURN_IF_ERROR(Append(head));
  RHIZOME_RETURN_IF_ERROR(Append({reinterpret_cast<const char*>(body.data()), body.size()}));
  members_.push_back(std::move(member));
  return Status::Ok();
}

Status ZipOutput::Finish() {
  const std::uint64_t directory = offset_bytes_;
  for (const Member& member : members_) {
    const bool far = member.offset_bytes >= kInZip64;
    Record entry;
    entry.Put32(kCentralSignature).Put16(far ? kVersion64 : kZipVersion);
    entry.Put16(far ? kVersion64 : kZipVersion).Put16(0).Put16(0).Put32(kNoTime);
    entry.Put32(member.crc32).Put32(member.size_bytes).Put32(member.size_bytes);
    entry.Put16(member.name.size()).Put16(far ? 12 : 0).Put16(0).Put16(0).Put16(0).Put32(0);
    entry.Put32(far ? kInZip64 : member.offset_bytes).PutText(member.name);
    // zip64 extra field: only the offset
    if (far) entry.Put16(1).Put16(8).Put64(member.offset_bytes);
    RHIZOME_RETURN_IF_ERROR(Append(entry.bytes()));
  }
  const std::uint64_t count = members_.size();
  const std::uint64_t directory_bytes = offset_bytes_ - directory;
  const bool zip64 = count >= 0xFFFF || directory >= kInZip64 || directory_bytes >= kInZip64;
  Record end;
  if (zip64) {
    const std::uint64_t end64 = offset_bytes_;
    end.Put32(kEnd64Signature).Put64(44).Put16(kVersion64).Put16(kVersion64).Put32(0).Put32(0);
    end.Put64(count).Put64(count).Put64(directory_bytes).Put64(directory);
    end.Put32(kLocator64Signature).Put32(0).Put64(end64).Put32(1);
  }
  end.Put32(kEndSignature).Put16(0).Put16(0);
  end.Put16(zip64 ? 0xFFFF : count).Put16(zip64 ? 0xFFFF : count);
  end.Put32(zip64 ? kInZip64 : directory_bytes).Put32(zip64 ? kInZip64 : directory).Put16(0);
  RHIZOME_RETURN_IF_ERROR(Append(end.bytes()));
  return file_.Commit();
}

}  // namespace rhizome
