#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "storage/base/process.h"
#include "storage/io/io_queue.h"
#include "storage/section/block_file.h"
#include "storage/section/section_format.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

class PagedSections;

/// A section of unsigned numbers that is read block by block when its elements are used.
/// Threads: const functions may be called from many threads.
class PagedSection {
 public:
  PagedSection(const PagedSections& file, const SectionEntry& entry, std::uint64_t limit)
      : file_(file), entry_(entry), limit_(limit) {}

  /// Returns an element. Throws StatusError: kCorruption, the block is damaged, or there is no such
  /// element, or it is not below the limit; kIoError.
  std::uint64_t At(std::uint64_t i) const;

  /// Returns the address of elements [first, first + count), which are adjacent in memory. Throws
  /// StatusError as above.
  const std::byte* Elements(std::uint64_t first, std::uint64_t count) const;

 private:
  const PagedSections& file_;
  const SectionEntry entry_;
  const std::uint64_t limit_;
};

/// The bytes of a section file. A block of 4 KiB is read and verified at its first use, and then
/// remains in memory. The range of addresses of the whole file is reserved, so that sections are
/// contiguous.
/// Memory: the blocks that were used, and 1 bit for each block of the file.
/// Threads: const functions may be called from many threads, also in a forked child. Page is called
/// while the file is opened, by one thread.
/// Ownership: `file` must outlive it.
class PagedSections {
 public:
  /// Errors: kOutOfMemory, no range of addresses of this size.
  static Result<std::unique_ptr<PagedSections>> Create(const BlockFile& file);

  /// Returns the bytes [offset_bytes, offset_bytes + size_bytes) of the file, after reading the
  /// blocks that were not used before.
  /// Errors: kCorruption, the bytes are damaged or extend into the checksums; kIoError.
  Result<std::span<const std::byte>> Fetch(std::uint64_t offset_bytes,
                                           std::uint64_t size_bytes) const;

  /// Returns a section whose elements must be below `limit`. It lives as long as this object.
  const PagedSection& Page(const SectionEntry& entry, std::uint64_t limit) {
    return sections_.emplace_back(*this, entry, limit);
  }

  const Path& path() const { return file_.path(); }

 private:
  explicit PagedSections(const BlockFile& file) : file_(file) {}
  bool Holds(std::uint64_t block) const {
    return (held_[block / 64].load(std::memory_order_acquire) >> (block % 64) & 1) != 0;
  }
  Status Read(std::uint64_t first_block, std::uint64_t blocks) const;

  const BlockFile& file_;
  AlignedBuffer memory_;
  mutable ForkMutex mutex_;  // held while read blocks are copied to memory_
  mutable std::vector<std::atomic<std::uint64_t>> held_;  // bit b % 64 of word b / 64: block b
  std::deque<PagedSection> sections_;
};

}  // namespace internal
}  // namespace rhizome
