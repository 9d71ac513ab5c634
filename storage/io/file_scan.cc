#include "storage/io/file_scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>

#include "storage/base/exceptions.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;  // size of one read
constexpr std::uint32_t kMaxThreads = 8;

/// State that the threads of a scan share: the next file, the outcomes, the progress.
class SharedScan {
 public:
  SharedScan(std::span<const ScanFile> files, const JobControl& control)
      : files_(files), control_(control), outcomes_(files.size()) {
    for (const ScanFile& file : files) total_bytes_ += file.size_bytes;
  }

  std::span<const ScanFile> files() const { return files_; }

  /// Returns the index of the next file; files().size() if all are taken.
  std::size_t TakeFile() { return std::min(next_.fetch_add(1), files_.size()); }

  ScanOutcome& outcome(std::size_t file) { return outcomes_[file]; }

  /// Counts hashed bytes and reports progress. Fails if the job was cancelled or failed in any
  /// thread.
  Status Advance(std::uint64_t bytes, std::size_t file) {
    const MutexLock lock(mutex_);
    done_bytes_ += bytes;
    if (failed_.ok())
      failed_ = control_.Report({.phase = "verify",
                                 .done = done_bytes_,
                                 .total = total_bytes_,
                                 .detail = files_[file].path.filename().string()});
    return failed_;
  }
  void Fail(const Status& status) {
    const MutexLock lock(mutex_);
    if (failed_.ok()) failed_ = status;
  }
  Status failed() {
    const MutexLock lock(mutex_);
    return failed_;
  }
  std::vector<ScanOutcome> TakeOutcomes() { return std::move(outcomes_); }

 private:
  const std::span<const ScanFile> files_;
  const JobControl& control_;
  std::uint64_t total_bytes_ = 0;
  std::atomic<std::size_t> next_{0};
  std::vector<ScanOutcome> outcomes_;  // each element is written by the thread that took the file

  Mutex mutex_;
  std::uint64_t done_bytes_ RHIZOME_GUARDED_BY(mutex_) = 0;
  Status failed_ RHIZOME_GUARDED_BY(mutex_);
};

/// A file that is being read. It lives until its last piece is hashed.
struct OpenFile {
  std::size_t index = 0;
  std::unique_ptr<ReadableFile> file;
  std::unique_ptr<FileWatcher> watcher;
  StreamHash hash;
  std::uint64_t asked_bytes = 0;
};

/// A piece of a file. Pieces are queued in the order in which they are hashed.
struct Piece {
  std::shared_ptr<OpenFile> file;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;  ///< without the padding that a direct read requests past the end
  ReadRequest request;
  bool submitted = false;
  bool done = false;
};

/// One thread of a scan. It keeps as many pieces in flight as its memory holds, across the
/// boundaries of files, and hashes them in order.
class Scanner {
 public:
  Scanner(FileSystem& fs, SharedScan& scan, IoPacer* pacer) : fs_(fs), scan_(scan), pacer_(pacer) {}

  /// Scans files until none is left:
  ///   1. Allocates memory for the pieces and opens a queue.
  ///   2. Fills the queue: opens the next files and submits their pieces (Refill).
  ///   3. Waits until reads are done (Reap).
  ///   4. Hashes the completed pieces at the front; the last piece of a file completes it (Hash,
  ///      Finish).
  /// Steps 2 to 4 repeat until no file is left.
  Status Run(const IoQueueOptions& io) {
    // A small store needs only a small buffer: pinning a full one would take longer than reading
    // it.
    const std::uint32_t slots = std::min(io.depth, CountPieces());
    RHIZOME_ASSIGN_OR_RETURN(memory_, AlignedBuffer::Allocate(slots * kPieceBytes));
    // The queue is destroyed before buffers and requests, and its destructor waits for reads in
    // flight.
    RHIZOME_ASSIGN_OR_RETURN(const auto queue, IoQueue::Open(io));
    queue->RegisterMemory(memory_.bytes());
    for (std::uint32_t slot = 0; slot < slots; ++slot) free_.push_back(slot);
    while (true) {
      RHIZOME_RETURN_IF_ERROR(ReadSome(*queue));
      if (pieces_.empty()) return Status::Ok();
      while (!pieces_.empty() && pieces_.front().done) RHIZOME_RETURN_IF_ERROR(Hash());
    }
  }

 private:
  /// Returns the number of pieces of all files, at least 1.
  std::uint32_t CountPieces() const {
    std::uint64_t pieces = 1;
    for (const ScanFile& file : scan_.files())
      pieces += (file.size_bytes + kPieceBytes - 1) / kPieceBytes;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(pieces, UINT32_MAX));
  }

  /// Submits as many pieces as memory and queue allow. Waits for one read unless the first piece is
  /// already done.
  Status ReadSome(IoQueue& queue) {
    const IoPacer::Turn turn(pacer_);
    RHIZOME_RETURN_IF_ERROR(Refill(queue));
    if (pieces_.empty() || pieces_.front().done) return Status::Ok();
    RHIZOME_ASSIGN_OR_RETURN(const auto done, queue.Reap(1));
    for (ReadRequest* const request : done) MarkDone(request);
    return Status::Ok();
  }

  void MarkDone(const ReadRequest* request) {
    for (Piece& piece : pieces_)
      if (&piece.request == request) piece.done = true;
  }

  /// Opens the next file. Returns false if none is left.
  bool OpenNext() {
    while (true) {
      const std::size_t index = scan_.TakeFile();
      if (index == scan_.files().size()) return false;
      const ScanFile& wanted = scan_.files()[index];
      auto file = fs_.OpenRead(wanted.path, {.direct = true});
      if (!file) {
        scan_.outcome(index).status = file.error();
        continue;
      }
      if ((*file)->size_bytes() != wanted.size_bytes) {
        scan_.outcome(index).status = Status::Corruption(fmt::format(
            "{} bytes long, but the manifest says {}", (*file)->size_bytes(), wanted.size_bytes));
        continue;
      }
      open_ = std::make_shared<OpenFile>();
      open_->index = index;
      open_->file = *std::move(file);
      if (wanted.watch) open_->watcher = wanted.watch();
      if (wanted.size_bytes > 0) return true;
      Finish(*open_);
    }
  }

  Status Refill(IoQueue& queue) {
    while (!free_.empty()) {
      const std::uint64_t most = PieceBytes(pacer_, kPieceBytes);
      if (most < kPieceBytes && !pieces_.empty()) break;  // paced: one piece at a time
      if (open_ == nullptr || open_->asked_bytes == open_->file->size_bytes()) {
        if (!OpenNext()) {
          open_ = nullptr;
          break;
        }
      }
      Piece& piece = pieces_.emplace_back();
      piece.file = open_;
      piece.offset_bytes = open_->asked_bytes;
      piece.size_bytes = std::min(most, open_->file->size_bytes() - piece.offset_bytes);
      open_->asked_bytes += piece.size_bytes;
      const std::uint64_t unit = open_->file->alignment_bytes();
      piece.request = {.file = open_->file.get(),
                       .offset_bytes = piece.offset_bytes,
                       .buffer = memory_.bytes().subspan(free_.front() * kPieceBytes,
                                                         AlignUp(piece.size_bytes, unit))};
      free_.pop_front();
    }
    for (Piece& piece : pieces_) {
      if (piece.submitted) continue;
      RHIZOME_ASSIGN_OR_RETURN(const std::size_t taken, queue.Submit(std::span(&piece.request, 1)));
      if (taken == 0) break;
      piece.submitted = true;
    }
    return Status::Ok();
  }

  /// Hashes the first piece, which must have been read.
  Status Hash() {
    Piece piece = std::move(pieces_.front());
    pieces_.pop_front();
    OpenFile& file = *piece.file;
    ScanOutcome& outcome = scan_.outcome(file.index);
    const auto bytes = piece.request.buffer.first(piece.size_bytes);
    if (!piece.request.status.ok() && outcome.status.ok()) {
      outcome.status = piece.request.status;
      outcome.offset_bytes = piece.offset_bytes;
    }
    if (outcome.status.ok()) {
      file.hash.Update(bytes);
      if (file.watcher) file.watcher->See(piece.offset_bytes, bytes);
    }
    free_.push_back(static_cast<std::uint32_t>(
        static_cast<std::uint64_t>(bytes.data() - memory_.bytes().data()) / kPieceBytes));
    if (piece.offset_bytes + piece.size_bytes == file.file->size_bytes()) Finish(file);
    return scan_.Advance(piece.size_bytes, file.index);
  }

  void Finish(const OpenFile& file) {
    ScanOutcome& outcome = scan_.outcome(file.index);
    outcome.xxh3 = file.hash.xxh3();
    outcome.crc32c = file.hash.crc32c();
    if (file.watcher) file.watcher->End(outcome);
  }

  FileSystem& fs_;
  SharedScan& scan_;
  IoPacer* const pacer_;
  AlignedBuffer memory_;
  std::deque<std::uint32_t> free_;  // free pieces of memory_, by index
  std::deque<Piece> pieces_;        // a deque: requests must not move while they are in flight
  std::shared_ptr<OpenFile> open_;
};

}  // namespace

Result<std::vector<ScanOutcome>> ScanFiles(FileSystem& fs, std::span<const ScanFile> files,
                                           const ScanOptions& options, const JobControl& control) {
  RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  SharedScan scan(files, control);
  const std::uint32_t processors = std::max(std::thread::hardware_concurrency(), 1U);
  const std::uint32_t wanted = options.threads == 0 ? processors : options.threads;
  const auto threads = static_cast<std::uint32_t>(
      std::min<std::size_t>({wanted, kMaxThreads, std::max<std::size_t>(files.size(), 1)}));
  RHIZOME_RETURN_IF_ERROR(RunOnThreads(threads, [&] {
    Status status = Guarded([&] { return Scanner(fs, scan, options.pacer).Run(options.io); });
    if (!status.ok()) scan.Fail(status);  // makes the other threads stop, too
    return status;
  }));
  RHIZOME_RETURN_IF_ERROR(scan.failed());
  return scan.TakeOutcomes();
}

}  // namespace internal
}  // namespace rhizome
