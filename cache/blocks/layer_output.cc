#include "cache/blocks/layer_output.h"

#include <algorithm>

#include "cache/blocks/non_finite_rows.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"
#include "storage/io/files.h"

namespace rhizome {
inline namespace internal {

ChunkProgress ChunkProgress::Of(InferenceLog* log, std::uint32_t layer) {
  if (log == nullptr) return {};
  return {.finished = log->Finished(layer),
          .tell = [log, layer](std::uint64_t chunk, const FinishedChunk& finished) {
            return log->Append(layer, chunk, finished);
          }};
}

namespace {

/// Limits on finished chunks that wait for writing: bytes, and number of chunks.
constexpr std::uint64_t kWaitingBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kMaxWaiting = 8;

std::uint64_t ChunkBytes(const ArrayEntry& entry) {
  return std::max<std::uint64_t>(std::min(entry.chunk_rows, entry.rows) * entry.row_bytes(), 1);
}

/// Returns the number of chunks that are held at once: one is filled, each writer writes one, and
/// the others wait. A single writer implies that memory is scarce, so at most one chunk waits.
std::uint64_t ChunksHeld(const ArrayEntry& entry, std::uint32_t writers) {
  const std::uint64_t waiting =
      writers == 1 ? 1
                   : std::clamp<std::uint64_t>(kWaitingBytes / ChunkBytes(entry), 1, kMaxWaiting);
  return std::min(waiting + writers, std::max<std::uint64_t>(entry.chunk_count(), 1));
}

}  // namespace

std::uint64_t LayerOutput::Bytes(const ArrayEntry& entry, std::uint32_t writers) {
  const std::uint64_t encoding =
      entry.codec.kind == CodecKind::kRaw && !entry.sharded() ? 0 : writers;
  return (ChunksHeld(entry, writers) + encoding) * ChunkBytes(entry);
}

LayerOutput::LayerOutput(const ArrayEntry& entry, std::uint32_t writers)
    : entry_(entry), chunks_(ChunksHeld(entry, writers)), finished_(chunks_), free_(chunks_) {}

// Steps of an output: (1) Create adopts the chunks that were finished before and starts the
// writers; (2) the caller fills the current chunk (Rows) and passes it to the writers
// (FinishChunk); (3) each writer counts non-finite rows, encodes and writes the chunk, and reports
// it (Write); (4) Finish waits for the writers and completes the array. The first error of a writer
// stops all writers.
Result<std::unique_ptr<LayerOutput>> LayerOutput::Create(FileSystem& fs, const Path& root,
                                                         const ArrayEntry& entry,
                                                         ChunkProgress progress,
                                                         std::uint32_t writers) {
  writers = std::max<std::uint32_t>(writers, 1);
  std::unique_ptr<LayerOutput> output(new LayerOutput(entry, writers));
  output->root_ = root;
  output->done_.assign(entry.chunk_count(), false);
  output->chunk_.resize(std::min(entry.chunk_rows, entry.rows) * entry.dim);
  if (root.empty()) return output;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(fs, root));
  RHIZOME_ASSIGN_OR_RETURN(output->writer_, ChunkArrayWriter::Create(fs, root, entry));
  for (const auto& [chunk, finished] : progress.finished) {
    RHIZOME_RETURN_IF_ERROR(output->Adopt(chunk, finished));
  }
  {
    const MutexLock lock(output->mutex_);
    output->tell_ = std::move(progress.tell);
  }
  for (std::uint32_t i = 0; i < writers; ++i) {
    output->threads_.push_back(std::make_unique<Thread>());
    const Status started = output->threads_.back()->Start([self = output.get()] {
      const Status status = Guarded([self] { return self->WriteFinished(); });
      if (status.ok()) return status;
      {
        const MutexLock lock(self->mutex_);
        if (self->written_.ok()) self->written_ = status;
      }
      // Wakes the caller, which may wait for queue space or an empty buffer, and the other writers.
      self->finished_.Cancel();
      self->free_.Finish(status);
      return status;
    });
    // One writer suffices if the system has no more threads.
    if (i == 0) RHIZOME_RETURN_IF_ERROR(started);
  }
  return output;
}

// Writes the chunks that were finished, so that a stopped run can be resumed after them.
LayerOutput::~LayerOutput() { static_cast<void>(Join()); }

Status LayerOutput::Adopt(std::uint64_t chunk, const FinishedChunk& finished) {
  if (chunk >= done_.size()) {
    return Status::Corruption("inference log: a chunk is not in the array");
  }
  RHIZOME_RETURN_IF_ERROR(writer_->AdoptChunk(chunk, finished.file));
  done_[chunk] = true;
  accuracy_.Add(finished.accuracy);
  non_finite_rows_ += finished.non_finite_rows;
  ++adopted_;
  return Status::Ok();
}

void LayerOutput::LeaveOthers(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t chunk = 0; chunk < done_.size(); ++chunk) {
    if (chunk < begin || chunk >= end) done_[chunk] = true;
  }
}

std::span<float> LayerOutput::Rows(Row begin, std::uint64_t count) {
  const std::uint64_t first = static_cast<std::uint64_t>(begin) % entry_.chunk_rows;
  return std::span(chunk_).subspan(first * entry_.dim, count * entry_.dim);
}

Status LayerOutput::FinishChunk(std::uint64_t chunk, const AccuracyCounts& accuracy) {
  accuracy_.Add(accuracy);
  if (writer_ == nullptr) return Status::Ok();
  const std::size_t size = chunk_.size();
  if (!finished_.Push({.chunk = chunk, .accuracy = accuracy, .values = std::move(chunk_)})) {
    return Join();
  }
  chunk_ = {};
  if (chunks_made_ < chunks_) {
    ++chunks_made_;
  } else {
    RHIZOME_ASSIGN_OR_RETURN(std::optional<std::vector<float>> empty, free_.Pop());
    if (empty) chunk_ = *std::move(empty);
  }
  chunk_.resize(size);
  return Status::Ok();
}

Status LayerOutput::WriteFinished() {
  while (true) {
    Result<std::optional<Finished>> next = finished_.Pop();
    if (!next || !*next) return Status::Ok();  // all are written, or another writer failed
    const Stopwatch watch;
    RHIZOME_RETURN_IF_ERROR(Write(**next));
    write_seconds_ += watch.seconds();
    free_.Push(std::move((*next)->values));
  }
}

Status LayerOutput::Write(const Finished& finished) {
  const std::uint64_t first = finished.chunk * entry_.chunk_rows;
  const std::uint64_t rows = std::min(entry_.chunk_rows, entry_.rows - first);
  const std::span<const float> values = std::span(finished.values).first(rows * entry_.dim);
  // Counting also brings the values into the processor cache for encoding.
  const std::uint64_t non_finite_rows = CountNonFinite(values, entry_.dim);
  RHIZOME_ASSIGN_OR_RETURN(FileEntry file,
                           writer_->WriteChunk(finished.chunk, std::as_bytes(values)));
  bytes_written_ += file.size_bytes;
  non_finite_rows_ += non_finite_rows;
  const MutexLock lock(mutex_);
  if (!tell_) return Status::Ok();
  return tell_(
      finished.chunk,
      {.file = std::move(file), .accuracy = finished.accuracy, .non_finite_rows = non_finite_rows});
}

Status LayerOutput::Join() {
  finished_.Finish(Status::Ok());
  threads_.clear();
  const MutexLock lock(mutex_);
  return written_;
}

Result<WrittenArray> LayerOutput::Finish() {
  WrittenArray written{.root = root_, .arrays = {}, .files = {}};
  if (writer_ == nullptr) return written;
  RHIZOME_RETURN_IF_ERROR(Join());
  RHIZOME_ASSIGN_OR_RETURN(written.files, writer_->Finish());
  written.arrays = writer_->arrays();
  return written;
}

}  // namespace internal
}  // namespace rhizome
