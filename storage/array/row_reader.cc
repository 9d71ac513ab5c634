#include "storage/array/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "storage/array/array_facts.h"
#include "storage/array/array_files.h"
#include "storage/array/array_rules.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/array/row_sums.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"
#include "storage/io/io_completion.h"

namespace rhizome {

namespace {

// Rows of a mapped file that are prefetched while one is copied.
constexpr std::size_t kMappedAhead = 4;
constexpr std::size_t kLineBytes = 64;

/// Allocates pieces of a ring buffer. They are freed in the order of their allocation.
class StagingRing {
 public:
  explicit StagingRing(std::size_t capacity_bytes = 0) : capacity_bytes_(capacity_bytes) {}

  /// Allocates `size_bytes` at a multiple of `unit`; returns false if there is not enough free
  /// space. The caller must pass `used_bytes` to Free.
  bool Take(std::size_t size_bytes, std::size_t unit, std::size_t& offset_bytes,
            std::size_t& used_bytes) {
    std::size_t skipped = AlignUp(head_bytes_, unit) - head_bytes_;
    if (head_bytes_ + skipped + size_bytes > capacity_bytes_)
      skipped = capacity_bytes_ - head_bytes_;  // pieces do not wrap around
    if (taken_bytes_ + skipped + size_bytes > capacity_bytes_) return false;
    offset_bytes = (head_bytes_ + skipped) % capacity_bytes_;
    used_bytes = skipped + size_bytes;
    head_bytes_ = (offset_bytes + size_bytes) % capacity_bytes_;
    taken_bytes_ += used_bytes;
    RHIZOME_DCHECK(offset_bytes % unit == 0 && offset_bytes + size_bytes <= capacity_bytes_);
    RHIZOME_DCHECK(taken_bytes_ <= capacity_bytes_);
    return true;
  }
  void Free(std::size_t used_bytes) {
    RHIZOME_DCHECK(used_bytes <= taken_bytes_);
    taken_bytes_ -= used_bytes;
    if (taken_bytes_ == 0) head_bytes_ = 0;
  }

 private:
  std::size_t capacity_bytes_ = 0;
  std::size_t head_bytes_ = 0;
  std::size_t taken_bytes_ = 0;
};

/// A read in flight: the targets that it serves and where its bytes are.
struct Flight {
  std::size_t first_target = 0;
  std::size_t end_target = 0;
  std::uint64_t chunk = 0;
  std::uint64_t file_offset_bytes = 0;
  std::size_t used_bytes = 0;               ///< the bytes that it occupies in the ring
  std::shared_ptr<ReadableFile> file = {};  ///< remains open until the read is done
  bool done = false;
};

}  // namespace

/// Reads rows in batches: PlanOne turns runs of sorted targets into reads (flights), SubmitPlanned
/// submits them, ReapSome waits for completed reads, and Deliver checks and copies their rows.
///
/// Invariants:
///   (1) flights [retired_, planned_) (modulo the capacity) are live; the queue knows the requests
///       of flights below submitted_;
///   (2) their pieces of staging memory are freed in the order of their allocation;
///   (3) outside Read nothing is in flight, regardless of the outcome.
class RowReader::Impl {
 public:
  Status Init(const ChunkArray& array, std::shared_ptr<const RowSums> sums,
              std::shared_ptr<ArrayFiles> files, const RowReaderOptions& options);
  Status InitLike(const Impl& other);
  Status Read(std::span<RowTarget> targets);

  const ArrayEntry& entry() const { return entry_; }
  RowReaderStats stats() const {
    const IoStats io = mapped() ? meter_.stats() : queue_->stats();
    return {rows_, io.reads, io.read_bytes, io.mean_depth, queue_->maker(), direct_};
  }

 private:
  Status CheckOptions() const;
  Status OpenQueue();
  std::size_t FillUnstored(std::span<RowTarget> targets) const;
  Status Transfer(std::span<RowTarget> targets);
  Result<bool> PlanOne(std::span<RowTarget> targets);
  std::size_t EndOfRead(std::span<RowTarget> targets, std::uint64_t chunk_end,
                        std::uint32_t unit) const;
  Status SubmitPlanned();
  Status ReapSome(std::span<RowTarget> targets, std::size_t min_count);
  Status Deliver(const Flight& flight, std::span<const std::byte> bytes,
                 std::span<RowTarget> targets);
  Status CheckRow(std::uint64_t row, std::span<const std::byte> bytes) const;
  void Drain();
  Status CopyMapped(std::span<RowTarget> targets);
  void Prefetch(std::span<const std::byte> bytes, const RowTarget& target) const;
  Result<bool> TakeFile(std::uint64_t chunk);

  std::uint64_t OffsetOf(std::int64_t row) const {
    return static_cast<std::uint64_t>(row) % entry_.chunk_rows * row_bytes_;
  }
  std::size_t Slot(std::uint64_t flight) const { return flight % flights_.size(); }
  bool mapped() const { return options_.io.maker == IoMaker::kMapped; }

  // Constant after Init.
  Path root_;
  ArrayEntry entry_;
  std::size_t row_bytes_ = 0;
  ChunkSlots slots_;
  RowReaderOptions options_;
  std::shared_ptr<const RowSums> sums_;
  std::shared_ptr<ArrayFiles> files_;

  // Declared before the queue, whose destructor waits for reads in flight that use these.
  AlignedBuffer staging_;
  std::vector<ReadRequest> requests_;
  std::vector<Flight> flights_;
  std::unique_ptr<IoQueue> queue_;

  std::shared_ptr<ReadableFile> file_;  // the file of chunk_, which was used last
  std::uint64_t chunk_ = 0;
  bool direct_ = false;
  std::uint64_t rows_ = 0;
  MappedFiles mapped_files_;
  IoMeter meter_;  // counts the reads from mapped files
  StagingRing ring_;
  std::uint64_t planned_ = 0;
  std::uint64_t submitted_ = 0;
  std::uint64_t retired_ = 0;
  std::size_t next_target_ = 0;
};

Status RowReader::Impl::CheckOptions() const {
  if (entry_.layout != ArrayLayout::kRow || entry_.codec.kind != CodecKind::kRaw)
    return Status::InvalidArgument(fmt::format(
        "array '{}' does not have layout row; read it by chunks", ShownName(entry_.name)));
  const std::uint64_t longest =
      std::max<std::uint64_t>(options_.max_read_bytes, row_bytes_) + 2 * staging_.kAlignmentBytes;
  const bool fits = options_.max_read_bytes <= options_.staging_bytes &&  // the sum may overflow
                    options_.staging_bytes >= longest;
  if (options_.max_read_bytes > 0 && fits) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("array '{}': {} bytes of staging memory are too few for a read of {} bytes",
                  ShownName(entry_.name), options_.staging_bytes, longest));
}

Status RowReader::Impl::Init(const ChunkArray& array, std::shared_ptr<const RowSums> sums,
                             std::shared_ptr<ArrayFiles> files, const RowReaderOptions& options) {
  root_ = array.root();
  entry_ = array.entry();
  slots_ = array.slots();
  row_bytes_ = entry_.row_bytes();
  options_ = options;
  sums_ = std::move(sums);
  files_ = std::move(files);
  RHIZOME_RETURN_IF_ERROR(CheckOptions());
  return OpenQueue();
}

Status RowReader::Impl::InitLike(const Impl& other) {
  root_ = other.root_;
  entry_ = other.entry_;
  slots_ = other.slots_;
  row_bytes_ = other.row_bytes_;
  options_ = other.options_;
  sums_ = other.sums_;
  files_ = other.files_;
  return OpenQueue();
}

Status RowReader::Impl::OpenQueue() {
  RHIZOME_ASSIGN_OR_RETURN(queue_, IoQueue::Open(options_.io));
  if (mapped()) return Status::Ok();  // CopyMapped reads nothing
  RHIZOME_ASSIGN_OR_RETURN(staging_, AlignedBuffer::Allocate(options_.staging_bytes));
  queue_->RegisterMemory(staging_.bytes());
  // Several times the depth, so that a slow read at the front does not hold back later ones.
  requests_.resize(std::size_t{4} * options_.io.depth);
  flights_.resize(requests_.size());
  return Status::Ok();
}

/// Sets file_ to the file of `chunk`; returns false if it must wait until other files are released.
Result<bool> RowReader::Impl::TakeFile(std::uint64_t chunk) {
  if (file_ != nullptr && chunk_ == chunk) return true;
  file_ = nullptr;
  RHIZOME_ASSIGN_OR_RETURN(file_, files_->Open(chunk, /*must=*/retired_ == planned_));
  if (file_ == nullptr) return false;
  chunk_ = chunk;
  direct_ = direct_ || file_->alignment_bytes() > 1;
  return true;
}

/// Reads in these steps:
///   1. Checks and sorts the targets, fills those whose chunks have no file (FillUnstored), and
///      loads the checksums that the others need.
///   2. Transfer plans reads, each for a run of adjacent targets (PlanOne), submits them in deep
///      batches, and reaps them.
///   3. Deliver checks each row of a completed read, and copies it to its target.
///   4. After an error, waits until nothing is in flight (Drain).
/// For mapped files CopyMapped replaces steps 2 and 3.
Status RowReader::Impl::Read(std::span<RowTarget> targets) {
  for (const RowTarget& target : targets) {
    if (target.row >= 0 && static_cast<std::uint64_t>(target.row) < entry_.rows) continue;
    return Status::InvalidArgument(fmt::format("array '{}' of {} rows does not have a row {}",
                                               ShownName(entry_.name), entry_.rows, target.row));
  }
  std::sort(targets.begin(), targets.end(),
            [](const RowTarget& a, const RowTarget& b) { return a.row < b.row; });
  const std::size_t wanted = targets.size();
  if (!slots_.all()) targets = targets.first(FillUnstored(targets));
  for (const RowTarget& target : targets)
    RHIZOME_RETURN_IF_ERROR(sums_->Need(static_cast<std::uint64_t>(target.row)));
  planned_ = submitted_ = retired_ = 0;
  next_target_ = 0;
  ring_ = StagingRing(staging_.size_bytes());
  const Status status = Guarded([&] { return mapped() ? CopyMapped(targets) : Transfer(targets); });
  if (!status.ok()) Drain();
  RHIZOME_DCHECK(!status.ok() || mapped() ||
                 (queue_->in_flight() == 0 && next_target_ == targets.size()));  // invariant (3)
  file_ = nullptr;
  if (status.ok()) rows_ += wanted;
  return status;
}

/// Gives the fill value to the targets, sorted by row, whose chunks have no file, and moves them
/// behind the others. Returns the number of the others.
std::size_t RowReader::Impl::FillUnstored(std::span<RowTarget> targets) const {
  const auto unstored =
      std::stable_partition(targets.begin(), targets.end(), [&](const RowTarget& target) {
        const auto row = static_cast<std::uint64_t>(target.row);
        return slots_.Find(row / entry_.chunk_rows) != ChunkSlots::kNone;
      });
  for (auto target = unstored; target != targets.end(); ++target)
    FillOtherRows(entry_, {target->out, row_bytes_});
  return static_cast<std::size_t>(unstored - targets.begin());
}

Status RowReader::Impl::Transfer(std::span<RowTarget> targets) {
  while (next_target_ < targets.size() || retired_ < planned_) {
    while (next_target_ < targets.size() && planned_ - retired_ < flights_.size()) {
      RHIZOME_ASSIGN_OR_RETURN(const bool planned, PlanOne(targets));
      if (!planned) break;
      // Submit early, so that the disk works while the rest is planned.
      if (planned_ - submitted_ >= options_.io.depth) RHIZOME_RETURN_IF_ERROR(SubmitPlanned());
    }
    RHIZOME_RETURN_IF_ERROR(SubmitPlanned());
    // Invariant (1).
    RHIZOME_DCHECK(retired_ <= submitted_ && submitted_ <= planned_ &&
                   planned_ - retired_ <= flights_.size());
    if (queue_->in_flight() == 0)
      return Status::IoError(
          fmt::format("array '{}': the I/O queue accepts no reads", ShownName(entry_.name)));
    RHIZOME_RETURN_IF_ERROR(ReapSome(targets, 1));
  }
  return Status::Ok();
}

/// Returns the end of the run of targets, starting at next_target_, that one read of at most
/// max_read_bytes within one chunk can serve.
std::size_t RowReader::Impl::EndOfRead(std::span<RowTarget> targets, std::uint64_t chunk_end,
                                       std::uint32_t unit) const {
  const std::uint64_t begin = AlignDown(OffsetOf(targets[next_target_].row), unit);
  std::uint64_t end = OffsetOf(targets[next_target_].row) + row_bytes_;
  std::size_t next = next_target_ + 1;
  for (; next < targets.size(); ++next) {
    if (static_cast<std::uint64_t>(targets[next].row) >= chunk_end) break;
    const std::uint64_t offset = OffsetOf(targets[next].row);
    const bool near = AlignDown(offset, unit) <= AlignUp(end, unit) + options_.gap_bytes;
    const bool fits = AlignUp(offset + row_bytes_, unit) - begin <= options_.max_read_bytes;
    if (targets[next].row != targets[next - 1].row && !(near && fits)) break;
    end = offset + row_bytes_;
  }
  return next;
}

/// Plans the next read; returns false if it must wait until memory or files are released.
Result<bool> RowReader::Impl::PlanOne(std::span<RowTarget> targets) {
  const auto row = static_cast<std::uint64_t>(targets[next_target_].row);
  const std::uint64_t chunk = row / entry_.chunk_rows;
  RHIZOME_ASSIGN_OR_RETURN(const bool taken, TakeFile(chunk));
  if (!taken) return false;
  const std::uint32_t unit = file_->alignment_bytes();
  const std::size_t end_target = EndOfRead(targets, (chunk + 1) * entry_.chunk_rows, unit);
  const std::uint64_t begin = AlignDown(OffsetOf(targets[next_target_].row), unit);
  const std::uint64_t end = AlignUp(OffsetOf(targets[end_target - 1].row) + row_bytes_, unit);

  std::size_t staging_offset = 0;
  Flight flight{.first_target = next_target_,
                .end_target = end_target,
                .chunk = chunk,
                .file_offset_bytes = begin,
                .file = file_};
  if (!ring_.Take(end - begin, unit, staging_offset, flight.used_bytes)) {
    RHIZOME_CHECK(retired_ < planned_);  // CheckOptions: one read always fits
    return false;
  }
  const std::size_t slot = Slot(planned_);
  flights_[slot] = std::move(flight);
  requests_[slot] = {.file = file_.get(),
                     .offset_bytes = begin,
                     .buffer = staging_.bytes().subspan(staging_offset, end - begin),
                     .status = {}};
  next_target_ = end_target;
  ++planned_;
  return true;
}

Status RowReader::Impl::SubmitPlanned() {
  while (submitted_ < planned_) {
    const std::size_t slot = Slot(submitted_);
    const std::size_t count = std::min<std::size_t>(planned_ - submitted_, requests_.size() - slot);
    RHIZOME_ASSIGN_OR_RETURN(const std::size_t taken,
                             queue_->Submit(std::span(requests_).subspan(slot, count)));
    submitted_ += taken;
    if (taken < count) break;
  }
  return Status::Ok();
}

Status RowReader::Impl::ReapSome(std::span<RowTarget> targets, std::size_t min_count) {
  RHIZOME_ASSIGN_OR_RETURN(const auto done, queue_->Reap(min_count));
  for (ReadRequest* const request : done) {
    Flight& flight = flights_[static_cast<std::size_t>(request - requests_.data())];
    RHIZOME_DCHECK(!flight.done && flight.first_target < flight.end_target);
    if (!request->status.ok())
      return request->status.WithContext("array '" + ShownName(entry_.name) + "'");
    RHIZOME_RETURN_IF_ERROR(Deliver(flight, request->buffer, targets));
    flight.file = nullptr;
    flight.done = true;
  }
  for (; retired_ < submitted_ && flights_[Slot(retired_)].done; ++retired_)
    ring_.Free(flights_[Slot(retired_)].used_bytes);
  return Status::Ok();
}

/// Checks the bytes of a row.
Status RowReader::Impl::CheckRow(std::uint64_t row, std::span<const std::byte> bytes) const {
  if (RowCrc(entry_.array_id, row, bytes) == (*sums_)[row] ||
      RHIZOME_MUTANT("row is not checked")) {
    return Status::Ok();
  }
  const auto number = static_cast<std::int64_t>(row);
  return Status::Corruption(fmt::format(
      "array '{}', row {}: bytes at offset {} of '{}' do not have the checksum of the sidecar",
      ShownName(entry_.name), row, OffsetOf(number),
      (root_ / ChunkPath(entry_.name, row / entry_.chunk_rows, entry_.form)).string()));
}

Status RowReader::Impl::Deliver(const Flight& flight, std::span<const std::byte> bytes,
                                std::span<RowTarget> targets) {
  for (std::size_t i = flight.first_target; i < flight.end_target; ++i) {
    const std::int64_t row = targets[i].row;
    RHIZOME_DCHECK(OffsetOf(row) >= flight.file_offset_bytes &&
                   OffsetOf(row) + row_bytes_ <= flight.file_offset_bytes + bytes.size());
    const auto from = bytes.subspan(OffsetOf(row) - flight.file_offset_bytes, row_bytes_);
    const bool again = i > flight.first_target && targets[i - 1].row == row;
    if (!again) RHIZOME_RETURN_IF_ERROR(CheckRow(static_cast<std::uint64_t>(row), from));
    std::memcpy(targets[i].out, from.data(), row_bytes_);
  }
  return Status::Ok();
}

/// Copies rows of mapped files to their targets, then checks the copies, because the pages may be
/// modified concurrently.
Status RowReader::Impl::CopyMapped(std::span<RowTarget> targets) {
  std::span<const std::byte> bytes;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto row = static_cast<std::uint64_t>(targets[i].row);
    if (file_ == nullptr || chunk_ != row / entry_.chunk_rows) {
      RHIZOME_RETURN_IF_ERROR(TakeFile(row / entry_.chunk_rows));
      RHIZOME_ASSIGN_OR_RETURN(bytes, mapped_files_.BytesOf(*file_));
    }
    if (i > 0 && targets[i - 1].row == targets[i].row) {
      std::memcpy(targets[i].out, targets[i - 1].out, row_bytes_);
      continue;
    }
    if (i + kMappedAhead < targets.size()) Prefetch(bytes, targets[i + kMappedAhead]);
    RHIZOME_ASSIGN_OR_RETURN(const auto from,
                             PartOf(*file_, bytes, OffsetOf(targets[i].row), row_bytes_));
    std::memcpy(targets[i].out, from.data(), row_bytes_);
    RHIZOME_RETURN_IF_ERROR(CheckRow(row, {targets[i].out, row_bytes_}));
    meter_.Completed({.buffer = {targets[i].out, row_bytes_}}, 1);
  }
  return Status::Ok();
}

/// Prefetches a row of the current chunk and its destination.
void RowReader::Impl::Prefetch(std::span<const std::byte> bytes, const RowTarget& target) const {
  if (static_cast<std::uint64_t>(target.row) / entry_.chunk_rows != chunk_) return;
  const std::byte* const from = bytes.data() + OffsetOf(target.row);
  for (std::size_t at = 0; at < row_bytes_; at += kLineBytes) {
    __builtin_prefetch(from + at);
    __builtin_prefetch(target.out + at, /*rw=*/1);
  }
}

// Staging memory and requests may be reused only when the kernel no longer uses them.
void RowReader::Impl::Drain() {
  while (queue_->in_flight() > 0)
    if (!queue_->Reap(queue_->in_flight())) return;
}

RowReader::RowReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowReader::~RowReader() = default;

Result<std::unique_ptr<RowReader>> RowReader::Open(const ChunkArray& array,
                                                   const ChunkArray& sidecar,
                                                   const RowReaderOptions& options) try {
  RHIZOME_ASSIGN_OR_RETURN(auto sums, RowSums::Load(array.entry(), sidecar));
  return Open(array, std::move(sums), std::make_shared<ArrayFiles>(array, options.direct), options);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::unique_ptr<RowReader>> RowReader::Open(const ChunkArray& array,
                                                   std::shared_ptr<const RowSums> sums,
                                                   std::shared_ptr<ArrayFiles> files,
                                                   const RowReaderOptions& options) try {
  auto impl = std::make_unique<Impl>();
  RHIZOME_RETURN_IF_ERROR(impl->Init(array, std::move(sums), std::move(files), options));
  return std::unique_ptr<RowReader>(new RowReader(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::unique_ptr<RowReader>> RowReader::Another() const try {
  auto impl = std::make_unique<Impl>();
  RHIZOME_RETURN_IF_ERROR(impl->InitLike(*impl_));
  return std::unique_ptr<RowReader>(new RowReader(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

Status RowReader::Read(std::span<RowTarget> targets) { return impl_->Read(targets); }
std::uint64_t RowReader::row_bytes() const { return impl_->entry().row_bytes(); }
std::uint64_t RowReader::row_count() const { return impl_->entry().rows; }
RowReaderStats RowReader::stats() const { return impl_->stats(); }

}  // namespace rhizome
