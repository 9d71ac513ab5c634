#include "storage/array/array_files.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "storage/base/check.h"
#include "storage/io/io_queue.h"
#include "storage/io/stored_file.h"

namespace rhizome {
inline namespace internal {
namespace {

// An eighth of the process's limit, so that there are descriptors for several arrays and for the
// rest of the program.
std::size_t MostOpenFiles() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return std::clamp<std::size_t>(limit.rlim_cur / 8, 16, 2048);
}

}  // namespace

ArrayFiles::ArrayFiles(const ChunkArray& array, bool direct, std::size_t max_open)
    : fs_(array.fs()),
      root_(array.root()),
      direct_(direct),
      max_open_(max_open == 0 ? MostOpenFiles() : max_open),
      chunk_count_(array.entry().chunk_count()),
      slots_(array.slots()) {
  for (std::uint64_t slot = 0; slot < slots_.size(); ++slot)
    chunks_.push_back(**array.ChunkFile(slots_.ChunkAt(slot)));
  files_.resize(chunks_.size());
}

Result<std::shared_ptr<ReadableFile>> ArrayFiles::Open(std::uint64_t chunk, bool must) {
  RHIZOME_RETURN_IF_ERROR(owner_.Check("a reader of rows"));
  const std::uint64_t slot = slots_.Find(chunk);
  if (slot == ChunkSlots::kNone)
    return Fail(Status::InvalidArgument(fmt::format(
        "chunk {} {}: the array below '{}' has {} chunks", chunk,
        chunk < chunk_count_ ? "has no file" : "does not exist", root_.string(), chunk_count_)));
  const MutexLock lock(mutex_);
  if (files_[slot] != nullptr) return files_[slot];
  if (open_ >= max_open_) CloseUnused();
  if (open_ >= max_open_ && !must) return nullptr;
  RHIZOME_ASSIGN_OR_RETURN(files_[slot], OpenChunk(slot));
  ++open_;
  return files_[slot];
}

// A use count of 1 cannot rise during this function, as files are handed out only under the lock.
void ArrayFiles::CloseUnused() {
  for (auto& file : files_) {
    if (file == nullptr || file.use_count() > 1) continue;
    RHIZOME_DCHECK(open_ != 0);
    file.reset();
    --open_;
  }
}

Result<std::shared_ptr<ReadableFile>> ArrayFiles::OpenChunk(std::uint64_t slot) const {
  const Path path = root_ / chunks_[slot].path;
  RHIZOME_ASSIGN_OR_RETURN(auto file, OpenStored(fs_, path, {.direct = direct_}));
  if (file->alignment_bytes() > AlignedBuffer::kAlignmentBytes) {
    RHIZOME_ASSIGN_OR_RETURN(file, OpenStored(fs_, path));
  }
  if (file->size_bytes() == chunks_[slot].size_bytes)
    return std::shared_ptr<ReadableFile>(std::move(file));
  return Fail(
      Status::Corruption(fmt::format("'{}': {} bytes long, but the manifest says {}", path.string(),
                                     file->size_bytes(), chunks_[slot].size_bytes)));
}

}  // namespace internal
}  // namespace rhizome
