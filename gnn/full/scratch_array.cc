#include "rhizome/gnn/scratch_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome::inline internal {
namespace {

constexpr std::uint64_t kUnitBytes = AlignedBuffer::kAlignmentBytes;

}  // namespace

std::uint64_t ScratchShape::RowsIn(std::uint64_t chunk) const {
  return std::min(chunk_rows, rows - chunk * chunk_rows);
}

std::uint64_t ScratchShape::BytesIn(std::uint64_t chunk) const {
  return (RowsIn(chunk) * dim * sizeof(float) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
}

std::uint64_t ScratchShape::BytesAfter(std::uint64_t but) const {
  if (but >= chunks()) return 0;
  return (chunks() - 1 - but) * BytesIn(0) + BytesIn(chunks() - 1);
}

Status ScratchSpace::Prepare() {
  RHIZOME_RETURN_IF_ERROR(RemoveTree(fs_, folder_));
  return CreateDirectories(fs_, folder_);
}

Result<std::shared_ptr<float[]>> ScratchSpace::Take(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  auto found = buffers_.find(bytes);
  if (found == buffers_.end())
    found = buffers_.emplace(bytes, FloatBuffers(bytes / sizeof(float))).first;
  return found->second.Take();
}

ScratchArray::ScratchArray(ScratchSpace& space, ScratchShape shape, std::uint64_t resident_chunks)
    : space_(space),
      shape_(std::move(shape)),
      resident_(std::min(resident_chunks, shape_.chunks())),
      kept_(resident_),
      hashes_(shape_.chunks()),
      on_disk_(shape_.chunks(), 0) {}

Path ScratchArray::FileOf(std::uint64_t chunk) const {
  return space_.folder() / fmt::format("{}.{}", shape_.name, chunk);
}

Status ScratchArray::Write(std::uint64_t chunk, std::shared_ptr<float[]> values) {
  if (IsResident(chunk)) {
    kept_[chunk] = std::move(values);
    return Status::Ok();
  }
  const std::uint64_t used = shape_.RowsIn(chunk) * shape_.dim;
  const std::uint64_t all = shape_.BytesIn(chunk) / sizeof(float);
  std::fill(values.get() + used, values.get() + all, 0.0F);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(values.get(), all));
  if (on_disk_[chunk] != 0) RHIZOME_RETURN_IF_ERROR(space_.fs().RemoveFile(FileOf(chunk)));
  on_disk_[chunk] = 1;
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                           space_.fs().CreateFile(FileOf(chunk)));
  RHIZOME_RETURN_IF_ERROR(file->Append(bytes));
  RHIZOME_RETURN_IF_ERROR(file->Close());
  hashes_[chunk] = Xxh3(bytes);
  space_.CountWritten(bytes.size());
  return Status::Ok();
}

Result<std::shared_ptr<const float[]>> ScratchArray::Read(std::uint64_t chunk) {
  if (IsResident(chunk)) {
    RHIZOME_CHECK(kept_[chunk] != nullptr);
    return kept_[chunk];
  }
  RHIZOME_ASSIGN_OR_RETURN(std::shared_ptr<float[]> values, Take());
  RHIZOME_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file,
                           space_.fs().OpenRead(FileOf(chunk), {.direct = true}));
  const std::uint64_t size_bytes = shape_.BytesIn(chunk);
  const auto damaged = [&](std::string_view what) {
    return Fail(Status::Corruption(
        fmt::format("scratch file {} {}; run the job again with --resume, which goes on from its "
                    "last checkpoint",
                    FileOf(chunk).string(), what)));
  };
  if (file->size_bytes() != size_bytes) return damaged("has another size than was written");
  const std::span<std::byte> bytes =
      std::as_writable_bytes(std::span(values.get(), size_bytes / sizeof(float)));
  RHIZOME_RETURN_IF_ERROR(ReadWhole(*file, bytes));
  if (Xxh3(bytes) != hashes_[chunk]) return damaged("is not what was written");
  space_.CountRead(size_bytes);
  return std::shared_ptr<const float[]>(std::move(values));
}

void ScratchArray::Drop() {
  for (std::shared_ptr<const float[]>& chunk : kept_) chunk.reset();
  for (std::uint64_t chunk = 0; chunk < on_disk_.size(); ++chunk) {
    if (on_disk_[chunk] == 0) continue;
    on_disk_[chunk] = 0;
    // A file that cannot be removed now is removed with the job's folder.
    static_cast<void>(space_.fs().RemoveFile(FileOf(chunk)));
  }
}

}  // namespace rhizome::inline internal
