#include "rhizome/index/chunk_copy.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "rhizome/storage/mutex.h"

namespace rhizome {

namespace {

// Two chunks are written while a third is read.
constexpr std::uint32_t kSequentialThreads = 3;

class ChunkCopy {
 public:
  ChunkCopy(const ArrayInput& array, std::span<const VertexId> vertex_of_row,
            ChunkArrayWriter& writer, const JobControl& control)
      : array_(array), vertex_of_row_(vertex_of_row), writer_(writer), control_(control) {}

  Status Run(std::uint32_t threads) {
    std::vector<std::thread> helpers;
    for (std::uint32_t i = 1; i < threads; ++i) helpers.emplace_back([this] { CopyAll(); });
    CopyAll();
    for (std::thread& helper : helpers) helper.join();
    const MutexLock lock(mutex_);
    return failed_;
  }

 private:
  const ArrayEntry& entry() const { return writer_.entry(); }

  std::span<const VertexId> VerticesOf(std::uint64_t chunk) const {
    const std::uint64_t first = chunk * entry().chunk_rows;
    return vertex_of_row_.subspan(first, std::min(entry().chunk_rows, entry().rows - first));
  }

  Status Read(std::uint64_t chunk, std::vector<std::byte>& rows) const {
    const auto vertices = VerticesOf(chunk);
    rows.resize(vertices.size() * entry().row_bytes());
    return array_.read_rows(vertices, rows);
  }

  /// The next chunk, read already if only one thread may read; false when there is none.
  bool Take(std::uint64_t& chunk, std::vector<std::byte>& rows) {
    const MutexLock lock(mutex_);
    if (!failed_.ok() || next_ == entry().chunk_count()) return false;
    chunk = next_++;
    failed_ = control_.Report(
        {.phase = "arrays", .done = chunk, .total = entry().chunk_count(), .detail = array_.name});
    if (failed_.ok() && array_.readers == 1) failed_ = Read(chunk, rows);
    return failed_.ok();
  }

  void CopyAll() {
    std::uint64_t chunk = 0;
    std::vector<std::byte> rows;
    while (Take(chunk, rows)) {
      Status status = array_.readers == 1 ? Status::Ok() : Read(chunk, rows);
      if (status.ok()) {
        if (const auto written = writer_.WriteChunk(chunk, rows); !written)
          status = written.error();
      }
      const MutexLock lock(mutex_);
      if (failed_.ok()) failed_ = status;
    }
  }

  const ArrayInput& array_;
  const std::span<const VertexId> vertex_of_row_;
  ChunkArrayWriter& writer_;
  const JobControl& control_;

  Mutex mutex_;
  std::uint64_t next_ RHIZOME_GUARDED_BY(mutex_) = 0;
  Status failed_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace

Status WriteChunks(const ArrayInput& array, std::span<const VertexId> vertex_of_row,
                   std::uint64_t memory_bytes, ChunkArrayWriter& writer,
                   const JobControl& control) {
  const std::uint64_t chunk_bytes = writer.entry().chunk_rows * writer.entry().row_bytes();
  // Chunks in memory are to be a small part of it.
  const bool room = memory_bytes == 0 || chunk_bytes < memory_bytes / 32;
  const std::uint32_t threads = std::max(kSequentialThreads, array.readers);
  return ChunkCopy(array, vertex_of_row, writer, control).Run(room ? threads : 1);
}

}  // namespace rhizome
