#include "rhizome/storage/file_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "rhizome/storage/hash.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/little_endian.h"

namespace rhizome {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr std::uint64_t kUnitBytes = AlignedBuffer::kAlignmentBytes;

}  // namespace

Status CheckFileBytes(FileSystem& fs, const Path& path, const FileEntry& entry,
                      const JobControl& control) {
  const auto differs = [&](std::string_view what) {
    return Status::Corruption(fmt::format("'{}': {}", path.string(), what));
  };
  RHIZOME_ASSIGN_OR_RETURN(const auto file, fs.OpenRead(path, {.direct = true}));
  if (file->size_bytes() != entry.size_bytes)
    return differs(fmt::format("{} bytes long, but the manifest says {}", file->size_bytes(),
                               entry.size_bytes));
  RHIZOME_ASSIGN_OR_RETURN(const AlignedBuffer buffer,
                           AlignedBuffer::Allocate(std::min<std::uint64_t>(
                               kPieceBytes, AlignUp(entry.size_bytes + 1, kUnitBytes))));
  StreamHash hash;
  for (std::uint64_t done = 0; done < entry.size_bytes;) {
    RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
    RHIZOME_ASSIGN_OR_RETURN(std::size_t got, file->ReadAt(done, buffer.bytes()));
    // A short read goes on at the next whole unit of O_DIRECT before where it ended.
    if (done + got < entry.size_bytes) got -= got % kUnitBytes;
    if (got == 0) return differs(fmt::format("offset {}: the file ends here", done));
    hash.Update(buffer.bytes().first(std::min<std::uint64_t>(got, entry.size_bytes - done)));
    done += got;
  }
  if (hash.xxh3() != entry.xxh3 || hash.crc32c() != entry.crc32c)
    return differs("its bytes do not have the hash that the manifest holds");
  return Status::Ok();
}

}  // namespace rhizome
