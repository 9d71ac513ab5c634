#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "rhizome/status.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

/// Writes `records` of an on-disk struct as a section of single bytes.
template <typename T>
Status WriteStructs(SectionFileWriter& writer, std::uint32_t kind, std::span<const T> records) {
  static_assert(std::is_trivially_copyable_v<T>);
  RHIZOME_RETURN_IF_ERROR(writer.BeginSection(kind, 1));
  return writer.Append(std::as_bytes(records));
}

/// Reads exactly `count` records that WriteStructs wrote. It compares `count` with the section's
/// length before it allocates.
/// Errors: kCorruption.
template <typename T>
Result<std::vector<T>> ReadStructs(const SectionFile& file, std::uint32_t kind,
                                   std::uint64_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, sizeof(T), &bytes)) bytes = UINT64_MAX;
  RHIZOME_ASSIGN_OR_RETURN(const auto raw, file.Section<std::uint8_t>(kind, bytes));
  std::vector<T> records(count);
  if (!raw.empty()) std::memcpy(records.data(), raw.data(), raw.size());
  return records;
}

}  // namespace internal
}  // namespace rhizome
