#include "storage/array/file_copy.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/io/files.h"
#include "storage/io/stored_file.h"

namespace rhizome {
inline namespace internal {

namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 20;  // one read; bounds the memory of a copy

}  // namespace

Status CopyFile(FileSystem& fs, const Path& from, const Path& to, std::uint64_t size_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(const auto source, fs.OpenRead(from));
  RHIZOME_ASSIGN_OR_RETURN(const auto target, fs.CreateFile(to));
  std::vector<std::byte> memory(std::min<std::uint64_t>(kCopyBytes, size_bytes));
  for (std::uint64_t done = 0; done < size_bytes;) {
    const auto piece =
        std::span(memory).first(std::min<std::uint64_t>(memory.size(), size_bytes - done));
    RHIZOME_RETURN_IF_ERROR(ReadExactly(*source, done, piece));
    RHIZOME_RETURN_IF_ERROR(target->Append(piece));
    done += piece.size();
  }
  RHIZOME_RETURN_IF_ERROR(target->Sync());
  return target->Close();
}

Status LinkOrCopyFile(FileSystem& fs, const Path& from, const Path& to, std::uint64_t size_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(const FileInfo info, MissingIsDamage(fs.Stat(from), from));
  if (info.kind != DirectoryEntry::Kind::kFile || info.size_bytes != size_bytes)
    return Status::Corruption(
        fmt::format("'{}' is not a file of {} bytes", from.string(), size_bytes));
  const Status linked = fs.LinkFile(from, to);
  if (linked.code() != StatusCode::kUnsupported) return linked;
  return CopyFile(fs, from, to, size_bytes);
}

}  // namespace internal
}  // namespace rhizome
