#include "index/topology/file_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "storage/array/array_files.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_sums.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {
namespace {

// Holds the page reads that a RowReader plans ahead, besides the reads in flight.
constexpr std::size_t kStagingBytes = std::size_t{2} << 20;

RowReaderOptions OptionsFor(const ArrayEntry& entry) {
  RowReaderOptions options;
  const std::size_t longest = std::max<std::size_t>(options.max_read_bytes, entry.row_bytes());
  options.staging_bytes =
      std::max(kStagingBytes, 4 * (longest + 2 * AlignedBuffer::kAlignmentBytes));
  return options;
}

}  // namespace

bool HasRowChecksums(const ArrayEntry& entry) {
  return entry.layout == ArrayLayout::kRow && entry.codec.kind == CodecKind::kRaw;
}

Result<std::shared_ptr<const FileRows>> FileRows::Open(const Store& store, std::string_view array) {
  RHIZOME_ASSIGN_OR_RETURN(auto opened, store.OpenArray(array));
  const std::string sidecar_name = SidecarName(opened->entry().name);
  std::shared_ptr<const RowSums> sums;
  if (HasRowChecksums(opened->entry()) && store.manifest().FindArray(sidecar_name) != nullptr) {
    RHIZOME_ASSIGN_OR_RETURN(auto sidecar, store.OpenArray(sidecar_name));
    RHIZOME_ASSIGN_OR_RETURN(sums, RowSums::Open(opened->entry(), std::move(sidecar)));
  }
  return std::make_shared<const FileRows>(std::move(opened), std::move(sums));
}

Status FileRows::Read(std::span<RowTarget> targets) const {
  if (targets.empty()) return Status::Ok();
  if (!by_row()) return ReadByPart(targets);
  RHIZOME_RETURN_IF_ERROR(owner_.Check("a reader of rows"));
  RHIZOME_ASSIGN_OR_RETURN(auto reader, TakeReader());
  // A reader that failed is not reused, because its queue may be broken.
  RHIZOME_RETURN_IF_ERROR(reader->Read(targets));
  const MutexLock lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(reader));
  return Status::Ok();
}

Result<std::unique_ptr<RowReader>> FileRows::TakeReader() const {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      auto reader = std::move(idle_.back());
      idle_.pop_back();
      return reader;
    }
  }
  return RowReader::Open(*array_, sums_, files_, OptionsFor(entry()));
}

Status FileRows::ReadByPart(std::span<RowTarget> targets) const {
  const std::uint64_t row_bytes = entry().row_bytes();
  for (const RowTarget& target : targets)
    if (target.row < 0 || static_cast<std::uint64_t>(target.row) >= entry().rows)
      return Status::InvalidArgument(fmt::format("array '{}' of {} rows does not have a row {}",
                                                 ShownName(entry().name), entry().rows,
                                                 target.row));
  std::sort(targets.begin(), targets.end(),
            [](const RowTarget& a, const RowTarget& b) { return a.row < b.row; });
  const std::uint64_t part_rows = RowsPerRead(entry());
  std::vector<std::byte> part;
  for (auto target = targets.begin(); target != targets.end();) {
    const std::uint64_t first = static_cast<std::uint64_t>(target->row) / part_rows * part_rows;
    const std::uint64_t rows = std::min(part_rows, entry().rows - first);
    part.resize(rows * row_bytes);
    RHIZOME_RETURN_IF_ERROR(array_->ReadRows(first, rows, part));
    for (; target != targets.end(); ++target) {
      const std::uint64_t at = static_cast<std::uint64_t>(target->row) - first;
      if (at >= rows) break;
      std::memcpy(target->out, part.data() + at * row_bytes, row_bytes);
    }
  }
  return Status::Ok();
}

Result<std::shared_ptr<const FileRows>> OpenArrays::Of(const Store& store, std::string_view array) {
  const ArrayEntry* const entry = store.manifest().FindArray(array);
  RHIZOME_RETURN_IF_ERROR(owner_.Check("a reader of rows"));
  const MutexLock lock(mutex_);
  for (const auto& open : open_)
    if (entry != nullptr && open->entry() == *entry) return open;
  EraseDropped(store);
  RHIZOME_ASSIGN_OR_RETURN(auto opened, FileRows::Open(store, array));
  open_.push_back(opened);
  return opened;
}

void OpenArrays::CloseDropped(const Store& store) {
  const MutexLock lock(mutex_);
  EraseDropped(store);
}

void OpenArrays::EraseDropped(const Store& store) {
  std::erase_if(open_, [&](const auto& open) {
    const ArrayEntry* const now = FindStoredArray(store.manifest().arrays, open->entry().name);
    return now == nullptr || !(*now == open->entry());
  });
}

}  // namespace internal
}  // namespace rhizome
