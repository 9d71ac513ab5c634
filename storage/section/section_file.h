#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/io_queue.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store_id.h"

namespace rhizome::inline internal {

/// What a section file is. Stored on disk: never renumber, only append.
enum class FileKind : std::uint32_t {
  kInvalid = 0,
  kPartition = 1,      // topology/part-NNNN.adj
  kOrder = 2,          // order/order.ord
  kVertexIds = 3,      // ids/ids.dict
  kNeighborCache = 4,  // a job's scratch file
};

/// Where files of a generation go while they are written: a sink that hashes and syncs (see
/// GenerationWriter), or a plain file in tests.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status Append(std::span<const std::byte> bytes) = 0;
};

/// Writes a section file front to back: preamble, 64-byte aligned sections, section table, one
/// CRC-32C for each 4 KiB block, footer (storage/FORMAT.md, "Section file"). The sections may be
/// larger than memory when they are appended piece by piece.
///
/// Use: for each section BeginSection and Append..., then Finish.
class SectionFileWriter {
 public:
  SectionFileWriter(ByteSink& sink, FileKind kind, const StoreId& store_id);
  ~SectionFileWriter();
  SectionFileWriter(const SectionFileWriter&) = delete;
  SectionFileWriter& operator=(const SectionFileWriter&) = delete;

  /// `kind` must not repeat; `element_bytes` is 1, 2, 4 or 8.
  Status BeginSection(std::uint32_t kind, std::uint32_t element_bytes);
  Status Append(std::span<const std::byte> bytes);
  Status Finish();

  /// BeginSection and Append in one.
  template <typename T>
  Status AddSection(std::uint32_t kind, std::span<const T> elements) {
    RHIZOME_RETURN_IF_ERROR(BeginSection(kind, sizeof(T)));
    return Append(std::as_bytes(elements));
  }

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class BlockFile;

/// A section file, loaded and verified whole: every block's checksum, the table, the footer; or but
/// for the sections that were left on disk, of which ReadBytes reads and verifies pieces.
/// Threads: const after Load.
class SectionFile {
 public:
  SectionFile();  ///< no sections
  SectionFile(SectionFile&&) noexcept;
  SectionFile& operator=(SectionFile&&) noexcept;
  ~SectionFile();

  struct LoadOptions {
    /// Kinds to leave on disk.
    std::span<const std::uint32_t> leave = {};

    /// CRC-32C that the whole file must have, from a manifest.
    std::optional<std::uint32_t> crc32c = {};

    /// O_DIRECT where the file system grants it.
    bool direct = true;
    IoQueueOptions io = {.depth = 16};
  };

  /// Errors: kCorruption naming path, offset and field; kUnsupported, a newer version of the
  /// format; kIoError. Never allocates more than the file's length.
  static Result<SectionFile> Load(FileSystem& fs, const Path& path, FileKind kind,
                                  const StoreId& store_id, const LoadOptions& options);
  static Result<SectionFile> Load(FileSystem& fs, const Path& path, FileKind kind,
                                  const StoreId& store_id) {
    return Load(fs, path, kind, store_id, LoadOptions());
  }

  /// The same from bytes in memory; touches no file, so that fuzz/ can drive it. `path` only names
  /// the source in messages.
  static Result<SectionFile> Parse(std::vector<std::byte> bytes, const Path& path, FileKind kind,
                                   const StoreId& store_id);

  bool Has(std::uint32_t kind) const;

  /// Element size of a section, or 0 if it is absent.
  std::uint32_t ElementBytes(std::uint32_t kind) const;

  /// The section's elements, without a copy. Errors: kCorruption if it is absent, or its elements
  /// are not sizeof(T) bytes, or there are not exactly `expected_count` of them;
  /// kInvalidArgument, it was left on disk.
  template <typename T>
  Result<std::span<const T>> Section(std::uint32_t kind, std::uint64_t expected_count) const {
    RHIZOME_ASSIGN_OR_RETURN(auto bytes, RawSection(kind, sizeof(T), expected_count));
    return std::span<const T>(reinterpret_cast<const T*>(bytes.data()), expected_count);
  }
  /// The same without an expected count.
  template <typename T>
  Result<std::span<const T>> Section(std::uint32_t kind) const {
    return Section<T>(kind, Count(kind));
  }

  /// Elements of a section; 0 if it is absent.
  std::uint64_t Count(std::uint32_t kind) const;

  /// The kinds of all sections, in file order.
  std::vector<std::uint32_t> Kinds() const;

  /// Errors: kCorruption, as Section says it; for sections that may have been left on disk.
  Status Expect(std::uint32_t kind, std::uint32_t element_bytes,
                std::uint64_t expected_count) const;

  /// Is the section there and in memory?
  bool Resident(std::uint32_t kind) const;

  /// Where the section begins in the file; 0 if it is absent.
  std::uint64_t OffsetBytes(std::uint32_t kind) const;

  /// Bytes of the file, of sections left on disk too; read in this thread and verified by block.
  /// Errors: kInvalidArgument, nothing was left on disk; kCorruption; kIoError.
  Result<std::vector<std::byte>> ReadBytes(std::uint64_t offset_bytes,
                                           std::uint64_t size_bytes) const;

  /// The open file where sections were left on disk, else null.
  const BlockFile* blocks() const { return blocks_.get(); }

  const Path& path() const { return path_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

  /// Bytes of a section, without padding and checksums; 0 if it is absent.
  std::uint64_t SectionBytes(std::uint32_t kind) const;

 private:
  struct Entry {
    std::uint32_t kind;
    std::uint32_t element_bytes;
    std::uint64_t offset_bytes;
    std::uint64_t count;
    const std::byte* data;  // of size count * element_bytes; null: left on disk
  };
  const Entry* Find(std::uint32_t kind) const;
  Result<std::span<const std::byte>> RawSection(std::uint32_t kind, std::uint32_t element_bytes,
                                                std::uint64_t expected_count) const;
  Status LoadAll(const IoQueueOptions& io);
  Status LoadSome(std::span<const std::uint32_t> leave, const IoQueueOptions& io);

  Path path_;
  std::uint64_t size_bytes_ = 0;
  std::vector<std::byte> bytes_;        // parsed from memory
  std::vector<AlignedBuffer> buffers_;  // loaded
  std::unique_ptr<BlockFile> blocks_;
  std::vector<Entry> entries_;
};

}  // namespace rhizome::inline internal
