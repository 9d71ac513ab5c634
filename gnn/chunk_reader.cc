#include "rhizome/gnn/chunk_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rhizome/storage/check.h"

namespace rhizome {
namespace {

/// With those of new vertices.
std::uint64_t ChunkCount(const ArrayEntry& array, const DeltaRows* delta) {
  if (delta == nullptr || array.chunk_rows == 0) return array.chunk_count();
  return (delta->rows() + array.chunk_rows - 1) / array.chunk_rows;
}

std::uint32_t FrameCount(const ArrayEntry& array, const DeltaRows* delta,
                         const ChunkReaderOptions& options) {
  const std::uint64_t frames = options.cache_bytes / ChunkReader::DecodedBytes(array);
  return static_cast<std::uint32_t>(std::min(frames, ChunkCount(array, delta)));
}

std::unique_ptr<Policy> PolicyFor(PolicyKind kind, std::uint32_t frames, std::uint64_t key_count,
                                  const std::vector<std::uint64_t>& chunks) {
  // Every chunk is a read of its own: what costs least is what is read least.
  if (kind == PolicyKind::kCost) kind = PolicyKind::kBelady;
  Trace trace;
  for (const std::uint64_t chunk : chunks) {
    const auto key = static_cast<CacheKey>(chunk);
    trace.AddStep(std::span(&key, 1));
  }
  return MakePolicy({.kind = kind, .frame_count = frames, .key_count = key_count, .cost = {}},
                    trace);
}

}  // namespace

std::shared_ptr<float[]> FloatBuffers::Take() {
  std::unique_ptr<float[]> buffer;
  {
    MutexLock lock(shared_->mutex);
    if (!shared_->free.empty()) {
      buffer = std::move(shared_->free.back());
      shared_->free.pop_back();
    }
  }
  if (buffer == nullptr) buffer.reset(new float[shared_->size]);
  return {buffer.release(), [shared = shared_](float* data) {
            MutexLock lock(shared->mutex);
            shared->free.emplace_back(data);
          }};
}

std::uint64_t ChunkReader::DecodedBytes(const ArrayEntry& array) {
  return std::max<std::uint64_t>(array.chunk_rows * array.dim * sizeof(float), 1);
}

ChunkReader::ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder,
                         std::vector<std::uint64_t> chunks, const ChunkReaderOptions& options,
                         const JobControl& control, std::shared_ptr<const DeltaRows> delta)
    : array_(array),
      decoder_(decoder),
      delta_(std::move(delta)),
      control_(control),
      chunks_(std::move(chunks)),
      policy_(PolicyFor(options.policy, FrameCount(array.entry(), delta_.get(), options),
                        ChunkCount(array.entry(), delta_.get()), chunks_)),
      frames_(FrameCount(array.entry(), delta_.get(), options)),
      buffers_(DecodedBytes(array.entry()) / sizeof(float)),
      thread_([this] { queue_.Finish(ReadAll()); }) {}

ChunkReader::~ChunkReader() {
  queue_.Cancel();
  thread_.join();
}

Result<DecodedChunk> ChunkReader::Next() {
  RHIZOME_ASSIGN_OR_RETURN(std::optional<DecodedChunk> chunk, queue_.Pop());
  RHIZOME_CHECK(chunk.has_value());  // the caller asks for as many as it announced
  return *std::move(chunk);
}

Status ChunkReader::ReadAll() {
  for (const auto& [key, frame] : policy_->Prefill()) {
    RHIZOME_ASSIGN_OR_RETURN(frames_[frame], ReadChunk(static_cast<std::uint64_t>(key)));
  }
  StepPlan plan;
  for (const std::uint64_t chunk : chunks_) {
    RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
    const auto key = static_cast<CacheKey>(chunk);
    policy_->Step(std::span(&key, 1), plan);
    ++stats_.requests;
    std::shared_ptr<const float[]> values;
    if (!plan.hits.empty()) {
      ++stats_.hits;
      values = frames_[plan.hits.front().frame];
    } else {
      RHIZOME_ASSIGN_OR_RETURN(values, ReadChunk(chunk));
    }
    for (const StepPlan::Place& insert : plan.inserts) frames_[insert.frame] = values;
    DecodedChunk decoded{.chunk = chunk,
                         .first_row = static_cast<Row>(chunk * array_.entry().chunk_rows),
                         .rows = RowsInChunk(chunk),
                         .values = std::move(values)};
    if (!queue_.Push(std::move(decoded))) break;
  }
  frames_.clear();
  return Status::Ok();
}

Result<std::shared_ptr<const float[]>> ChunkReader::ReadChunk(std::uint64_t chunk) {
  const std::shared_ptr<float[]> values = buffers_.Take();
  const std::uint64_t rows = RowsInChunk(chunk);
  const std::span<float> floats(values.get(), rows * decoder_.dim());
  std::uint64_t bytes = 0;
  if (decoder_.is_identity()) {
    RHIZOME_ASSIGN_OR_RETURN(bytes, ReadStored(chunk, std::as_writable_bytes(floats)));
  } else {
    stored_.resize(rows * decoder_.stored_row_bytes());
    RHIZOME_ASSIGN_OR_RETURN(bytes, ReadStored(chunk, stored_));
    decoder_.Decode(stored_, floats);
  }
  ++stats_.reads;
  stats_.bytes_read += bytes;
  return std::shared_ptr<const float[]>(values);
}

/// The rows of a chunk as they are stored, with what the delta changes. Returns the bytes read.
Result<std::uint64_t> ChunkReader::ReadStored(std::uint64_t chunk, std::span<std::byte> rows) {
  if (delta_ == nullptr) return array_.ReadChunk(chunk, rows);
  std::uint64_t bytes = 0;
  if (chunk < array_.entry().chunk_count()) {
    const std::size_t in_array = array_.RowsInChunk(chunk) * decoder_.stored_row_bytes();
    RHIZOME_ASSIGN_OR_RETURN(bytes, array_.ReadChunk(chunk, rows.first(in_array)));
  }
  const auto first = static_cast<Row>(chunk * array_.entry().chunk_rows);
  RHIZOME_RETURN_IF_ERROR(delta_->Overlay(first, rows));
  return bytes;
}

std::uint64_t ChunkReader::RowsInChunk(std::uint64_t chunk) const {
  if (delta_ == nullptr) return array_.RowsInChunk(chunk);
  const std::uint64_t chunk_rows = array_.entry().chunk_rows;
  return std::min(chunk_rows, delta_->rows() - chunk * chunk_rows);
}

}  // namespace rhizome
