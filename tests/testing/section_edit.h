#pragma once

#include <cstring>
#include <vector>

#include "index/base/memory_sink.h"
#include "storage/section/section_file.h"
#include "testing/testing.h"

namespace rhizome::testing {

/// Splits a section file into its sections, so that a test can change them and seal the file again
/// with correct checksums. Readers meet such files if the writer, not the disk, was faulty or
/// malicious.
class SectionEdit {
 public:
  struct Section {
    std::uint32_t kind;
    std::uint32_t element_bytes;
    std::vector<std::byte> bytes;
  };

  SectionEdit(const std::vector<std::byte>& bytes, FileKind kind, const StoreId& store_id)
      : kind_(kind), store_id_(store_id) {
    const auto file = SectionFile::Parse(bytes, "edited", kind, store_id);
    EXPECT_OK(file);
    for (std::uint32_t section = 1; section < 64; ++section) {
      if (!file->Has(section)) continue;
      const std::uint32_t width = file->ElementBytes(section);
      sections_.push_back({section, width, {}});
      auto& copy = sections_.back().bytes;
      const auto take = [&](auto elements) {
        ASSERT_OK(elements);
        const auto raw = std::as_bytes(*elements);
        copy.assign(raw.begin(), raw.end());
      };
      if (width == 1) take(file->Section<std::uint8_t>(section));
      if (width == 2) take(file->Section<std::uint16_t>(section));
      if (width == 4) take(file->Section<std::uint32_t>(section));
      if (width == 8) take(file->Section<std::uint64_t>(section));
    }
  }

  std::vector<Section>& sections() { return sections_; }
  bool Has(std::uint32_t kind) const {
    for (const Section& section : sections_) {
      if (section.kind == kind) return true;
    }
    return false;
  }
  Section& At(std::uint32_t kind) {
    for (Section& section : sections_) {
      if (section.kind == kind) return section;
    }
    ADD_FAILURE() << "no section " << kind;
    return sections_.front();
  }
  void Remove(std::uint32_t kind) {
    std::erase_if(sections_, [&](const Section& section) { return section.kind == kind; });
  }

  /// Returns element i of a section as an unsigned number.
  std::uint64_t Get(std::uint32_t kind, std::size_t i) {
    const Section& section = At(kind);
    std::uint64_t value = 0;
    std::memcpy(&value, section.bytes.data() + i * section.element_bytes, section.element_bytes);
    return value;
  }
  void Set(std::uint32_t kind, std::size_t i, std::uint64_t value) {
    Section& section = At(kind);
    std::memcpy(section.bytes.data() + i * section.element_bytes, &value, section.element_bytes);
  }
  std::size_t Count(std::uint32_t kind) { return At(kind).bytes.size() / At(kind).element_bytes; }

  std::vector<std::byte> Seal() const {
    MemorySink sink;
    SectionFileWriter writer(sink, kind_, store_id_);
    for (const Section& section : sections_) {
      EXPECT_OK(writer.BeginSection(section.kind, section.element_bytes));
      EXPECT_OK(writer.Append(section.bytes));
    }
    EXPECT_OK(writer.Finish());
    return sink.Take();
  }

 private:
  FileKind kind_;
  StoreId store_id_;
  std::vector<Section> sections_;
};

}  // namespace rhizome::testing
