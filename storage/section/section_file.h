#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "rhizome/types.h"
#include "storage/io/io_queue.h"

namespace rhizome {
inline namespace RHIZOME_API internal {
class PagedSection;
class PagedSections;
}  // namespace internal
inline namespace internal {

/// The purpose of a section file. Stored on disk: never renumber, only append.
enum class FileKind : std::uint32_t {
  kInvalid = 0,
  kPartition = 1,      // topology/part-NNNN.adj
  kOrder = 2,          // order/order.ord
  kVertexIds = 3,      // ids/ids.dict
  kNeighborCache = 4,  // a job's scratch file
};

/// Receives the bytes of a file that is being written, in order. GenerationWriter implements one
/// that hashes and syncs; tests use plain files. Threads: one at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status Append(std::span<const std::byte> bytes) = 0;
};

/// Writes a section file sequentially: preamble, 64-byte aligned sections, section table, one
/// CRC-32C per 4 KiB block, footer (storage/FORMAT.md, "Section file"). Sections that are appended
/// piece by piece may be larger than memory.
///
/// Use: BeginSection and Append (once or more) for each section, then Finish. Readers refuse a file
/// without Finish. After an error every later call fails.
/// Threads: one at a time. Ownership: `sink` must outlive the writer.
class SectionFileWriter {
 public:
  SectionFileWriter(ByteSink& sink, FileKind kind, const StoreId& store_id);
  ~SectionFileWriter();
  SectionFileWriter(const SectionFileWriter&) = delete;
  SectionFileWriter& operator=(const SectionFileWriter&) = delete;

  /// Begins a section and ends the previous one. `kind` must not be 0 and must not repeat;
  /// `element_bytes` is 1, 2, 4 or 8. Errors: kInvalidArgument, a violation of these rules, more
  /// than 256 sections, or the previous section does not consist of whole elements; errors of the
  /// sink.
  Status BeginSection(std::uint32_t kind, std::uint32_t element_bytes);

  /// Appends bytes to the open section. Errors: kInvalidArgument, no section is open; errors of the
  /// sink.
  Status Append(std::span<const std::byte> bytes);

  /// Writes the tables and the footer. May be called at most once. Errors: as for BeginSection.
  Status Finish();

  /// Calls BeginSection and Append.
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

/// A section file that was loaded and verified: all block checksums, the tables, the footer.
/// Sections may be left on disk; ReadBytes then reads and verifies parts of them. A paged file
/// reads each block when it is first used. Threads: const functions may be called from many
/// threads. Ownership: spans of sections are valid for the lifetime of the file, even after it was
/// moved.
class SectionFile {
 public:
  SectionFile();  ///< no sections
  SectionFile(SectionFile&&) noexcept;
  SectionFile& operator=(SectionFile&&) noexcept;
  ~SectionFile();

  struct LoadOptions {
    /// Kinds of sections to leave on disk.
    std::span<const std::uint32_t> leave = {};

    /// Reads nothing but the tables; `leave` has no meaning then. Section reads a whole section,
    /// Page returns one that is read block by block.
    bool paged = false;

    /// The expected CRC-32C of the whole file, from a manifest.
    std::optional<std::uint32_t> crc32c = {};

    /// Reads with O_DIRECT if the file system supports it.
    bool direct = true;
    IoQueueOptions io = {.depth = 16};
  };

  /// Loads the file at `path`, which must be of the given kind and store. Errors: kNotFound;
  /// kCorruption, naming path, offset and field; kUnsupported, a newer version of the format;
  /// kIoError. Memory is bounded by the length of the file, regardless of its content.
  static Result<SectionFile> Load(FileSystem& fs, const Path& path, FileKind kind,
                                  const StoreId& store_id, const LoadOptions& options);
  static Result<SectionFile> Load(FileSystem& fs, const Path& path, FileKind kind,
                                  const StoreId& store_id) {
    return Load(fs, path, kind, store_id, LoadOptions());
  }

  /// As Load, from bytes in memory; accesses no file, so that fuzz/ can drive it. `path` is used
  /// only in messages.
  static Result<SectionFile> Parse(std::vector<std::byte> bytes, const Path& path, FileKind kind,
                                   const StoreId& store_id);

  bool Has(std::uint32_t kind) const;

  /// Returns the size of an element of a section; 0 if the section is absent.
  std::uint32_t ElementBytes(std::uint32_t kind) const;

  /// Returns the section's elements, without a copy. Errors: kCorruption, the section is absent,
  /// its elements do not have sizeof(T) bytes, or their number is not `expected_count`;
  /// kInvalidArgument, the section was left on disk.
  template <typename T>
  Result<std::span<const T>> Section(std::uint32_t kind, std::uint64_t expected_count) const {
    RHIZOME_ASSIGN_OR_RETURN(auto bytes, RawSection(kind, sizeof(T), expected_count));
    return std::span<const T>(reinterpret_cast<const T*>(bytes.data()), expected_count);
  }
  /// As above, without an expected count.
  template <typename T>
  Result<std::span<const T>> Section(std::uint32_t kind) const {
    return Section<T>(kind, Count(kind));
  }

  /// Returns whether the sections are read when they are used (LoadOptions::paged).
  bool paged() const { return pages_ != nullptr; }

  /// Returns a section of a paged file, whose elements must be below `limit`. It lives as long as
  /// the file, even after the file was moved. Call it while the file is opened, from one thread.
  /// Errors: kCorruption, as for Section.
  Result<const PagedSection*> Page(std::uint32_t kind, std::uint64_t expected_count,
                                   std::uint64_t limit) const;

  /// Returns the number of elements of a section; 0 if it is absent.
  std::uint64_t Count(std::uint32_t kind) const;

  /// Returns the kinds of all sections, in file order.
  std::vector<std::uint32_t> Kinds() const;

  /// Checks the element size and count of a section, which may have been left on disk.
  /// Errors: kCorruption, as for Section.
  Status Expect(std::uint32_t kind, std::uint32_t element_bytes,
                std::uint64_t expected_count) const;

  /// Returns whether the section exists and is in memory.
  bool Resident(std::uint32_t kind) const;

  /// Returns the offset of a section in the file; 0 if it is absent.
  std::uint64_t OffsetBytes(std::uint32_t kind) const;

  /// Reads a range of the file in the calling thread, and verifies its blocks. Errors:
  /// kInvalidArgument, no section was left on disk; kCorruption; kIoError.
  Result<std::vector<std::byte>> ReadBytes(std::uint64_t offset_bytes,
                                           std::uint64_t size_bytes) const;

  /// The open file if sections were left on disk, or the file is paged; otherwise nullptr.
  const BlockFile* blocks() const { return blocks_.get(); }

  const Path& path() const { return path_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

  /// Returns the size of a section in bytes, without padding and checksums; 0 if it is absent.
  std::uint64_t SectionBytes(std::uint32_t kind) const;

 private:
  struct Entry {
    std::uint32_t kind;
    std::uint32_t element_bytes;
    std::uint64_t offset_bytes;
    std::uint64_t count;
    const std::byte* data;  // count * element_bytes bytes; null: left on disk, or paged
  };
  const Entry* Find(std::uint32_t kind) const;
  Result<std::span<const std::byte>> RawSection(std::uint32_t kind, std::uint32_t element_bytes,
                                                std::uint64_t expected_count) const;
  Status LoadAll(const IoQueueOptions& io);
  Status LoadSome(std::span<const std::uint32_t> leave, const IoQueueOptions& io);

  Path path_;
  std::uint64_t size_bytes_ = 0;
  std::vector<std::byte> bytes_;        // set by Parse
  std::vector<AlignedBuffer> buffers_;  // set by Load
  std::unique_ptr<BlockFile> blocks_;
  std::unique_ptr<PagedSections> pages_;  // null: not paged
  std::vector<Entry> entries_;
};

}  // namespace internal
}  // namespace rhizome
