#include "rhizome/gnn/scratch_streams.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rhizome/storage/check.h"
#include "rhizome/storage/exceptions.h"

namespace rhizome::inline internal {
namespace {

/// Threads that read a scratch array: they mostly wait for the disk.
constexpr std::size_t kScratchReaders = 2;

}  // namespace

ScratchReader::ScratchReader(ScratchArray& array, std::size_t ahead)
    : array_(array), ahead_(std::max<std::size_t>(ahead, 1)), scheduled_(ahead_) {
  for (std::size_t i = 0; i < std::min(kScratchReaders, ahead_); ++i) {
    threads_.push_back(std::make_unique<Thread>());
    // One thread suffices if the system gives no more, and without any Next reads itself.
    if (!threads_.back()->Start([this] { return ReadScheduled(); }).ok()) {
      threads_.pop_back();
      break;
    }
  }
}

ScratchReader::~ScratchReader() {
  scheduled_.Cancel();
  threads_.clear();
}

Status ScratchReader::ReadScheduled() {
  while (true) {
    const Result<std::optional<std::shared_ptr<Chunk>>> next = scheduled_.Pop();
    if (!next || !*next) return Status::Ok();
    Chunk& chunk = ***next;
    chunk.status = Guarded([&]() -> Status {
      RHIZOME_ASSIGN_OR_RETURN(chunk.values, array_.Read(chunk.number));
      return Status::Ok();
    });
    chunk.ready = true;
    chunk.ready.notify_all();
  }
}

Result<DecodedChunk> ScratchReader::Next() {
  while (!appended_.empty() && waiting_.size() < ahead_) {
    auto chunk = std::make_shared<Chunk>();
    chunk->number = appended_.front();
    appended_.pop_front();
    waiting_.push_back(chunk);
    if (threads_.empty() || array_.IsResident(chunk->number)) {
      RHIZOME_ASSIGN_OR_RETURN(chunk->values, array_.Read(chunk->number));
      chunk->ready = true;
    } else {
      scheduled_.Push(std::move(chunk));
    }
  }
  RHIZOME_CHECK(!waiting_.empty());  // asked for no more than was appended
  const std::shared_ptr<Chunk> chunk = std::move(waiting_.front());
  waiting_.pop_front();
  chunk->ready.wait(false);
  RHIZOME_RETURN_IF_ERROR(chunk->status);
  const ScratchShape& shape = array_.shape();
  return DecodedChunk{.request = delivered_++,
                      .chunk = chunk->number,
                      .first_row = static_cast<Row>(chunk->number * shape.chunk_rows),
                      .rows = shape.RowsIn(chunk->number),
                      .values = std::move(chunk->values)};
}

ScratchWriter::ScratchWriter() {
  started_ = thread_.Start([this] {
    const Status status = Guarded([this] { return WriteTasks(); });
    if (!status.ok()) tasks_.Cancel();
    return status;
  });
}

Status ScratchWriter::WriteTasks() {
  while (true) {
    Result<std::optional<Task>> next = tasks_.Pop();
    if (!next || !*next) return Status::Ok();
    Task task = **std::move(next);
    RHIZOME_RETURN_IF_ERROR(task.array->Write(task.chunk, std::move(task.values)));
  }
}

Status ScratchWriter::Write(ScratchArray& array, std::uint64_t chunk,
                            std::shared_ptr<float[]> values) {
  RHIZOME_RETURN_IF_ERROR(started_);
  if (array.IsResident(chunk)) return array.Write(chunk, std::move(values));
  if (tasks_.Push({&array, chunk, std::move(values)})) return Status::Ok();
  return Finish();
}

Status ScratchWriter::Finish() {
  tasks_.Finish(Status::Ok());
  return thread_.Join();
}

RowStream::RowStream(std::unique_ptr<ChunkFeed> feed, std::uint64_t rows, std::uint64_t dim,
                     std::uint64_t chunk_rows)
    : feed_(std::move(feed)), dim_(dim) {
  for (std::uint64_t chunk = 0; chunk * chunk_rows < rows; ++chunk) feed_->Append(chunk);
}

Result<const float*> RowStream::Take(std::uint64_t first, std::uint64_t count) {
  std::uint64_t joined = 0;
  while (true) {
    const auto begin = static_cast<std::uint64_t>(current_.first_row);
    const std::uint64_t wanted = first + joined;
    if (current_.values == nullptr || wanted >= begin + current_.rows) {
      current_ = {};  // its memory may hold the next
      RHIZOME_ASSIGN_OR_RETURN(current_, feed_->Next());
      continue;
    }
    const std::uint64_t here = std::min(begin + current_.rows - wanted, count - joined);
    const float* const rows = current_.values.get() + (wanted - begin) * dim_;
    if (here == count) return rows;
    joined_.resize(count * dim_);
    std::memcpy(joined_.data() + joined * dim_, rows, here * dim_ * sizeof(float));
    joined += here;
    if (joined == count) return joined_.data();
  }
}

}  // namespace rhizome::inline internal
