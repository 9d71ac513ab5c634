#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rhizome/storage/result.h"
#include "rhizome/storage/section_file.h"

namespace rhizome::inline internal {

/// A column of unsigned numbers in a section file, as narrow as its largest value allows: 1, 2, 4
/// or 8 bytes an element, whichever was written. Small partitions and degrees are mostly one or two
/// bytes; the reader pays one predictable branch.
/// Ownership: borrows the bytes of the SectionFile it was read from.
class Column {
 public:
  Column() = default;

  /// Errors: kCorruption, the section is absent or has not `expected_count` elements.
  static Result<Column> Read(const SectionFile& file, std::uint32_t kind,
                             std::uint64_t expected_count);

  std::uint64_t operator[](std::size_t i) const {
    switch (element_bytes_) {
      case 1:
        return static_cast<const std::uint8_t*>(data_)[i];
      case 2:
        return static_cast<const std::uint16_t*>(data_)[i];
      case 4:
        return static_cast<const std::uint32_t*>(data_)[i];
      default:
        return static_cast<const std::uint64_t*>(data_)[i];
    }
  }
  /// Starts to fetch an element that will be asked for soon.
  void Prefetch(std::size_t i) const {
    __builtin_prefetch(static_cast<const char*>(data_) + i * element_bytes_);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// First position in [begin, end) whose value is not below `value`, of an ascending range.
  std::size_t LowerBound(std::size_t begin, std::size_t end, std::uint64_t value) const;

  /// First position in [begin, end) whose value is above `value`, of an ascending range.
  std::size_t UpperBound(std::size_t begin, std::size_t end, std::uint64_t value) const;

 private:
  template <typename T>
  static Result<Column> ReadAs(const SectionFile& file, std::uint32_t kind,
                               std::uint64_t expected_count);

  const void* data_ = nullptr;
  std::size_t size_ = 0;
  std::uint32_t element_bytes_ = 8;
};

/// Writes `values` as the section `kind`, in the least of 1, 2, 4 and 8 bytes an element that holds
/// the largest of them, and not below `least_bytes`.
Status WriteColumn(SectionFileWriter& writer, std::uint32_t kind,
                   std::span<const std::uint64_t> values, std::uint32_t least_bytes = 1);

}  // namespace rhizome::inline internal
