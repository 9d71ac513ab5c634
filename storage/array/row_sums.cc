#include "storage/array/row_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "storage/array/array_facts.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_lengths.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

Status CheckSidecar(const ArrayEntry& array, const ChunkArray& sidecar) {
  const ArrayEntry& sums = sidecar.entry();
  if (sums.name == SidecarName(array.name) && sums.dtype == DataType::kUint32 && sums.dim == 1 &&
      sums.rows == array.rows && sums.array_id == array.array_id &&
      sums.codec.kind == CodecKind::kRaw && BoundType(sums) == BoundType(array) &&
      (BoundType(array).empty() || sums.chunk_rows == array.chunk_rows))
    return CheckChunkLengths(sidecar);
  return Status::Corruption(fmt::format("'{}': '{}' is not the checksum file of array '{}'",
                                        sidecar.root().string(), ShownName(sums.name),
                                        ShownName(array.name)));
}

}  // namespace

// The lengths in the manifest match the row count (ChunkArray::Open) and the files (CheckSidecar),
// so this allocates no more bytes than there are on disk.
RowSums::RowSums(const ArrayEntry& array, const ChunkArray& sidecar)
    : rows_(array.rows),
      chunk_rows_(std::max<std::uint64_t>(sidecar.entry().chunk_rows, 1)),
      slots_(sidecar.slots()),
      sums_(std::make_unique_for_overwrite<std::uint32_t[]>(
          slots_.all() ? array.rows : slots_.size() * chunk_rows_)),
      loaded_(std::make_unique<std::atomic<bool>[]>(slots_.size())) {}

Result<std::shared_ptr<const RowSums>> RowSums::Load(const ArrayEntry& array,
                                                     const ChunkArray& sidecar) try {
  RHIZOME_RETURN_IF_ERROR(CheckSidecar(array, sidecar));
  std::shared_ptr<const RowSums> sums(new RowSums(array, sidecar));
  for (std::uint64_t slot = 0; slot < sums->slots_.size(); ++slot)
    RHIZOME_RETURN_IF_ERROR(sums->LoadChunkOf(sidecar, slot));
  return sums;
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::shared_ptr<const RowSums>> RowSums::Open(const ArrayEntry& array,
                                                     std::unique_ptr<ChunkArray> sidecar) try {
  RHIZOME_RETURN_IF_ERROR(CheckSidecar(array, *sidecar));
  std::shared_ptr<RowSums> sums(new RowSums(array, *sidecar));
  sums->sidecar_ = std::move(sidecar);
  return sums;
} catch (...) {
  return Fail(StatusOfException());
}

Status RowSums::NoRow(std::uint64_t row) const {
  return Status::InvalidArgument(
      fmt::format("row {} does not exist: there are checksums of {} rows", row, rows_));
}

Status RowSums::NoSum(std::uint64_t row) const {
  return Status::Corruption(fmt::format(
      "row {} has no checksum: the sidecar has no file for its chunk, but the array has", row));
}

Status RowSums::LoadChunk(std::uint64_t slot) const try {
  RHIZOME_RETURN_IF_ERROR(owner_.Check("a reader of rows"));
  const MutexLock lock(mutex_);
  if (loaded_[slot].load(std::memory_order_relaxed)) return Status::Ok();
  return LoadChunkOf(*sidecar_, slot);
} catch (...) {
  return StatusOfException();
}

Status RowSums::LoadChunkOf(const ChunkArray& sidecar, std::uint64_t slot) const {
  const std::uint64_t chunk = slots_.ChunkAt(slot);
  const std::span sums(sums_.get() + slot * chunk_rows_,
                       std::min(chunk_rows_, rows_ - chunk * chunk_rows_));
  RHIZOME_RETURN_IF_ERROR(sidecar.ReadChunk(chunk, std::as_writable_bytes(sums)));
  loaded_[slot].store(true, std::memory_order_release);
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
