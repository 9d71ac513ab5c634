#include "gnn/passes/scratch_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "storage/io/files.h"

// ScratchSpace pools buffers by size (Buffers). Take returns an unused buffer or reserves a new
// one, and the buffer goes back to the pool with its last reference (Held). ScratchArray::Store
// pads and hashes a chunk and writes its file; Load reads the file and checks its size and hash.

namespace rhizome {
inline namespace internal {

std::uint64_t ScratchShape::RowsIn(std::uint64_t chunk) const {
  return std::min(chunk_rows, rows - chunk * chunk_rows);
}

std::uint64_t ScratchShape::BytesIn(std::uint64_t chunk) const {
  return (RowsIn(chunk) * dim * sizeof(float) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
}

std::uint64_t ScratchShape::AllBytes() const {
  return rows == 0 ? 0 : (chunks() - 1) * BytesIn(0) + BytesIn(chunks() - 1);
}

/// The buffers of a space. Unused ones are kept by size.
struct ScratchSpace::Buffers {
  Mutex mutex;
  std::map<std::uint64_t, std::vector<AlignedBuffer>> free RHIZOME_GUARDED_BY(mutex);  // by size
  std::uint64_t bytes RHIZOME_GUARDED_BY(mutex) = 0;  // used and unused
  std::uint64_t room RHIZOME_GUARDED_BY(mutex) = std::numeric_limits<std::uint64_t>::max();

  /// Returns an unused buffer of this size. If there is none, frees unused buffers of other sizes
  /// with as many bytes, and returns an empty buffer.
  AlignedBuffer TakeFree(std::uint64_t wanted) {
    const MutexLock lock(mutex);
    std::vector<AlignedBuffer>& same = free[wanted];
    if (!same.empty()) {
      AlignedBuffer buffer = std::move(same.back());
      same.pop_back();
      return buffer;
    }
    GiveBack(wanted);
    return {};
  }

  /// Counts a new buffer.
  void Add(std::uint64_t size) {
    const MutexLock lock(mutex);
    bytes += size;
  }

  /// Keeps a buffer that is no longer used, or frees it if the limit is exceeded.
  void Return(AlignedBuffer buffer) {
    const MutexLock lock(mutex);
    const std::uint64_t size = buffer.size_bytes();
    if (bytes > room) {
      bytes -= size;
    } else {
      free[size].push_back(std::move(buffer));
    }
  }

  void SetRoom(std::uint64_t most) {
    const MutexLock lock(mutex);
    room = most;
    if (bytes > room) GiveBack(bytes - room);
  }

  /// Frees unused buffers of at least `wanted` bytes, or all of them.
  void GiveBack(std::uint64_t wanted) RHIZOME_REQUIRES(mutex) {
    std::uint64_t given = 0;
    for (auto& [size, buffers] : free) {
      for (; given < wanted && !buffers.empty(); buffers.pop_back()) given += size;
    }
    bytes -= given;
  }
};

/// A buffer in use. It goes back to the pool with its last reference.
struct ScratchSpace::Held {
  Held(AlignedBuffer taken, std::shared_ptr<Buffers> from)
      : buffer(std::move(taken)), buffers(std::move(from)) {}
  ~Held() { buffers->Return(std::move(buffer)); }
  AlignedBuffer buffer;
  std::shared_ptr<Buffers> buffers;
};

ScratchSpace::ScratchSpace(FileSystem& fs, Path folder)
    : fs_(fs), folder_(std::move(folder)), buffers_(std::make_shared<Buffers>()), remover_(fs) {}

Result<std::shared_ptr<float[]>> ScratchSpace::Take(std::uint64_t bytes) {
  AlignedBuffer buffer = buffers_->TakeFree(bytes);
  if (buffer.size_bytes() == 0) {
    // Reserved memory returns to the system when it is freed, however fragmented the heap is.
    RHIZOME_ASSIGN_OR_RETURN(buffer, AlignedBuffer::Reserve(bytes, bytes));
    buffers_->Add(bytes);
  }
  auto held = std::make_shared<Held>(std::move(buffer), buffers_);
  auto* const floats = reinterpret_cast<float*>(held->buffer.bytes().data());
  return std::shared_ptr<float[]>(std::move(held), floats);
}

void ScratchSpace::SetRoom(std::uint64_t bytes) { buffers_->SetRoom(bytes); }

std::uint64_t ScratchSpace::held_bytes() const {
  const MutexLock lock(buffers_->mutex);
  return buffers_->bytes;
}

ScratchMoved ScratchSpace::moved() const {
  const MutexLock lock(mutex_);
  return {.read = read_,
          .written = written_,
          .busy_seconds = busy_seconds_ + (moving_ > 0 ? watch_.seconds() : 0)};
}

void ScratchSpace::RemoveFile(const Path& path) {
  const MutexLock lock(mutex_);
  if (protected_.contains(path)) {
    postponed_.insert(path);
  } else {
    remover_.Remove(path);
  }
}

void ScratchSpace::Protect(std::set<Path> paths) {
  const MutexLock lock(mutex_);
  protected_ = std::move(paths);
  for (auto path = postponed_.begin(); path != postponed_.end();) {
    const bool stays = protected_.contains(*path);
    if (!stays) remover_.Remove(*path);
    path = stays ? std::next(path) : postponed_.erase(path);
  }
}

ScratchSpace::Moving::Moving(ScratchSpace& space) : space_(space) {
  const MutexLock lock(space_.mutex_);
  if (space_.moving_++ == 0) space_.watch_ = Stopwatch();
}

ScratchSpace::Moving::~Moving() {
  const MutexLock lock(space_.mutex_);
  if (--space_.moving_ == 0) space_.busy_seconds_ += space_.watch_.seconds();
}

ScratchArray::ScratchArray(ScratchSpace& space, ScratchShape shape, std::uint32_t id)
    : space_(space), shape_(std::move(shape)), id_(id), files_(shape_.chunks()) {}

Path ScratchArray::FileOf(std::uint64_t step, std::uint64_t chunk) const {
  return space_.folder() / fmt::format("{}.{}.{}", shape_.name, step, chunk);
}

void ScratchArray::Begin(std::uint64_t step, std::span<const ScratchFile> files) {
  RemoveFiles();
  step_ = step;
  for (const ScratchFile& file : files)
    if (file.chunk < files_.size()) files_[file.chunk] = {.there = true, .hash = file.hash};
}

std::vector<ScratchFile> ScratchArray::Files() const {
  std::vector<ScratchFile> files;
  for (std::uint32_t chunk = 0; chunk < files_.size(); ++chunk)
    if (files_[chunk].there) files.push_back({.chunk = chunk, .hash = files_[chunk].hash});
  return files;
}

Status ScratchArray::Store(std::uint64_t chunk, float* values, bool counts) {
  ScratchSpace::Moving moving(space_);
  const std::uint64_t used = shape_.RowsIn(chunk) * shape_.dim;
  const std::uint64_t all = shape_.BytesIn(chunk) / sizeof(float);
  std::fill(values + used, values + all, 0.0F);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values, all));
  File& file = files_[chunk];
  space_.WaitForRemovalOf(FileOf(step_, chunk));
  if (file.there) RHIZOME_RETURN_IF_ERROR(space_.fs().RemoveFile(FileOf(step_, chunk)));
  file = {.there = true, .hash = Xxh3(bytes)};  // removed later, even if it is incomplete
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> out,
                           space_.fs().CreateFile(FileOf(step_, chunk)));
  RHIZOME_RETURN_IF_ERROR(out->Append(bytes));
  RHIZOME_RETURN_IF_ERROR(out->Close());
  if (counts) moving.CountWritten(bytes.size());
  return Status::Ok();
}

Result<std::shared_ptr<const float[]>> ScratchArray::Load(std::uint64_t chunk) {
  RHIZOME_ASSIGN_OR_RETURN(std::shared_ptr<float[]> values, Take(chunk));
  ScratchSpace::Moving moving(space_);
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                           space_.fs().OpenRead(FileOf(step_, chunk), {.direct = true}));
  const std::uint64_t size_bytes = shape_.BytesIn(chunk);
  const auto damaged = [&](std::string_view what) {
    return Fail(
        Status::Corruption(fmt::format("scratch file {} {}; run the job again with `resume`, which "
                                       "continues from its last checkpoint",
                                       FileOf(step_, chunk).string(), what)));
  };
  if (file->size_bytes() != size_bytes) return damaged("has another size than when it was written");
  const std::span<std::byte> bytes =
      std::as_writable_bytes(std::span(values.get(), size_bytes / sizeof(float)));
  RHIZOME_RETURN_IF_ERROR(ReadWhole(*file, bytes));
  if (Xxh3(bytes) != files_[chunk].hash) return damaged("differs from the bytes that were written");
  moving.CountRead(size_bytes);
  return std::shared_ptr<const float[]>(std::move(values));
}

void ScratchArray::RemoveFiles() {
  for (std::uint64_t chunk = 0; chunk < files_.size(); ++chunk) {
    if (!files_[chunk].there) continue;
    files_[chunk].there = false;
    space_.RemoveFile(FileOf(step_, chunk));
  }
}

}  // namespace internal
}  // namespace rhizome
