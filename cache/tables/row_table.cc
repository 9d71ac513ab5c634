#include "cache/tables/row_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cache/tables/table_checkpoint.h"
#include "index/base/parallel.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/io/io_queue.h"
#include "storage/io/updatable_file.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Status CheckShape(std::uint64_t rows, std::size_t row_bytes) {
  constexpr std::uint64_t kMaxRowBytes = std::uint64_t{1} << 30;
  constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 48;
  if (rows >= 1 && rows <= kMaxRows && row_bytes >= 1 && row_bytes <= kMaxRowBytes &&
      rows <= std::numeric_limits<std::int64_t>::max() / 4 / (row_bytes + RowTable::kBlockBytes))
    return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("a table of {} rows of {} bytes is not possible", rows, row_bytes));
}

}  // namespace

/// Implementation. Blocks are transferred through the staging memory in pieces. Read plans runs of
/// blocks that are adjacent in one slot (PlanRun), reads a piece of them at once, checks each block
/// and copies its rows. Write (1) collects the blocks of a piece; (2) reads the blocks that
/// are written in part; (3) copies the rows into them; (4) writes runs of adjacent blocks.
///
/// Invariants: (1) the slot that the last checkpoint names for a block is never written; (2)
/// `crcs_` and `current_` describe what was written successfully; after a failed write, no call
/// succeeds.
class RowTable::Impl {
 public:
  Impl(FileSystem& fs, Path folder, std::string name, const RowTableOptions& options)
      : fs_(fs),
        folder_(std::move(folder)),
        name_(std::move(name)),
        options_(options),
        shape_(TableShape::Of(options.rows, options.row_bytes)),
        saved_(shape_.blocks) {
    state_.slots = BlockBits(shape_.blocks);
    state_.crcs.resize(shape_.blocks);
  }

  Status Create(const Fill& fill);
  Status Open();
  Status Read(std::span<RowTarget> targets);
  Status Write(std::span<RowWrite> sources);
  Status Checkpoint(std::span<const std::byte> progress);

  const RowTableOptions& options() const { return options_; }
  const TableShape& shape() const { return shape_; }
  const std::vector<std::byte>& progress() const { return state_.progress; }
  RowTableStats stats() const { return stats_; }

 private:
  /// Adjacent blocks of one slot, [first, first + blocks), in the staging memory.
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t blocks = 0;
    bool slot = false;
    std::uint64_t staged = 0;  // place in the staging memory, in blocks
  };

  /// A block to write, and its sources [first, end).
  struct BlockWrite {
    std::uint64_t block = 0;
    std::size_t first = 0;
    std::size_t end = 0;
  };

  Status OpenFile();
  Status CheckSpace() const;
  Status FillBlocks(const Fill& fill);
  Status CheckRow(std::int64_t row) const;
  std::uint64_t BlockOf(std::int64_t row) const {
    return static_cast<std::uint64_t>(row) / shape_.rows_per_block;
  }
  std::size_t OffsetInBlock(std::int64_t row) const {
    return static_cast<std::uint64_t>(row) % shape_.rows_per_block * options_.row_bytes;
  }
  std::span<std::byte> Staged(std::uint64_t place, std::uint64_t blocks = 1) const {
    return staging_.bytes().subspan(place * shape_.block_bytes, blocks * shape_.block_bytes);
  }
  Run PlanRun(std::span<const RowTarget> targets, std::size_t& next) const;
  Status ReadRuns(std::span<const Run> runs);
  Status CheckBlock(std::uint64_t block, std::span<const std::byte> bytes) const;
  std::vector<BlockWrite> CollectBlocks(std::span<const RowWrite> sources, std::size_t& next) const;
  Status Complete(std::span<const BlockWrite> writes);
  Status WriteBlocks(std::span<const BlockWrite> writes);
  Status Fails(Status status);

  FileSystem& fs_;
  const Path folder_;
  const std::string name_;
  const RowTableOptions options_;
  const TableShape shape_;
  BlockBits saved_;        // by block: its slot at the last checkpoint
  TableCheckpoint state_;  // the slots and checksums now; the number and progress at the last
                           // checkpoint
  std::unique_ptr<UpdatableFile> file_;
  // Declared before the queue, whose destructor waits for reads in flight that use it.
  AlignedBuffer staging_;
  std::unique_ptr<IoQueue> queue_;
  std::uint64_t staged_blocks_ = 0;    // size of the staging memory
  std::uint64_t transfer_blocks_ = 0;  // max size of a run
  Status failed_;
  RowTableStats stats_;
};

Status RowTable::Impl::OpenFile() {
  RHIZOME_ASSIGN_OR_RETURN(file_, OpenUpdatable(fs_, TableRowsPath(folder_, name_),
                                                shape_.file_bytes(), {.direct = options_.direct}));
  RHIZOME_ASSIGN_OR_RETURN(queue_, IoQueue::Open(options_.io));
  staged_blocks_ = std::max<std::uint64_t>(1, options_.staging_bytes / shape_.block_bytes);
  transfer_blocks_ = std::clamp<std::uint64_t>(options_.max_transfer_bytes / shape_.block_bytes, 1,
                                               staged_blocks_);
  RHIZOME_ASSIGN_OR_RETURN(staging_, AlignedBuffer::Allocate(staged_blocks_ * shape_.block_bytes));
  return Status::Ok();
}

Status RowTable::Impl::CheckSpace() const {
  RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t free, fs_.FreeBytes(folder_));
  const std::uint64_t wanted = DiskBytes(options_.rows, options_.row_bytes);
  if (free >= wanted) return Status::Ok();
  return Status::OutOfSpace(fmt::format(
      "table '{}' of {} rows of {} bytes needs {} MiB in {}, twice its size, but {} MiB are free; "
      "free disk space, or put `scratch` on another disk",
      name_, options_.rows, options_.row_bytes, wanted / kMiB + 1, folder_.string(), free / kMiB));
}

Status RowTable::Impl::Create(const Fill& fill) {
  RHIZOME_RETURN_IF_ERROR(Remove(fs_, folder_, name_));
  RHIZOME_RETURN_IF_ERROR(CheckSpace());
  Status status = OpenFile();
  if (status.ok()) status = FillBlocks(fill);
  if (status.ok()) status = fs_.SyncDirectory(folder_);
  if (!status.ok()) {
    file_ = nullptr;
    static_cast<void>(Remove(fs_, folder_, name_));  // the first error is the cause
  }
  return status;
}

Status RowTable::Impl::FillBlocks(const Fill& fill) {
  for (std::uint64_t begin = 0; begin < shape_.blocks; begin += transfer_blocks_) {
    const std::uint64_t count = std::min(transfer_blocks_, shape_.blocks - begin);
    ParallelFor(count, [&](std::size_t i) {
      const std::span<std::byte> bytes = Staged(i);
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      const std::uint64_t first = (begin + i) * shape_.rows_per_block;
      for (std::uint64_t r = 0; r < shape_.RowsIn(begin + i); ++r)
        fill(first + r, bytes.subspan(r * options_.row_bytes, options_.row_bytes));
      state_.crcs[begin + i] = Crc32c(bytes);
    });
    RHIZOME_RETURN_IF_ERROR(file_->WriteAt(shape_.OffsetOf(begin, false), Staged(0, count)));
    ++stats_.writes;
    stats_.write_bytes += count * shape_.block_bytes;
  }
  return Status::Ok();
}

/// Opens the newest complete checkpoint and removes the others. A crash during a checkpoint leaves
/// the previous one, whose slots were not written since. A crash during the first one leaves none.
Status RowTable::Impl::Open() {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> numbers,
                           ListTableCheckpoints(fs_, folder_, name_));
  Status first =
      Status::NotFound(fmt::format("table '{}' in {} has no checkpoint", name_, folder_.string()));
  std::size_t at = numbers.size();
  while (at > 0) {
    auto read = ReadTableCheckpoint(fs_, folder_, name_, shape_, numbers[at - 1]);
    if (read) {
      state_ = *std::move(read);
      break;
    }
    if (read.error().code() != StatusCode::kCorruption) return read.error();
    if (numbers[at - 1] > 1 && first.code() == StatusCode::kNotFound) first = read.error();
    --at;
  }
  if (at == 0) return first;
  const Path path = TableRowsPath(folder_, name_);
  const Result<FileInfo> info = fs_.Stat(path);
  if (!info && info.error().code() != StatusCode::kNotFound) return info.error();
  if (!info || info->size_bytes != shape_.file_bytes()) {
    return Status::Corruption(fmt::format("'{}' is missing or does not have {} bytes",
                                          path.string(), shape_.file_bytes()));
  }
  for (const std::uint64_t number : numbers) {
    if (number == state_.number) continue;
    RHIZOME_RETURN_IF_ERROR(fs_.RemoveFile(TableCheckpointPath(folder_, name_, number)));
  }
  saved_ = state_.slots;
  return OpenFile();
}

Status RowTable::Impl::CheckRow(std::int64_t row) const {
  if (row >= 0 && static_cast<std::uint64_t>(row) < options_.rows) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("table '{}' of {} rows does not have a row {}", name_, options_.rows, row));
}

Status RowTable::Impl::Fails(Status status) {
  if (!status.ok() && failed_.ok()) {
    failed_ = Status(status.code(), fmt::format("table '{}' failed earlier: {}; open it again to "
                                                "return to its last checkpoint",
                                                name_, status.message()));
  }
  return status;
}

/// Returns the run of blocks of targets[next], ..., and moves `next` behind them.
RowTable::Impl::Run RowTable::Impl::PlanRun(std::span<const RowTarget> targets,
                                            std::size_t& next) const {
  const std::uint64_t first = BlockOf(targets[next].row);
  const std::uint64_t gap = options_.gap_bytes / shape_.block_bytes;
  Run run{.first = first, .blocks = 1, .slot = state_.slots[first]};
  for (; next < targets.size(); ++next) {
    const std::uint64_t block = BlockOf(targets[next].row);
    const std::uint64_t blocks = block - first + 1;
    if (blocks > run.blocks) {
      if (blocks > run.blocks + 1 + gap || blocks > transfer_blocks_ ||
          state_.slots[block] != run.slot)
        break;
      run.blocks = blocks;
    }
  }
  return run;
}

Status RowTable::Impl::ReadRuns(std::span<const Run> runs) {
  std::vector<ReadRequest> requests(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    requests[i].file = file_.get();
    requests[i].offset_bytes = shape_.OffsetOf(runs[i].first, runs[i].slot);
    requests[i].buffer = Staged(runs[i].staged, runs[i].blocks);
    stats_.read_bytes += requests[i].buffer.size();
  }
  stats_.reads += runs.size();
  const Status status = queue_->ReadAll(requests);
  return status.ok() ? status : status.WithContext(fmt::format("table '{}'", name_));
}

Status RowTable::Impl::CheckBlock(std::uint64_t block, std::span<const std::byte> bytes) const {
  if (Crc32c(bytes) == state_.crcs[block]) return Status::Ok();
  return Status::Corruption(fmt::format(
      "table '{}', rows from {}: {} bytes at offset {} of '{}' are not what was written", name_,
      block * shape_.rows_per_block, bytes.size(), shape_.OffsetOf(block, state_.slots[block]),
      file_->path().string()));
}

Status RowTable::Impl::Read(std::span<RowTarget> targets) {
  RHIZOME_RETURN_IF_ERROR(failed_);
  for (const RowTarget& target : targets) RHIZOME_RETURN_IF_ERROR(CheckRow(target.row));
  std::sort(targets.begin(), targets.end(),
            [](const RowTarget& a, const RowTarget& b) { return a.row < b.row; });
  std::vector<Run> runs;
  for (std::size_t next = 0, copied = 0; next < targets.size();) {
    std::uint64_t used = 0;
    runs.clear();
    while (next < targets.size()) {
      std::size_t end = next;
      Run run = PlanRun(targets, end);
      if (used + run.blocks > staged_blocks_) break;
      run.staged = std::exchange(used, used + run.blocks);
      runs.push_back(run);
      next = end;
    }
    RHIZOME_RETURN_IF_ERROR(ReadRuns(runs));
    std::size_t run = 0;
    std::uint64_t checked = std::numeric_limits<std::uint64_t>::max();
    for (; copied < next; ++copied) {
      const std::uint64_t block = BlockOf(targets[copied].row);
      while (block >= runs[run].first + runs[run].blocks) ++run;
      const std::span<const std::byte> bytes = Staged(runs[run].staged + (block - runs[run].first));
      if (block != checked) RHIZOME_RETURN_IF_ERROR(CheckBlock(block, bytes));
      checked = block;
      std::memcpy(targets[copied].out, bytes.data() + OffsetInBlock(targets[copied].row),
                  options_.row_bytes);
    }
  }
  stats_.rows_read += targets.size();
  return Status::Ok();
}

/// Returns the blocks of sources[next], ... that fit into the staging memory.
std::vector<RowTable::Impl::BlockWrite> RowTable::Impl::CollectBlocks(
    std::span<const RowWrite> sources, std::size_t& next) const {
  std::vector<BlockWrite> writes;
  for (; next < sources.size(); ++next) {
    const std::uint64_t block = BlockOf(sources[next].row);
    if (writes.empty() || writes.back().block != block) {
      if (writes.size() == staged_blocks_) break;
      writes.push_back({block, next, next});
    }
    writes.back().end = next + 1;
  }
  return writes;
}

/// Reads the blocks that are written in part, and clears the others.
Status RowTable::Impl::Complete(std::span<const BlockWrite> writes) {
  std::vector<Run> runs;
  std::vector<std::size_t> partial;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const std::uint64_t block = writes[i].block;
    if (writes[i].end - writes[i].first == shape_.RowsIn(block)) {
      const std::span<std::byte> bytes = Staged(i);
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
      continue;
    }
    partial.push_back(i);
    const bool slot = state_.slots[block];
    const bool continues = !runs.empty() && runs.back().first + runs.back().blocks == block &&
                           runs.back().staged + runs.back().blocks == i &&
                           runs.back().slot == slot && runs.back().blocks < transfer_blocks_;
    if (continues) {
      ++runs.back().blocks;
    } else {
      runs.push_back({.first = block, .blocks = 1, .slot = slot, .staged = i});
    }
  }
  RHIZOME_RETURN_IF_ERROR(ReadRuns(runs));
  stats_.completed_blocks += partial.size();
  for (const std::size_t i : partial)
    RHIZOME_RETURN_IF_ERROR(CheckBlock(writes[i].block, Staged(i)));
  return Status::Ok();
}

/// Writes the staged blocks to the slots that the last checkpoint does not name.
Status RowTable::Impl::WriteBlocks(std::span<const BlockWrite> writes) {
  const auto slot_of = [&](std::size_t i) { return !saved_[writes[i].block]; };
  for (std::size_t i = 0; i < writes.size();) {
    std::size_t end = i + 1;
    while (end < writes.size() && writes[end].block == writes[end - 1].block + 1 &&
           slot_of(end) == slot_of(i) && end - i < transfer_blocks_)
      ++end;
    const std::span<const std::byte> bytes = Staged(i, end - i);
    RHIZOME_RETURN_IF_ERROR(file_->WriteAt(shape_.OffsetOf(writes[i].block, slot_of(i)), bytes));
    ++stats_.writes;
    stats_.write_bytes += bytes.size();
    for (; i < end; ++i) {
      state_.crcs[writes[i].block] = Crc32c(Staged(i));
      state_.slots.Set(writes[i].block, slot_of(i));
    }
  }
  return Status::Ok();
}

Status RowTable::Impl::Write(std::span<RowWrite> sources) {
  RHIZOME_RETURN_IF_ERROR(failed_);
  for (const RowWrite& source : sources) RHIZOME_RETURN_IF_ERROR(CheckRow(source.row));
  std::sort(sources.begin(), sources.end(),
            [](const RowWrite& a, const RowWrite& b) { return a.row < b.row; });
  for (std::size_t i = 1; i < sources.size(); ++i) {
    if (sources[i].row == sources[i - 1].row) {
      return Status::InvalidArgument(
          fmt::format("table '{}': row {} is written twice at once", name_, sources[i].row));
    }
  }
  for (std::size_t next = 0; next < sources.size();) {
    const std::vector<BlockWrite> writes = CollectBlocks(sources, next);
    RHIZOME_RETURN_IF_ERROR(Fails(Complete(writes)));
    for (std::size_t i = 0; i < writes.size(); ++i) {
      for (std::size_t s = writes[i].first; s < writes[i].end; ++s)
        std::memcpy(Staged(i).data() + OffsetInBlock(sources[s].row), sources[s].bytes,
                    options_.row_bytes);
    }
    RHIZOME_RETURN_IF_ERROR(Fails(WriteBlocks(writes)));
  }
  stats_.rows_written += sources.size();
  return Status::Ok();
}

/// Makes a checkpoint in these steps:
///   1. Syncs the blocks, so that no checkpoint names a block that a power cut can undo.
///   2. Writes and syncs the file of the checkpoint. From then on Open finds it.
///   3. Removes the previous one. Later writes go to the slots that it named.
Status RowTable::Impl::Checkpoint(std::span<const std::byte> progress) {
  RHIZOME_RETURN_IF_ERROR(failed_);
  RHIZOME_RETURN_IF_ERROR(Fails(file_->Sync()));
  const std::uint64_t former = state_.number++;
  state_.progress.assign(progress.begin(), progress.end());
  RHIZOME_RETURN_IF_ERROR(Fails(WriteTableCheckpoint(fs_, folder_, name_, shape_, state_)));
  if (former > 0)
    RHIZOME_RETURN_IF_ERROR(Fails(fs_.RemoveFile(TableCheckpointPath(folder_, name_, former))));
  saved_ = state_.slots;
  return Status::Ok();
}

RowTable::RowTable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowTable::~RowTable() = default;

std::uint64_t RowTable::DiskBytes(std::uint64_t rows, std::size_t row_bytes) {
  const TableShape shape = TableShape::Of(rows, row_bytes);
  return shape.file_bytes() + 2 * TableCheckpointBytes(shape);
}

Result<std::unique_ptr<RowTable>> RowTable::Create(FileSystem& fs, const Path& folder,
                                                   const std::string& name,
                                                   const RowTableOptions& options,
                                                   const Fill& fill) try {
  RHIZOME_RETURN_IF_ERROR(CheckShape(options.rows, options.row_bytes));
  auto impl = std::make_unique<Impl>(fs, folder, name, options);
  RHIZOME_RETURN_IF_ERROR(impl->Create(fill));
  return std::unique_ptr<RowTable>(new RowTable(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::unique_ptr<RowTable>> RowTable::Open(FileSystem& fs, const Path& folder,
                                                 const std::string& name,
                                                 const RowTableOptions& options) try {
  RHIZOME_RETURN_IF_ERROR(CheckShape(options.rows, options.row_bytes));
  auto impl = std::make_unique<Impl>(fs, folder, name, options);
  RHIZOME_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<RowTable>(new RowTable(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Status RowTable::Remove(FileSystem& fs, const Path& folder, const std::string& name) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> numbers,
                           ListTableCheckpoints(fs, folder, name));
  for (const std::uint64_t number : numbers)
    RHIZOME_RETURN_IF_ERROR(fs.RemoveFile(TableCheckpointPath(folder, name, number)));
  const Status removed = fs.RemoveFile(TableRowsPath(folder, name));
  return removed.code() == StatusCode::kNotFound ? Status::Ok() : removed;
}

Status RowTable::Read(std::span<RowTarget> targets) {
  return Guarded([&] { return impl_->Read(targets); });
}
Status RowTable::Write(std::span<RowWrite> sources) {
  return Guarded([&] { return impl_->Write(sources); });
}
Status RowTable::Checkpoint(std::span<const std::byte> progress) {
  return Guarded([&] { return impl_->Checkpoint(progress); });
}
std::span<const std::byte> RowTable::progress() const { return impl_->progress(); }
std::uint64_t RowTable::rows() const { return impl_->options().rows; }
std::size_t RowTable::row_bytes() const { return impl_->options().row_bytes; }
std::uint64_t RowTable::BlockOf(std::int64_t row) const {
  return static_cast<std::uint64_t>(row) / impl_->shape().rows_per_block;
}
std::pair<std::int64_t, std::int64_t> RowTable::RowsOfBlock(std::uint64_t block) const {
  const TableShape& shape = impl_->shape();
  const auto first = static_cast<std::int64_t>(block * shape.rows_per_block);
  return {first, first + static_cast<std::int64_t>(shape.RowsIn(block))};
}
RowTableStats RowTable::stats() const { return impl_->stats(); }

}  // namespace internal
}  // namespace rhizome
