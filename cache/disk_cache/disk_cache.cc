#include "cache/disk_cache/disk_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/hash.h"
#include "storage/base/mutex.h"
#include "storage/base/stopwatch.h"
#include "storage/base/threads.h"
#include "storage/io/files.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns a path in `folder` that no other cache of this process uses.
Path NewPath(const Path& folder, const char* kind) {
  static std::atomic<std::uint64_t> next = 0;
  return folder / fmt::format("disk-cache-{}.{}", next.fetch_add(1), kind);
}

/// A file that is written sequentially and removed with this object.
struct ScratchFile {
  static Result<ScratchFile> Create(FileSystem& fs, Path path) {
    ScratchFile made;
    RHIZOME_ASSIGN_OR_RETURN(made.file, fs.CreateFile(path));
    made.path = std::move(path);
    made.fs = &fs;
    return made;
  }
  ScratchFile() = default;
  ScratchFile(ScratchFile&& other) noexcept
      : fs(std::exchange(other.fs, nullptr)),
        path(std::move(other.path)),
        file(std::move(other.file)) {}
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile() {
    file.reset();
    if (fs != nullptr) static_cast<void>(fs->RemoveFile(path));
  }

  FileSystem* fs = nullptr;
  Path path;
  std::unique_ptr<WritableFile> file;
};

}  // namespace

/// Fills a cache in one pass over the source. The positions are divided into windows that fit into
/// memory.
/// 1. Each source chunk that holds wanted rows is read once, several chunks concurrently.
/// 2. Rows of the first window are copied to their positions as they arrive. Rows of later windows
///    are appended, with their positions, to one spill file per window.
/// 3. The first window is written. Then each later window is filled from its spill file and
///    written.
class DiskCacheFiller {
 public:
  DiskCacheFiller(FileSystem& fs, ChunkSource& source, std::span<const Row> rows,
                  std::span<const std::uint32_t> position, const DiskCacheOptions& options,
                  const JobControl& control)
      : fs_(fs),
        source_(source),
        rows_(rows),
        position_(position),
        options_(options),
        control_(control),
        row_bytes_(source.row_bytes()) {}

  Result<std::unique_ptr<DiskCache>> Run() {
    const Stopwatch watch;
    RHIZOME_RETURN_IF_ERROR(Prepare());
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t version, source_.Version());
    RHIZOME_RETURN_IF_ERROR(ReadSource());
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t version_now, source_.Version());
    if (version_now != version) {
      return Fail(Status::Corruption(
          fmt::format("{} changed while it was copied; run again", source_.name())));
    }
    RHIZOME_RETURN_IF_ERROR(WriteWindows());
    cache_->stats_.fill_seconds = watch.seconds();
    return std::move(cache_);
  }

 private:
  /// Rows of a window other than the first, with their positions in it. They wait here until their
  /// window is filled.
  struct Spill {
    explicit Spill(ScratchFile created) : file(std::move(created)) {}
    Mutex mutex;
    ScratchFile file RHIZOME_GUARDED_BY(mutex);
    std::vector<std::byte> pending RHIZOME_GUARDED_BY(mutex);
  };

  Status Prepare() {
    std::uint64_t chunk_bytes = 0;
    if (options_.chunk_rows == 0 || options_.in_flight == 0 ||
        __builtin_mul_overflow(options_.chunk_rows, row_bytes_, &chunk_bytes) || chunk_bytes == 0 ||
        chunk_bytes > options_.memory_bytes) {
      return Status::InvalidArgument(
          fmt::format("a disk cache needs memory for one chunk ({} rows of {} bytes) and at least "
                      "one read in flight",
                      options_.chunk_rows, row_bytes_));
    }
    RHIZOME_RETURN_IF_ERROR(CheckRows());
    RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs_, options_.folder));
    cache_.reset(new DiskCache(fs_, rows_.size(), row_bytes_, options_.chunk_rows));
    window_rows_ = options_.memory_bytes / chunk_bytes * options_.chunk_rows;
    RHIZOME_ASSIGN_OR_RETURN(
        window_,
        AlignedBuffer::Allocate(std::min<std::uint64_t>(window_rows_, rows_.size()) * row_bytes_));
    for (std::uint64_t done = window_rows_; done < rows_.size(); done += window_rows_) {
      RHIZOME_ASSIGN_OR_RETURN(ScratchFile file,
                               ScratchFile::Create(fs_, NewPath(options_.folder, "rows")));
      spills_.push_back(std::make_unique<Spill>(std::move(file)));
    }
    return Status::Ok();
  }

  Status CheckRows() const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (static_cast<std::uint64_t>(rows_[i]) >= source_.rows())
        return Status::InvalidArgument(fmt::format("{} has {} rows, but row {} was requested",
                                                   source_.name(), source_.rows(), rows_[i]));
      if (i > 0 && rows_[i] <= rows_[i - 1])
        return Status::InvalidArgument(
            fmt::format("row {} follows row {}, but rows must ascend", rows_[i], rows_[i - 1]));
    }
    std::vector<bool> taken(rows_.size());
    for (const std::uint32_t position : position_) {
      if (position >= taken.size() || taken[position])
        return Status::InvalidArgument(fmt::format(
            "position {}: they must be a permutation of [0, {})", position, taken.size()));
      taken[position] = true;
    }
    if (position_.size() == rows_.size()) return Status::Ok();
    return Status::InvalidArgument(
        fmt::format("{} positions were given for {} rows", position_.size(), rows_.size()));
  }

  /// Reads every source chunk that holds rows of the cache exactly once, several chunks
  /// concurrently.
  Status ReadSource() {
    for (std::size_t i = 0; i < rows_.size();) {
      const std::uint64_t chunk = static_cast<std::uint64_t>(rows_[i]) / source_.chunk_rows();
      const auto end = static_cast<Row>((chunk + 1) * source_.chunk_rows());
      const auto next =
          std::lower_bound(rows_.begin() + static_cast<std::ptrdiff_t>(i), rows_.end(), end);
      parts_.push_back({chunk, i, static_cast<std::size_t>(next - rows_.begin())});
      i = parts_.back().end;
    }
    const Status status =
        RunOnThreads(std::min<std::size_t>(options_.in_flight, parts_.size()), [this] {
          Status read = Guarded([this] { return ReadParts(); });
          if (!read.ok()) next_part_ = parts_.size();  // stops the other threads
          return read;
        });
    cache_->stats_.source_bytes = source_bytes_;
    return status;
  }

  /// Rows [begin, end) of the cache's rows. They are all in one chunk of the source.
  struct Part {
    std::uint64_t chunk = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  Status ReadParts() {
    std::vector<std::byte> bytes;
    for (std::size_t i = next_part_++; i < parts_.size(); i = next_part_++) {
      bytes.resize(source_.RowsInChunk(parts_[i].chunk) * row_bytes_);
      RHIZOME_RETURN_IF_ERROR(ReadPart(parts_[i], bytes));
      MutexLock lock(mutex_);
      ++cache_->stats_.source_reads;
    }
    return Status::Ok();
  }

  Status ReadPart(const Part& part, std::span<std::byte> bytes) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    const Result<std::uint64_t> delivered = source_.ReadChunk(part.chunk, bytes);
    if (!delivered) return Status(delivered.error()).WithContext(source_.name());
    if (*delivered != bytes.size()) {
      return Status::Corruption(fmt::format("{}: chunk {} ends after {} of {} bytes",
                                            source_.name(), part.chunk, *delivered, bytes.size()));
    }
    source_bytes_ += bytes.size();
    const auto first = static_cast<Row>(part.chunk * source_.chunk_rows());
    for (std::size_t i = part.begin; i < part.end; ++i) {
      const auto offset = static_cast<std::size_t>(rows_[i] - first) * row_bytes_;
      RHIZOME_RETURN_IF_ERROR(Place(position_[i], bytes.subspan(offset, row_bytes_)));
    }
    placed_ += part.end - part.begin;
    return Status::Ok();
  }

  /// Copies a row into the window, or appends it to a spill file. The window needs no lock because
  /// no two rows have the same position.
  Status Place(std::uint64_t position, std::span<const std::byte> row) {
    RHIZOME_CHECK(position < rows_.size());
    if (position < window_rows_) {
      std::memcpy(window_.bytes().data() + position * row_bytes_, row.data(), row.size());
      return Status::Ok();
    }
    Spill& spill = *spills_[position / window_rows_ - 1];
    const std::uint64_t place = position % window_rows_;
    const auto place_bytes = std::as_bytes(std::span(&place, 1));
    MutexLock lock(spill.mutex);
    spill.pending.insert(spill.pending.end(), place_bytes.begin(), place_bytes.end());
    spill.pending.insert(spill.pending.end(), row.begin(), row.end());
    if (spill.pending.size() < kPendingBytes) return Status::Ok();
    return FlushPending(spill);
  }

  static Status FlushPending(Spill& spill) RHIZOME_REQUIRES(spill.mutex) {
    RHIZOME_RETURN_IF_ERROR(spill.file.file->Append(spill.pending));
    spill.pending.clear();
    return Status::Ok();
  }

  Status WriteWindows() {
    // Every row that blocks can request has been placed, so no later read can miss.
    RHIZOME_CHECK(placed_ == rows_.size());
    RHIZOME_ASSIGN_OR_RETURN(ScratchFile out,
                             ScratchFile::Create(fs_, NewPath(options_.folder, "cache")));
    for (std::uint64_t w = 0; w * window_rows_ < rows_.size(); ++w) {
      RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
      const std::uint64_t rows =
          std::min<std::uint64_t>(window_rows_, rows_.size() - w * window_rows_);
      if (w > 0) RHIZOME_RETURN_IF_ERROR(ReadSpill(*spills_[w - 1], rows));
      RHIZOME_RETURN_IF_ERROR(WriteWindow(
          *out.file, window_.bytes().first(static_cast<std::size_t>(rows * row_bytes_))));
    }
    RHIZOME_RETURN_IF_ERROR(out.file->Close());
    RHIZOME_ASSIGN_OR_RETURN(cache_->file_, fs_.OpenRead(out.path));
    cache_->stats_.disk_bytes = cache_->file_->size_bytes();
    cache_->path_ = out.path;
    out.fs = nullptr;  // from here on the cache removes the file
    return Status::Ok();
  }

  /// Reads a window's spill file and copies its rows to their positions.
  Status ReadSpill(Spill& spill, std::uint64_t rows) {
    MutexLock lock(spill.mutex);
    RHIZOME_RETURN_IF_ERROR(FlushPending(spill));
    RHIZOME_RETURN_IF_ERROR(spill.file.file->Close());
    RHIZOME_ASSIGN_OR_RETURN(const auto file, fs_.OpenRead(spill.file.path));
    const std::size_t record_bytes = sizeof(std::uint64_t) + row_bytes_;
    std::vector<std::byte> records(std::max<std::size_t>(kPendingBytes / record_bytes, 1) *
                                   record_bytes);
    for (std::uint64_t done = 0; done < rows * record_bytes;) {
      const std::span<std::byte> part = std::span(records).first(
          std::min<std::uint64_t>(records.size(), rows * record_bytes - done));
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t read, file->ReadAt(done, part));
      if (read != part.size()) return Status::Corruption(file->path().string() + " is too short");
      for (std::size_t at = 0; at < part.size(); at += record_bytes) {
        std::uint64_t place = 0;
        std::memcpy(&place, part.data() + at, sizeof(place));
        if (place >= rows) return Status::Corruption(file->path().string() + " is damaged");
        std::memcpy(window_.bytes().data() + place * row_bytes_, part.data() + at + sizeof(place),
                    row_bytes_);
      }
      done += part.size();
    }
    spill.file.file.reset();
    return Status::Ok();
  }

  Status WriteWindow(WritableFile& file, std::span<const std::byte> rows) {
    const std::uint64_t chunk_bytes = options_.chunk_rows * row_bytes_;
    for (std::uint64_t begin = 0; begin < rows.size(); begin += chunk_bytes) {
      cache_->crcs_.push_back(
          Crc32c(rows.subspan(begin, std::min<std::uint64_t>(chunk_bytes, rows.size() - begin))));
    }
    return file.Append(rows);
  }

  static constexpr std::size_t kPendingBytes = std::size_t{256} << 10;

  FileSystem& fs_;
  ChunkSource& source_;
  const std::span<const Row> rows_;
  const std::span<const std::uint32_t> position_;
  const DiskCacheOptions& options_;
  const JobControl& control_;
  const std::uint64_t row_bytes_;
  std::uint64_t window_rows_ = 1;
  std::vector<Part> parts_;
  AlignedBuffer window_;                        // rows of the current window, at their positions
  std::vector<std::unique_ptr<Spill>> spills_;  // one for each window after the first
  std::unique_ptr<DiskCache> cache_;

  // Shared by the reader threads.
  std::atomic<std::size_t> next_part_ = 0;
  std::atomic<std::uint64_t> placed_ = 0;  // number of rows
  std::atomic<std::uint64_t> source_bytes_ = 0;
  Mutex mutex_;
};

Result<std::unique_ptr<DiskCache>> DiskCache::Fill(FileSystem& fs, ChunkSource& source,
                                                   std::span<const Row> rows,
                                                   std::span<const std::uint32_t> position,
                                                   const DiskCacheOptions& options,
                                                   const JobControl& control) try {
  return DiskCacheFiller(fs, source, rows, position, options, control).Run();
} catch (...) {
  return Fail(StatusOfException());
}

DiskCache::~DiskCache() {
  file_.reset();
  if (!path_.empty()) static_cast<void>(fs_.RemoveFile(path_));
}

std::uint64_t DiskCache::RowsInChunk(std::uint64_t chunk) const {
  if (chunk >= chunk_count()) return 0;
  return std::min(chunk_rows_, row_count_ - chunk * chunk_rows_);
}

Status DiskCache::ReadChunk(std::uint64_t chunk, std::span<std::byte> out) const try {
  if (chunk >= chunk_count() || out.size() != RowsInChunk(chunk) * row_bytes_) {
    return Status::InvalidArgument(
        fmt::format("the disk cache has {} chunks, but {} bytes of {} were requested",
                    chunk_count(), out.size(), chunk));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t read,
                           file_->ReadAt(chunk * chunk_rows_ * row_bytes_, out));
  if (read != out.size() || Crc32c(out) != crcs_[chunk]) {
    return Status::Corruption(
        fmt::format("{}: chunk {} differs from the chunk that was written; check the disk",
                    path_.string(), chunk));
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

DiskCachesAhead::DiskCachesAhead(std::size_t workers, Make make)
    : workers_(workers), make_(std::move(make)) {
  Begin();
}

DiskCachesAhead::~DiskCachesAhead() {
  if (filling_.valid()) filling_.wait();
}

void DiskCachesAhead::Begin() {
  if (next_ == workers_) return;
  ++next_;
  // If no thread can be started, Next fills this cache on its own thread.
  static_cast<void>(Guarded([this] {
    filling_ = std::async(std::launch::async, [this, worker = next_ - 1] {
      return Guarded([&] { return make_(worker); });
    });
    return Status::Ok();
  }));
}

Result<std::unique_ptr<DiskCache>> DiskCachesAhead::Next() {
  if (taken_ >= workers_)
    return Fail(Status::InvalidArgument(fmt::format("there are only {} workers", workers_)));
  const std::size_t worker = taken_++;
  const Stopwatch watch;
  const bool first = next_ == 1;
  Result<std::unique_ptr<DiskCache>> filled = filling_.valid() ? filling_.get() : make_(worker);
  (first ? first_seconds_ : unhidden_seconds_) += watch.seconds();
  if (filled) Begin();
  return filled;
}

}  // namespace internal
}  // namespace rhizome
