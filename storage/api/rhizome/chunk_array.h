#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {
class ShardTables;

/// The chunks of an array that have files, and their positions among them. In an array that is not
/// bound to a vertex type, all chunks have files.
class ChunkSlots {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  ChunkSlots() = default;
  explicit ChunkSlots(std::uint64_t all_chunks) : size_(all_chunks) {}
  explicit ChunkSlots(std::vector<std::uint64_t> ascending)
      : size_(ascending.size()), all_(false), chunks_(std::move(ascending)) {}

  std::uint64_t size() const { return size_; }
  bool all() const { return all_; }
  std::uint64_t ChunkAt(std::uint64_t slot) const { return all_ ? slot : chunks_[slot]; }

  /// Returns the position of a chunk; kNone if it has no file.
  std::uint64_t Find(std::uint64_t chunk) const {
    if (all_) return chunk < size_ ? chunk : kNone;
    const auto at = std::lower_bound(chunks_.begin(), chunks_.end(), chunk);
    return at != chunks_.end() && *at == chunk ? static_cast<std::uint64_t>(at - chunks_.begin())
                                               : kNone;
  }

 private:
  std::uint64_t size_ = 0;
  bool all_ = true;
  std::vector<std::uint64_t> chunks_;  // unless all
};
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

class AlignedBuffer;

/// Reads the chunks of one array, and checks each against the checksum or hash in the manifest. Can
/// also read single inner chunks of a shard; their checksums are verified through the manifest's
/// (FORMAT.md, "Shards"). A chunk of a bound array that has no file, because it has no vertex of
/// the type, reads as the fill value. Threads: const functions may be called from many threads.
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

  /// Returns whether the chunk has a file.
  bool HasChunk(std::uint64_t chunk) const { return slots_.Find(chunk) != ChunkSlots::kNone; }
  const ChunkSlots& slots() const { return slots_; }

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
  /// kInvalidArgument, no such chunk, or it has no file.
  Result<const FileEntry*> ChunkFile(std::uint64_t chunk) const;

 private:
  ChunkArray();
  Status ReadRowsOfShard(std::uint64_t chunk, std::uint64_t first_row,
                         std::span<std::byte> out) const;
  Status AddChunks(std::span<const FileEntry* const> files);
  const FileEntry& FileAt(std::uint64_t chunk) const { return chunks_[slots_.Find(chunk)]; }
  Status DecodeInto(const Path& path, std::uint64_t chunk, std::span<const std::byte> bytes,
                    std::span<std::byte> out) const;
  FileSystem* fs_ = nullptr;
  Path root_;
  ArrayEntry entry_;
  ChunkSlots slots_;
  std::vector<FileEntry> chunks_;  // by slot
  std::unique_ptr<ShardTables> tables_;
};

}  // namespace rhizome
