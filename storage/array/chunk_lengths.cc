#include "storage/array/chunk_lengths.h"

#include <fmt/format.h>

#include "storage/base/mutant.h"
#include "storage/io/stored_file.h"

namespace rhizome {
inline namespace internal {

Status CheckChunkLengths(const ChunkArray& array) {
  if (RHIZOME_MUTANT("claimed lengths are believed")) return Status::Ok();
  for (std::uint64_t slot = 0; slot < array.slots().size(); ++slot) {
    const FileEntry& expected = **array.ChunkFile(array.slots().ChunkAt(slot));
    const Path path = array.root() / expected.path;
    const auto info = MissingIsDamage(array.fs().Stat(path), path);
    if (!info) return info.error();
    if (info->kind != DirectoryEntry::Kind::kFile || info->size_bytes != expected.size_bytes)
      return Status::Corruption(fmt::format("'{}': {} bytes long, but the manifest says {}",
                                            path.string(), info->size_bytes, expected.size_bytes));
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
