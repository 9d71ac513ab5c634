#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/status.h"
#include "storage/section/paged_sections.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// A column of unsigned numbers in a section file. All elements have the same width, the smallest
/// of 1, 2, 4 and 8 bytes that holds the largest value. In small partitions most columns take one
/// or two bytes an element. A read has one predictable branch.
///
/// A column of a paged file (SectionFile::paged) reads each block when one of its elements is first
/// used. If that fails, the function that uses the element throws StatusError.
/// Ownership: borrows the bytes of the SectionFile it was read from.
class Column {
 public:
  Column() = default;

  /// Opens a section. `limit` is an upper bound on its elements, exclusive, which protects what is
  /// indexed with an element of a paged column; the caller checks other columns, once.
  /// Errors: kCorruption, the section is absent or does not have `expected_count` elements.
  static Result<Column> Read(const SectionFile& file, std::uint32_t kind,
                             std::uint64_t expected_count, std::uint64_t limit = UINT64_MAX);

  /// As Read, but the whole section is in memory afterwards, even if the file is paged.
  static Result<Column> Load(const SectionFile& file, std::uint32_t kind,
                             std::uint64_t expected_count);

  std::uint64_t operator[](std::size_t i) const {
    switch (element_bytes_) {
      case 1:
        return static_cast<const std::uint8_t*>(data_)[i];
      case 2:
        return static_cast<const std::uint16_t*>(data_)[i];
      case 4:
        return static_cast<const std::uint32_t*>(data_)[i];
      case 8:
        return static_cast<const std::uint64_t*>(data_)[i];
      default:
        return static_cast<const PagedSection*>(data_)->At(i);
    }
  }

  /// Returns elements [first, first + count) of a column of single bytes.
  std::span<const std::uint8_t> Bytes(std::size_t first, std::size_t count) const {
    const auto* const bytes = paged() ? static_cast<const std::uint8_t*>(PagedBytes(first, count))
                                      : static_cast<const std::uint8_t*>(data_) + first;
    return {bytes, count};
  }

  /// Prefetches an element that will be read soon. Does nothing useful for a paged column.
  void Prefetch(std::size_t i) const {
    __builtin_prefetch(static_cast<const char*>(data_) + i * element_bytes_);
  }

  /// Returns whether elements are read from disk when they are used.
  bool paged() const { return element_bytes_ == kPaged; }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// Returns the first position in [begin, end), an ascending range, whose value is not below
  /// `value`.
  std::size_t LowerBound(std::size_t begin, std::size_t end, std::uint64_t value) const;

  /// Returns the first position in [begin, end), an ascending range, whose value is above `value`.
  std::size_t UpperBound(std::size_t begin, std::size_t end, std::uint64_t value) const;

 private:
  template <typename T>
  static Result<Column> ReadAs(const SectionFile& file, std::uint32_t kind,
                               std::uint64_t expected_count);

  const void* PagedBytes(std::size_t first, std::size_t count) const;

  static constexpr std::uint32_t kPaged = 0;
  const void* data_ = nullptr;  // the elements; paged: the PagedSection
  std::size_t size_ = 0;
  std::uint32_t element_bytes_ = 8;  // or kPaged
};

/// Writes `values` as the section `kind`, with the smallest of 1, 2, 4 and 8 bytes an element that
/// holds the largest value, but at least `min_bytes`.
Status WriteColumn(SectionFileWriter& writer, std::uint32_t kind,
                   std::span<const std::uint64_t> values, std::uint32_t min_bytes = 1);

/// Writes a column number by number, so that it need not be in memory. Call Flush at the end.
/// Ownership: the section writer must outlive it.
class ColumnWriter {
 public:
  /// `largest` is the largest number of the column; `min_bytes` as in WriteColumn.
  static Result<ColumnWriter> Begin(SectionFileWriter& writer, std::uint32_t kind,
                                    std::uint64_t largest, std::uint32_t min_bytes = 1);
  Status Add(std::uint64_t value) {
    piece_.push_back(value);
    return piece_.size() < kPiece ? Status::Ok() : Flush();
  }
  Status Flush();

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 14;
  ColumnWriter(SectionFileWriter& writer, std::uint32_t element_bytes)
      : writer_(&writer), element_bytes_(element_bytes) {}

  SectionFileWriter* writer_;
  std::uint32_t element_bytes_;
  std::vector<std::uint64_t> piece_;
};

}  // namespace internal
}  // namespace rhizome
