#include "cache/blocks/chunk_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "rhizome/policy.h"
#include "storage/array/codec.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Number of requests that are looked up before they are delivered. There may be many, as hits need
/// no read.
constexpr std::size_t kRequestsAhead = 4096;

constexpr FrameId kNoFrame = std::numeric_limits<FrameId>::max();

/// Returns the number of chunks, including chunks of new vertices.
std::uint64_t ChunkCount(const ArrayEntry& array, const DeltaRows* delta) {
  if (delta == nullptr || array.chunk_rows == 0) return array.chunk_count();
  return (delta->rows() + array.chunk_rows - 1) / array.chunk_rows;
}

std::uint32_t FrameCount(const ArrayEntry& array, const DeltaRows* delta,
                         const ChunkReaderOptions& options) {
  const std::uint64_t frames = options.cache_bytes / ChunkReader::DecodedBytes(array);
  return static_cast<std::uint32_t>(std::min(frames, ChunkCount(array, delta)));
}

Result<std::unique_ptr<Policy>> PolicyFor(PolicyKind kind, std::uint32_t frames,
                                          std::uint64_t key_count, const Trace& steps) {
  // Every chunk is a separate read, so minimising the cost means minimising the number of reads.
  if (kind == PolicyKind::kCost) kind = PolicyKind::kBelady;
  return MakePolicy({.kind = kind, .frame_count = frames, .key_count = key_count, .cost = {}},
                    steps);
}

/// Returns the number of reading threads, up to one for each chunk that is read ahead.
std::size_t ReadingThreads(const ChunkReaderOptions& options) {
  return std::clamp<std::size_t>(options.threads, 1, std::max<std::size_t>(options.ahead, 1));
}

}  // namespace

Result<std::shared_ptr<float[]>> FloatBuffers::Take() {
  AlignedBuffer buffer;
  {
    MutexLock lock(shared_->mutex);
    if (!shared_->free.empty()) {
      buffer = std::move(shared_->free.back());
      shared_->free.pop_back();
    }
  }
  if (buffer.size_bytes() == 0) {
    RHIZOME_ASSIGN_OR_RETURN(buffer, AlignedBuffer::Allocate(shared_->size * sizeof(float)));
  }
  auto held = std::make_shared<Held>(std::move(buffer), shared_);
  auto* const floats = reinterpret_cast<float*>(held->buffer.bytes().data());
  return std::shared_ptr<float[]>(std::move(held), floats);
}

std::uint64_t ChunkReader::DecodedBytes(const ArrayEntry& array) {
  return std::max<std::uint64_t>(array.chunk_rows * array.dim * sizeof(float), 1);
}

std::uint64_t ChunkReader::WorkingBytes(const ArrayEntry& array,
                                        const ChunkReaderOptions& options) {
  const std::uint64_t replaced = HasCache(array, options) ? options.ahead : 0;
  const std::uint64_t stored = array.chunk_rows * array.row_bytes();
  const std::uint64_t encoded =
      array.codec.kind == CodecKind::kRaw ? 0 : MaxEncodedBytes(array.codec, stored);
  return (options.ahead + replaced + 1) * DecodedBytes(array) + ReadingThreads(options) * encoded;
}

std::size_t ChunkReader::AheadFor(const ArrayEntry& array, std::uint32_t threads,
                                  std::uint64_t bytes) {
  const std::uint64_t fit = bytes / DecodedBytes(array);
  const std::uint64_t busy = 2 * std::max<std::uint64_t>(threads, 1);
  // At least two, so that one chunk is read while another is decoded or delivered.
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(fit, 2, busy));
}

Trace ChunkReader::OneByOne(std::span<const std::uint64_t> chunks) {
  Trace trace;
  for (const std::uint64_t chunk : chunks) {
    const auto key = static_cast<CacheKey>(chunk);
    trace.AddStep(std::span(&key, 1));
  }
  return trace;
}

Trace ChunkReader::PolicySteps(Trace blocks, const ChunkReaderOptions& options) {
  if (options.cached_first) return blocks;
  blocks.offsets.resize(blocks.keys.size() + 1);
  for (std::size_t i = 0; i < blocks.offsets.size(); ++i) blocks.offsets[i] = i;
  return blocks;
}

ChunkReader::ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder, Trace blocks,
                         const ChunkReaderOptions& options, const JobControl& control,
                         std::shared_ptr<const DeltaRows> delta)
    : ChunkReader(array, decoder, options, control, std::move(delta),
                  PolicySteps(std::move(blocks), options)) {
  const std::uint32_t frames = FrameCount(array.entry(), delta_.get(), options);
  frames_.resize(frames);
  Result<std::unique_ptr<Policy>> policy =
      PolicyFor(options.policy, frames, ChunkCount(array.entry(), delta_.get()), steps_);
  if (!policy) {
    started_ = policy.error();
    return;
  }
  policy_ = *std::move(policy);
  for (const auto& [key, frame] : policy_->Prefill()) frames_[frame] = Schedule(key);
  StartThreads(ReadingThreads(options));
}

ChunkReader::ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder,
                         const ChunkReaderOptions& options, const JobControl& control,
                         std::shared_ptr<const DeltaRows> delta)
    : ChunkReader(array, decoder, options, control, std::move(delta), Trace()) {
  StartThreads(ReadingThreads(options));
}

ChunkReader::ChunkReader(const ChunkArray& array, const FeatureDecoder& decoder,
                         const ChunkReaderOptions& options, const JobControl& control,
                         std::shared_ptr<const DeltaRows> delta, Trace steps)
    : array_(array),
      decoder_(decoder),
      delta_(std::move(delta)),
      control_(control),
      steps_(std::move(steps)),
      ahead_(std::max<std::size_t>(options.ahead, 1)),
      how_{.direct = options.direct},
      buffers_(DecodedBytes(array.entry()) / sizeof(float)),
      scheduled_(std::numeric_limits<std::size_t>::max()) {}

void ChunkReader::StartThreads(std::size_t threads) {
  while (started_.ok() && threads_.size() < threads) {
    auto thread = std::make_unique<Thread>();
    threads_.reserve(threads);
    started_ = thread->Start([this] {
      ReadScheduled();
      return Status::Ok();
    });
    if (started_.ok()) threads_.push_back(std::move(thread));
  }
}

ChunkReader::~ChunkReader() {
  scheduled_.Cancel();
  threads_.clear();
}

// Delivers a chunk: (1) LookAhead starts steps, whose hits become requests at once, and schedules
// reads for misses and appended chunks, up to `ahead_` reads; (2) the reading threads read, verify
// and decode scheduled chunks (ReadScheduled); (3) Next removes the oldest request and waits until
// its chunk is ready.
Result<DecodedChunk> ChunkReader::Next() {
  if (threads_.empty()) RHIZOME_RETURN_IF_ERROR(started_);
  RHIZOME_RETURN_IF_ERROR(LookAhead());
  RHIZOME_CHECK(!requests_.empty());  // the caller requests only announced chunks
  const Request request = std::move(requests_.front());
  requests_.pop_front();
  if (request.was_read) --reads_ahead_;
  request.chunk->ready.wait(false, std::memory_order_acquire);
  RHIZOME_RETURN_IF_ERROR(request.chunk->status);
  const std::uint64_t chunk = request.chunk->number;
  return DecodedChunk{.request = request.index,
                      .chunk = chunk,
                      .first_row = static_cast<Row>(chunk * array_.entry().chunk_rows),
                      .rows = RowsInChunk(chunk),
                      .values = request.chunk->values};
}

ChunkReaderStats ChunkReader::Finish() {
  scheduled_.Finish(Status::Ok());
  for (const auto& thread : threads_) static_cast<void>(thread->Join());
  stats_.bytes_read = bytes_read_;
  stats_.read_seconds = read_seconds_;
  return stats_;
}

Status ChunkReader::LookAhead() {
  while (requests_.size() < kRequestsAhead && reads_ahead_ < ahead_) {
    if (!appended_.empty()) {
      ScheduleAppended();
    } else if (next_miss_ < plan_.misses.size()) {
      ScheduleMiss();
    } else if (next_step_ < steps_.steps()) {
      RHIZOME_RETURN_IF_ERROR(StartStep());
    } else {
      break;
    }
  }
  return Status::Ok();
}

// Starts a step. Its hits become requests, which share the frames' chunks, before an insert
// replaces them.
Status ChunkReader::StartStep() {
  const std::span<const CacheKey> keys = steps_.step(next_step_);
  step_first_ = steps_.offsets[next_step_++];
  RHIZOME_RETURN_IF_ERROR(policy_->Step(keys, plan_));
  next_miss_ = 0;
  stats_.requests += keys.size();
  stats_.hits += plan_.hits.size();
  for (const StepPlan::Place& hit : plan_.hits) {
    requests_.push_back({step_first_ + hit.request, frames_[hit.frame], false});
  }
  insert_at_.assign(keys.size(), kNoFrame);
  for (const StepPlan::Place& insert : plan_.inserts) insert_at_[insert.request] = insert.frame;
  for (std::size_t i = 0; i < plan_.hits.size(); ++i) {
    const FrameId frame = insert_at_[plan_.hits[i].request];
    const std::size_t at = requests_.size() - plan_.hits.size() + i;
    if (frame != kNoFrame) frames_[frame] = requests_[at].chunk;
  }
  return Status::Ok();
}

void ChunkReader::ScheduleMiss() {
  const std::uint32_t miss = plan_.misses[next_miss_++];
  std::shared_ptr<Chunk> chunk = Schedule(steps_.keys[step_first_ + miss]);
  ++reads_ahead_;
  if (insert_at_[miss] != kNoFrame) frames_[insert_at_[miss]] = chunk;
  requests_.push_back({step_first_ + miss, std::move(chunk), true});
}

void ChunkReader::ScheduleAppended() {
  std::shared_ptr<Chunk> chunk = Schedule(appended_.front());
  appended_.pop_front();
  ++reads_ahead_;
  requests_.push_back({stats_.requests++, std::move(chunk), true});
}

std::shared_ptr<ChunkReader::Chunk> ChunkReader::Schedule(CacheKey key) {
  auto chunk = std::make_shared<Chunk>();
  chunk->number = static_cast<std::uint64_t>(key);
  ++stats_.reads;
  scheduled_.Push(chunk);
  return chunk;
}

void ChunkReader::ReadScheduled() {
  Memory memory;
  while (true) {
    Result<std::optional<std::shared_ptr<Chunk>>> next = scheduled_.Pop();
    if (!next || !*next) return;
    Chunk& chunk = ***next;
    chunk.status = Guarded([&] { return Read(chunk, memory); });
    chunk.ready.store(true, std::memory_order_release);
    chunk.ready.notify_all();
  }
}

Status ChunkReader::Read(Chunk& chunk, Memory& memory) {
  RHIZOME_RETURN_IF_ERROR(control_.CheckCancelled());
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(const std::shared_ptr<float[]> values, buffers_.Take());
  const std::uint64_t rows = RowsInChunk(chunk.number);
  const std::span<float> floats(values.get(), rows * decoder_.dim());
  std::uint64_t bytes = 0;
  if (decoder_.is_identity()) {
    RHIZOME_ASSIGN_OR_RETURN(bytes,
                             ReadStored(chunk.number, std::as_writable_bytes(floats), memory));
  } else {
    memory.stored.resize(rows * decoder_.stored_row_bytes());
    RHIZOME_ASSIGN_OR_RETURN(bytes, ReadStored(chunk.number, memory.stored, memory));
    decoder_.Decode(memory.stored, floats);
  }
  bytes_read_ += bytes;
  read_seconds_ += watch.seconds();
  chunk.values = values;
  return Status::Ok();
}

/// Reads the stored rows of a chunk, with the changes of the delta. Returns the number of bytes
/// read.
Result<std::uint64_t> ChunkReader::ReadStored(std::uint64_t chunk, std::span<std::byte> rows,
                                              Memory& memory) {
  if (delta_ == nullptr) return array_.ReadChunk(chunk, rows, how_, &memory.encoded);
  std::uint64_t bytes = 0;
  if (chunk < array_.entry().chunk_count()) {
    const std::size_t in_array = array_.RowsInChunk(chunk) * decoder_.stored_row_bytes();
    RHIZOME_ASSIGN_OR_RETURN(bytes,
                             array_.ReadChunk(chunk, rows.first(in_array), how_, &memory.encoded));
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

}  // namespace internal
}  // namespace rhizome
