#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/cache/chunk_reader.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/hash.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The bytes that passes moved between memory and scratch arrays.
struct ScratchBytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};

/// A matrix of floats in chunks: chunk c holds rows [c * chunk_rows, (c + 1) * chunk_rows), the
/// last perhaps fewer.
struct ScratchShape {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t dim = 0;
  std::uint64_t chunk_rows = 1;

  std::uint64_t chunks() const { return (rows + chunk_rows - 1) / chunk_rows; }
  std::uint64_t RowsIn(std::uint64_t chunk) const;

  /// Bytes of a chunk's file: whole units of direct reads and writes.
  std::uint64_t BytesIn(std::uint64_t chunk) const;
  std::uint64_t LargestBytes() const { return rows == 0 ? 0 : BytesIn(0); }

  /// Bytes of all chunks but the first `but`.
  std::uint64_t BytesAfter(std::uint64_t but) const;
};

/// A folder of scratch arrays, with memory for chunks that is used again and again, and the count
/// of what was read and written. Threads: any. Ownership: `fs` must outlive it.
class ScratchSpace {
 public:
  /// Touches nothing: who only counts needs no folder.
  ScratchSpace(FileSystem& fs, Path folder) : fs_(fs), folder_(std::move(folder)) {}

  /// Makes the folder, or empties it. Errors: those of the FileSystem.
  Status Prepare();

  FileSystem& fs() const { return fs_; }
  const Path& folder() const { return folder_; }

  /// Returns memory for `bytes`, aligned for direct reads and writes, uninitialised. Errors:
  /// kOutOfMemory.
  Result<std::shared_ptr<float[]>> Take(std::uint64_t bytes);

  ScratchBytes moved() const { return {.read = read_, .written = written_}; }
  void CountRead(std::uint64_t bytes) { read_ += bytes; }
  void CountWritten(std::uint64_t bytes) { written_ += bytes; }

 private:
  FileSystem& fs_;
  const Path folder_;
  Mutex mutex_;
  std::map<std::uint64_t, FloatBuffers> buffers_ RHIZOME_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<std::uint64_t> written_ = 0;
};

/// An array between two passes. Its first chunks stay in memory; each other one is a raw file,
/// written and read past the page cache and never synced, whose checksum is kept here. Nobody reads
/// it after this process.
/// Threads: functions may be called from many threads for different chunks; a chunk is written
/// before it is read.
/// Ownership: `space` must outlive it.
class ScratchArray {
 public:
  ScratchArray(ScratchSpace& space, ScratchShape shape, std::uint64_t resident_chunks);
  ~ScratchArray() { Drop(); }

  const ScratchShape& shape() const { return shape_; }
  bool IsResident(std::uint64_t chunk) const { return chunk < resident_; }

  /// Returns memory for a chunk, to be filled and given to Write. Errors: kOutOfMemory.
  Result<std::shared_ptr<float[]>> Take() const { return space_.Take(shape_.LargestBytes()); }

  /// Keeps or writes a chunk, [rows of the chunk, dim]. Errors: kIoError; kOutOfSpace.
  Status Write(std::uint64_t chunk, std::shared_ptr<float[]> values);

  /// Errors: kCorruption, naming the file; kIoError; kOutOfMemory.
  Result<std::shared_ptr<const float[]>> Read(std::uint64_t chunk);

  /// Forgets all chunks.
  void Drop();

 private:
  Path FileOf(std::uint64_t chunk) const;

  ScratchSpace& space_;
  const ScratchShape shape_;
  const std::uint64_t resident_;
  std::vector<std::shared_ptr<const float[]>> kept_;  // [resident chunks]
  std::vector<Hash128> hashes_;                       // [chunks]
  std::vector<char> on_disk_;                         // [chunks]
};

}  // namespace rhizome::inline internal
