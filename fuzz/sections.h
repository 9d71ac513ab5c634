#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "index/base/memory_sink.h"
#include "storage/base/check.h"
#include "storage/section/section_file.h"

namespace rhizome::fuzzing {

/// The store id of every file that a fuzz target creates.
inline StoreId FuzzStoreId() { return *StoreId::Parse("000102030405060708090a0b0c0d0e0f"); }

/// Splits fuzz input into sections and seals them as a section file, so that mutations reach the
/// parser behind the checksums. A section of the input has kind (1 byte), log2 of the element size
/// (1), length in bytes (2) and content. Returns an empty file if a kind occurs twice in the input.
inline std::vector<std::byte> SealSections(std::span<const std::uint8_t> input, FileKind kind) {
  MemorySink sink;
  SectionFileWriter writer(sink, kind, FuzzStoreId());
  while (input.size() >= 4) {
    std::uint16_t length = 0;
    std::memcpy(&length, input.data() + 2, sizeof(length));
    const std::uint32_t element_bytes = 1u << (input[1] % 4);
    const std::size_t taken = std::min<std::size_t>(length, input.size() - 4);
    const auto content = input.subspan(4, taken - taken % element_bytes);
    if (!writer.BeginSection(1 + input[0] % 64, element_bytes).ok()) return {};
    if (!writer.Append(std::as_bytes(content)).ok()) return {};
    input = input.subspan(4 + taken);
  }
  if (!writer.Finish().ok()) return {};
  return sink.Take();
}

/// Converts a section file to input for SealSections.
inline std::vector<std::byte> SectionsOf(std::vector<std::byte> file, FileKind kind,
                                         const StoreId& id = FuzzStoreId()) {
  const auto parsed = SectionFile::Parse(std::move(file), "sample", kind, id);
  RHIZOME_CHECK(parsed.has_value());
  std::vector<std::byte> input;
  for (const std::uint32_t section : parsed->Kinds()) {
    const std::uint32_t element_bytes = parsed->ElementBytes(section);
    const std::uint64_t bytes = parsed->SectionBytes(section);
    RHIZOME_CHECK(section <= 64 && bytes <= 65535);
    input.push_back(static_cast<std::byte>(section - 1));
    input.push_back(static_cast<std::byte>(std::countr_zero(element_bytes)));
    input.push_back(static_cast<std::byte>(bytes % 256));
    input.push_back(static_cast<std::byte>(bytes / 256));
    const std::uint64_t count = parsed->Count(section);
    const auto append = [&](const auto& values) {
      RHIZOME_CHECK(values.has_value());
      const auto raw = std::as_bytes(*values);
      input.insert(input.end(), raw.begin(), raw.end());
    };
    if (element_bytes == 1) append(parsed->Section<std::uint8_t>(section, count));
    if (element_bytes == 2) append(parsed->Section<std::uint16_t>(section, count));
    if (element_bytes == 4) append(parsed->Section<std::uint32_t>(section, count));
    if (element_bytes == 8) append(parsed->Section<std::uint64_t>(section, count));
  }
  return input;
}

}  // namespace rhizome::fuzzing
