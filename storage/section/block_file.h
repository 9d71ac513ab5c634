#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/storage/export.h"
#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/section_file.h"
#include "rhizome/storage/section_format.h"

namespace rhizome::inline internal {

/// A section file on disk whose blocks of 4 KiB are read, and checked, one by one. Open reads and
/// verifies only its ends and tables; they hold the checksum of every block (4 bytes each stay in
/// memory), so whatever is read later is verified without the rest of the file.
/// Threads: const functions from many threads at once. Ownership: none of `fs` after Open.
class BlockFile {
 public:
  /// Opens with O_DIRECT where `direct` and the file system grant it.
  /// Errors: kNotFound; kIoError; kCorruption, the ends or tables; kUnsupported, a newer version.
  static Result<std::unique_ptr<BlockFile>> Open(FileSystem& fs, const Path& path, FileKind kind,
                                                 const StoreId& store_id, bool direct);

  const Path& path() const { return file_->path(); }
  ReadableFile& file() const { return *file_; }
  bool direct() const { return file_->alignment_bytes() > 1; }
  std::uint64_t size_bytes() const { return file_->size_bytes(); }
  const std::vector<SectionEntry>& entries() const { return entries_; }
  const SectionFooter& footer() const { return footer_; }

  /// CRC-32C of the whole file, as its blocks' checksums say: what binds it to a manifest.
  std::uint32_t crc32c() const { return crc32c_; }

  /// The blocks that cover [offset, offset + size) as one read: whole blocks, which on a file that
  /// is not direct end with the file.
  struct Blocks {
    std::uint64_t offset_bytes = 0;
    std::uint64_t size_bytes = 0;
  };
  Blocks BlocksOf(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

  /// Checks what was read at `blocks`. Errors: kCorruption naming file and offset.
  Status Check(const Blocks& blocks, std::span<const std::byte> bytes) const;

  /// Reads bytes of the covered part in this thread and checks their blocks: for point look-ups.
  Result<std::vector<std::byte>> Read(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

  /// Reads [begin, end) of the file through a queue of its own, many large pieces in flight, each
  /// checked as it comes. begin is a multiple of 4 KiB; `out` is aligned, and has room for end
  /// rounded up to one.
  Status Load(std::uint64_t begin, std::uint64_t end, std::span<std::byte> out,
              const IoQueueOptions& io) const;

 private:
  BlockFile() = default;
  Status ReadTables(ReadableFile& file, FileKind kind, const StoreId& store_id);

  std::unique_ptr<ReadableFile> file_;
  SectionFooter footer_ = {};
  std::vector<SectionEntry> entries_;
  std::vector<std::uint32_t> block_crcs_;
  std::uint32_t crc32c_ = 0;
};

}  // namespace rhizome::inline internal
