#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {
class ShardTables;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

class AlignedBuffer;

/// Reads the chunks of one array, and checks each against the checksum or hash in the manifest. Can
/// also read single inner chunks of a shard; their checksums are verified through the manifest's
/// (FORMAT.md, "Shards").
/// Threads: const functions may be called from many threads.
/// Ownership: `fs` must outlive it; entries are copied.
class ChunkArray {
 public:
  ~ChunkArray();

  /// Reads zarr.json and compares it with `entry`. `files` are the manifest's files, and may
  /// include those unrelated to the array. Errors: kCorruption, metadata or file list do not match;
  /// kNotFound.
  static Result<std::unique_ptr<ChunkArray>> Open(FileSystem& fs, const Path& root,
                                                  const ArrayEntry& entry,
                                                  std::span<const FileEntry> files);

  const ArrayEntry& entry() const { return entry_; }

  /// Returns the number of rows of chunk `chunk` within the shape (the last chunk may have fewer);
  /// 0 if there is no such chunk.
  std::uint64_t RowsInChunk(std::uint64_t chunk) const;

  /// Reads and decodes chunk `chunk` into `out`, of RowsInChunk(chunk) * row_bytes() bytes. With
  /// `options.direct` it bypasses the page cache, fastest if `out` is aligned like an
  /// AlignedBuffer. The last argument is an optional buffer for encoded bytes, which a caller may
  /// reuse across calls; it grows if it is too small. Returns the number of bytes read from disk.
  /// Errors: kInvalidArgument, no such chunk or a wrong size; kCorruption, naming the file;
  /// kIoError.
  Result<std::uint64_t> ReadChunk(std::uint64_t chunk, std::span<std::byte> out,
                                  const FileSystem::ReadOptions& options = {},
                                  AlignedBuffer* room = nullptr) const;

  /// Reads rows [first, first + count) into `out`, of count * row_bytes() bytes. If only part of a
  /// chunk is needed, a shard's inner chunks are read individually; any other chunk is read as a
  /// whole.
  /// Errors: kInvalidArgument, no such rows or a wrong size; kCorruption, naming the file and, in a
  /// shard, inner chunk and bytes; kIoError.
  Status ReadRows(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;

  const Path& root() const { return root_; }
  FileSystem& fs() const { return *fs_; }

  /// Returns the manifest's entry of a chunk's file; owned by this object. Errors:
  /// kInvalidArgument, no such chunk.
  Result<const FileEntry*> ChunkFile(std::uint64_t chunk) const;

 private:
  ChunkArray();
  Status ReadRowsOfShard(std::uint64_t chunk, std::uint64_t first_row,
                         std::span<std::byte> out) const;
  Status DecodeInto(const Path& path, std::uint64_t chunk, std::span<const std::byte> bytes,
                    std::span<std::byte> out) const;
  FileSystem* fs_ = nullptr;
  Path root_;
  ArrayEntry entry_;
  std::vector<FileEntry> chunks_;
  std::unique_ptr<ShardTables> tables_;
};

}  // namespace rhizome
