#include "index/generation/chunk_copy.h"

#include <algorithm>
#include <vector>

#include "index/topology/type_rows.h"
#include "storage/array/array_versions.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"

namespace rhizome {
inline namespace internal {

namespace {

// With three threads, two chunks are written while a third is read. Groups of chunks need more
// memory, so only one group is written at a time.
constexpr std::uint32_t kThreads = 3;
constexpr std::uint32_t kThreadsOfGroups = 2;

class ChunkCopy {
 public:
  ChunkCopy(const ArrayInput& array, const VertexOrder& order, const TypeRows* of_type,
            std::uint64_t chunks_at_once, ChunkArrayWriter& writer, const JobControl& control,
            const std::function<void(const FileEntry&)>& written)
      : array_(array),
        order_(order),
        of_type_(of_type),
        chunks_at_once_(chunks_at_once),
        writer_(writer),
        control_(control),
        written_(written) {}

  Status Run(std::uint32_t threads) {
    return RunOnThreads(threads, [this] {
      const Status status = Guarded([this] { return CopyAll(); });
      const MutexLock lock(mutex_);
      if (failed_.ok()) failed_ = status;  // also stops the other threads
      return failed_;
    });
  }

 private:
  /// Chunks [first, end) and their rows.
  struct Group {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::vector<VertexId> vertices;
    std::vector<std::byte> rows;
    std::vector<std::byte> packed;  // the rows of a bound array's type, without gaps
  };

  const ArrayEntry& entry() const { return writer_.entry(); }
  std::uint64_t FirstRow(std::uint64_t chunk) const {
    return std::min(chunk * entry().chunk_rows, entry().rows);
  }

  /// Reads the rows of the next chunks. Returns false if there are none left, or after a failure.
  bool Take(Group& group) {
    const MutexLock lock(mutex_);
    if (!failed_.ok() || next_ == entry().chunk_count()) return false;
    group.first = next_;
    group.end = next_ = std::min(next_ + chunks_at_once_, entry().chunk_count());
    failed_ = control_.Report({.phase = "arrays",
                               .done = group.first,
                               .total = entry().chunk_count(),
                               .detail = ShownName(array_.name)});
    if (!failed_.ok()) return false;
    const std::uint64_t first = FirstRow(group.first);
    const std::uint64_t count = FirstRow(group.end) - first;
    group.rows.resize(count * entry().row_bytes());
    if (of_type_ != nullptr) {
      failed_ = ReadOfType(first, group);
      return failed_.ok();
    }
    group.vertices.resize(count);
    for (std::uint64_t i = 0; i < count; ++i)
      group.vertices[i] = order_.VertexAt(static_cast<Row>(first + i));
    failed_ = array_.read_rows(group.vertices, group.rows);
    return failed_.ok();
  }

  /// Reads the rows of the type in a group that begins with row `first`; the other rows get the
  /// fill value.
  Status ReadOfType(std::uint64_t first, Group& group) const {
    const std::uint64_t row_bytes = entry().row_bytes();
    const std::uint64_t end = first + group.rows.size() / row_bytes;
    group.vertices.clear();
    for (std::uint64_t row = first; row < end; ++row)
      if (of_type_->Has(row)) group.vertices.push_back(order_.VertexAt(static_cast<Row>(row)));
    if (group.vertices.empty()) return Status::Ok();  // Write leaves the chunks out
    group.packed.resize(group.vertices.size() * row_bytes);
    RHIZOME_RETURN_IF_ERROR(array_.read_rows(group.vertices, group.packed));
    PlaceOfType(entry(), *of_type_, first, group.packed, group.rows);
    return Status::Ok();
  }

  Status Write(const Group& group) {
    const std::uint64_t row_bytes = entry().row_bytes();
    const auto rows = std::span<const std::byte>(group.rows);
    for (std::uint64_t chunk = group.first; chunk < group.end; ++chunk) {
      if (of_type_ != nullptr && !of_type_->AnyIn(FirstRow(chunk), FirstRow(chunk + 1))) {
        RHIZOME_RETURN_IF_ERROR(writer_.LeaveOut(chunk));
        continue;
      }
      const std::uint64_t begin = (FirstRow(chunk) - FirstRow(group.first)) * row_bytes;
      const std::uint64_t size = (FirstRow(chunk + 1) - FirstRow(chunk)) * row_bytes;
      RHIZOME_ASSIGN_OR_RETURN(const FileEntry file,
                               writer_.WriteChunk(chunk, rows.subspan(begin, size)));
      if (written_) written_(file);
    }
    return Status::Ok();
  }

  Status CopyAll() {
    Group group;
    while (Take(group)) RHIZOME_RETURN_IF_ERROR(Write(group));
    return Status::Ok();
  }

  const ArrayInput& array_;
  const VertexOrder& order_;
  const TypeRows* const of_type_;
  const std::uint64_t chunks_at_once_;
  ChunkArrayWriter& writer_;
  const JobControl& control_;
  const std::function<void(const FileEntry&)>& written_;

  Mutex mutex_;
  std::uint64_t next_ RHIZOME_GUARDED_BY(mutex_) = 0;
  Status failed_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace

Status WriteChunks(const ArrayInput& array, const VertexOrder& order, const TypeRows* of_type,
                   std::uint64_t memory_bytes, ChunkArrayWriter& writer, const JobControl& control,
                   const std::function<void(const FileEntry&)>& written) {
  const ArrayEntry& entry = writer.entry();
  const std::uint64_t chunk_bytes =
      std::max<std::uint64_t>(entry.chunk_rows * entry.row_bytes(), 1);
  // The chunks in memory should need only a small part of memory_bytes.
  const bool room = memory_bytes == 0 || chunk_bytes < memory_bytes / 32;
  const std::uint64_t rows_at_once = array.rows_at_once ? array.rows_at_once() : 0;
  std::uint64_t at_once = std::max<std::uint64_t>(rows_at_once / entry.chunk_rows, 1);
  if (memory_bytes != 0)
    at_once = std::clamp<std::uint64_t>(memory_bytes / 32 / chunk_bytes, 1, at_once);
  const std::uint32_t threads = !room ? 1 : at_once > 1 ? kThreadsOfGroups : kThreads;
  return ChunkCopy(array, order, of_type, at_once, writer, control, written).Run(threads);
}

}  // namespace internal
}  // namespace rhizome
