// Members of zip archives. OpenZipMember finds the end of the central directory, reads the entries
// (ReadEntries), and opens the data of one of them (ZipMemberFile).
// Source: APPNOTE.TXT, .ZIP File Format Specification, version 6.3.

#include "index/input/zip_member.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "storage/base/check.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::size_t kEndBytes = 22;
constexpr std::size_t kMaxCommentBytes = 0xFFFF;
constexpr std::size_t kEnd64LocatorBytes = 20;
constexpr std::size_t kEnd64Bytes = 56;
constexpr std::size_t kEntryBytes = 46;
constexpr std::size_t kLocalBytes = 30;
constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{64} << 20;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // the value is in the zip64 field
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;

struct Entry {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_offset = 0;
};

/// Returns the little-endian number at `at`, or 0 beyond the end.
template <typename T>
T Number(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  if (at + sizeof(T) <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

Status Damaged(const Path& path, std::string_view why) {
  return Status::InvalidArgument(fmt::format("{}: damaged zip archive: {}", path.string(), why));
}

Result<std::vector<std::byte>> ReadPiece(ReadableFile& file, std::uint64_t offset,
                                         std::uint64_t bytes) {
  if (offset > file.size_bytes() || bytes > file.size_bytes() - offset)
    return Fail(Damaged(file.path(), "a part is beyond the end of the file"));
  std::vector<std::byte> piece(bytes);
  RHIZOME_RETURN_IF_ERROR(ReadExactly(file, offset, piece));
  return piece;
}

/// Replaces values that are in the zip64 field of an entry.
void TakeZip64(std::span<const std::byte> extra, Entry& entry) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const auto id = Number<std::uint16_t>(extra, at);
    const auto bytes = Number<std::uint16_t>(extra, at + 2);
    std::size_t value = at + 4;
    const auto take = [&](std::uint64_t& number) {
      if (number != kIn64) return;
      number = Number<std::uint64_t>(extra, value);
      value += 8;
    };
    if (id == 1) {
      take(entry.bytes);
      take(entry.stored_bytes);
      take(entry.header_offset);
    }
    at += 4 + std::size_t{bytes};
  }
}

/// The place of the central directory.
struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

Result<Directory> FindDirectory(ReadableFile& file) {
  const std::uint64_t size = file.size_bytes();
  const std::uint64_t tail_bytes =
      std::min<std::uint64_t>(size, kEndBytes + kMaxCommentBytes + kEnd64LocatorBytes);
  RHIZOME_ASSIGN_OR_RETURN(const auto tail, ReadPiece(file, size - tail_bytes, tail_bytes));
  const std::string_view text(reinterpret_cast<const char*>(tail.data()), tail.size());
  const std::size_t end = text.rfind("PK\x05\x06");
  if (end == text.npos || end + kEndBytes > text.size())
    return Fail(Damaged(file.path(), "it has no central directory; was it cut off?"));
  Directory directory{.offset = Number<std::uint32_t>(tail, end + 16),
                      .bytes = Number<std::uint32_t>(tail, end + 12)};
  if (directory.offset != kIn64 && directory.bytes != kIn64) return directory;
  if (end < kEnd64LocatorBytes) return Fail(Damaged(file.path(), "its zip64 directory is missing"));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto end64,
      ReadPiece(file, Number<std::uint64_t>(tail, end - kEnd64LocatorBytes + 8), kEnd64Bytes));
  return Directory{.offset = Number<std::uint64_t>(end64, 48),
                   .bytes = Number<std::uint64_t>(end64, 40)};
}

Result<std::vector<Entry>> ReadEntries(ReadableFile& file) {
  RHIZOME_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(file));
  if (directory.bytes > kMaxDirectoryBytes)
    return Fail(Damaged(file.path(), "its directory is too large"));
  RHIZOME_ASSIGN_OR_RETURN(const auto bytes, ReadPiece(file, directory.offset, directory.bytes));
  std::vector<Entry> entries;
  for (std::size_t at = 0; at + kEntryBytes <= bytes.size();) {
    const std::span<const std::byte> head = std::span(bytes).subspan(at);
    if (Number<std::uint32_t>(head, 0) != 0x02014b50) break;
    const std::size_t name_bytes = Number<std::uint16_t>(head, 28);
    const std::size_t extra_bytes = Number<std::uint16_t>(head, 30);
    const std::size_t all =
        kEntryBytes + name_bytes + extra_bytes + Number<std::uint16_t>(head, 32);
    if (all > head.size())
      return Fail(Damaged(file.path(), "an entry of its directory is cut off"));
    Entry entry{
        .name = std::string(reinterpret_cast<const char*>(head.data()) + kEntryBytes, name_bytes),
        .flags = Number<std::uint16_t>(head, 8),
        .method = Number<std::uint16_t>(head, 10),
        .crc = Number<std::uint32_t>(head, 16),
        .stored_bytes = Number<std::uint32_t>(head, 20),
        .bytes = Number<std::uint32_t>(head, 24),
        .header_offset = Number<std::uint32_t>(head, 42)};
    TakeZip64(head.subspan(kEntryBytes + name_bytes, extra_bytes), entry);
    entries.push_back(std::move(entry));
    at += all;
  }
  return entries;
}

/// The data of a member, read in order.
class ZipMemberFile final : public ReadableFile {
 public:
  ZipMemberFile(std::unique_ptr<ReadableFile> file, Entry entry, std::uint64_t data_offset)
      : file_(std::move(file)),
        entry_(std::move(entry)),
        path_(fmt::format("{}:{}", file_->path().string(), entry_.name)),
        next_(data_offset),
        left_(entry_.stored_bytes) {}
  ~ZipMemberFile() override {
    if (started_) inflateEnd(&zlib_);
  }
  ZipMemberFile(const ZipMemberFile&) = delete;
  ZipMemberFile& operator=(const ZipMemberFile&) = delete;

  Result<std::size_t> ReadAt(std::uint64_t offset_bytes, std::span<std::byte> out) override {
    RHIZOME_CHECK(offset_bytes == done_);
    const std::size_t wanted = std::min<std::uint64_t>(out.size(), entry_.bytes - done_);
    if (wanted == 0) return std::size_t{0};
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, entry_.method == kStored
                                                          ? ReadStored(out.first(wanted))
                                                          : Inflate(out.first(wanted)));
    done_ += bytes;
    crc_ = crc32_z(crc_, reinterpret_cast<const Bytef*>(out.data()), bytes);
    if (bytes == 0) return Fail(Damaged(path_, "its data ends early"));
    if (done_ == entry_.bytes && crc_ != entry_.crc)
      return Fail(Damaged(path_, "the checksum of its data is wrong"));
    return bytes;
  }
  std::uint64_t size_bytes() const override { return entry_.bytes; }
  const Path& path() const override { return path_; }

 private:
  Result<std::size_t> ReadStored(std::span<std::byte> out) {
    out = out.first(std::min<std::uint64_t>(out.size(), left_));
    if (out.empty()) return std::size_t{0};
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, file_->ReadAt(next_, out));
    next_ += bytes;
    left_ -= bytes;
    return bytes;
  }

  Result<std::size_t> Inflate(std::span<std::byte> out) {
    if (!started_) {
      if (inflateInit2(&zlib_, -MAX_WBITS) != Z_OK)
        return Fail(Status::OutOfMemory(fmt::format("{}: zlib could not start", path_.string())));
      started_ = true;
      block_.resize(kBlockBytes);
    }
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), 1U << 30));
    const uInt room = zlib_.avail_out;
    while (zlib_.avail_out == room) {
      if (zlib_.avail_in == 0) {
        RHIZOME_ASSIGN_OR_RETURN(const std::size_t bytes, ReadStored(block_));
        if (bytes == 0) return std::size_t{0};
        zlib_.next_in = reinterpret_cast<Bytef*>(block_.data());
        zlib_.avail_in = static_cast<uInt>(bytes);
      }
      const int code = inflate(&zlib_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) break;
      if (code != Z_OK && code != Z_BUF_ERROR) return Fail(Damaged(path_, "its data is wrong"));
    }
    return static_cast<std::size_t>(room - zlib_.avail_out);
  }

  std::unique_ptr<ReadableFile> file_;
  const Entry entry_;
  const Path path_;
  std::uint64_t next_;      // offset in the archive of the next stored byte
  std::uint64_t left_;      // stored bytes not yet read
  std::uint64_t done_ = 0;  // bytes of the member returned so far
  uLong crc_ = 0;
  bool started_ = false;
  z_stream zlib_{};
  std::vector<std::byte> block_;
};

}  // namespace

std::optional<NpzMember> ParseNpzMember(const Path& path) {
  const std::string text = path.string();
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon + 1 == text.size()) return std::nullopt;
  const std::string_view file = std::string_view(text).substr(0, colon);
  if (!file.ends_with(".npz")) return std::nullopt;
  return NpzMember{.file = file, .member = text.substr(colon + 1)};
}

Result<std::unique_ptr<ReadableFile>> OpenZipMember(FileSystem& fs, const Path& path,
                                                    const std::string& member) {
  std::error_code unresolved;
  const Path real = std::filesystem::canonical(path, unresolved);
  RHIZOME_ASSIGN_OR_RETURN(auto file, fs.OpenRead(unresolved ? path : real));
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(*file));
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.name == member; });
  if (found == entries.end()) {
    std::vector<std::string_view> names;
    for (const Entry& entry : entries) names.push_back(entry.name);
    return Fail(Status::NotFound(fmt::format("{}: there is no member '{}'; it has {}",
                                             path.string(), member, fmt::join(names, ", "))));
  }
  if ((found->flags & 1U) != 0 || (found->method != kStored && found->method != kDeflated))
    return Fail(Status::InvalidArgument(
        fmt::format("{}: the member '{}' is encrypted, or neither stored nor deflated",
                    path.string(), member)));
  RHIZOME_ASSIGN_OR_RETURN(const auto local, ReadPiece(*file, found->header_offset, kLocalBytes));
  if (Number<std::uint32_t>(local, 0) != 0x04034b50)
    return Fail(Damaged(path, "the header of a member is wrong"));
  const std::uint64_t data = found->header_offset + kLocalBytes + Number<std::uint16_t>(local, 26) +
                             Number<std::uint16_t>(local, 28);
  return std::make_unique<ZipMemberFile>(std::move(file), *found, data);
}

}  // namespace internal
}  // namespace rhizome
