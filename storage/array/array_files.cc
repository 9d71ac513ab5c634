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
      max_open_(max_open == 0 ? MostOpenFiles() : max_open) {
  for (std::uint64_t chunk = 0; chunk < array.entry().chunk_count(); ++chunk)
    chunks_.push_back(**array.ChunkFile(chunk));
  files_.resize(chunks_.size());
}

Result<std::shared_ptr<ReadableFile>> ArrayFiles::Open(std::uint64_t chunk, bool must) {
  RHIZOME_RETURN_IF_ERROR(owner_.Check("a reader of rows"));
  if (chunk >= chunks_.size())
    return Fail(Status::InvalidArgument(
        fmt::format("chunk {} does not exist: the array below '{}' has {} chunks", chunk,
                    root_.string(), chunks_.size())));
  const MutexLock lock(mutex_);
  if (files_[chunk] != nullptr) return files_[chunk];
  if (open_ >= max_open_) CloseUnused();
  if (open_ >= max_open_ && !must) return nullptr;
  RHIZOME_ASSIGN_OR_RETURN(files_[chunk], OpenChunk(chunk));
  ++open_;
  return files_[chunk];
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

Result<std::shared_ptr<ReadableFile>> ArrayFiles::OpenChunk(std::uint64_t chunk) const {
  const Path path = root_ / chunks_[chunk].path;
  RHIZOME_ASSIGN_OR_RETURN(auto file, OpenStored(fs_, path, {.direct = direct_}));
  if (file->alignment_bytes() > AlignedBuffer::kAlignmentBytes) {
    RHIZOME_ASSIGN_OR_RETURN(file, OpenStored(fs_, path));
  }
  if (file->size_bytes() == chunks_[chunk].size_bytes)
    return std::shared_ptr<ReadableFile>(std::move(file));
  return Fail(
      Status::Corruption(fmt::format("'{}': {} bytes long, but the manifest says {}", path.string(),
                                     file->size_bytes(), chunks_[chunk].size_bytes)));
}

}  // namespace internal
}  // namespace rhizome
