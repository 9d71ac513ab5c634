#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "storage/io/io_queue.h"
#include "storage/section/section_file.h"
#include "storage/section/section_format.h"

namespace rhizome {
inline namespace internal {

/// A section file on disk whose blocks of 4 KiB are read and verified individually. Open reads and
/// verifies only the two ends and the tables. The checksums of all blocks remain in memory (4 bytes
/// each), so that later reads are verified without the rest of the file.
/// Threads: const functions may be called from many threads at once. Ownership: `fs` is not used
/// after Open.
class BlockFile {
 public:
  /// Opens the file, with O_DIRECT if `direct` is true and the file system supports it.
  /// Errors: kNotFound; kIoError; kCorruption, the ends or tables are damaged; kUnsupported, a
  /// newer version.
  static Result<std::unique_ptr<BlockFile>> Open(FileSystem& fs, const Path& path, FileKind kind,
                                                 const StoreId& store_id, bool direct);

  const Path& path() const { return file_->path(); }
  ReadableFile& file() const { return *file_; }
  bool direct() const { return file_->alignment_bytes() > 1; }
  std::uint64_t size_bytes() const { return file_->size_bytes(); }
  const std::vector<SectionEntry>& entries() const { return entries_; }
  const SectionFooter& footer() const { return footer_; }

  /// CRC-32C of the whole file, combined from the checksums of its blocks. The manifest contains
  /// it, too, which ties the file to the manifest.
  std::uint32_t crc32c() const { return crc32c_; }

  /// The blocks that cover [offset, offset + size), as one read. The last one is a whole block, or,
  /// if the file is not direct, ends with the file.
  struct Blocks {
    std::uint64_t offset_bytes = 0;
    std::uint64_t size_bytes = 0;
  };
  Blocks BlocksOf(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

  /// Verifies `bytes`, which were read at `blocks`. Errors: kCorruption, naming file and offset.
  Status Check(const Blocks& blocks, std::span<const std::byte> bytes) const;

  /// Reads a range in the calling thread and verifies its blocks; for point look-ups. Errors:
  /// kCorruption, the bytes are damaged or the range extends into the checksums; kIoError.
  Result<std::vector<std::byte>> Read(std::uint64_t offset_bytes, std::uint64_t size_bytes) const;

  /// Reads [begin, end) of the file through its own queue, with many large pieces in flight, and
  /// verifies each piece as it arrives. `begin` must be a multiple of 4 KiB. `out` must be aligned
  /// for direct reads and have `end - begin` bytes, rounded up to 4 KiB. Errors: as for Read.
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

}  // namespace internal
}  // namespace rhizome
