#include "storage/section/section_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "storage/base/hash.h"
#include "storage/base/little_endian.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {
namespace {

template <typename T>
T LoadStruct(std::span<const std::byte> bytes, std::uint64_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof(T));
  return out;
}

Status Bad(std::uint64_t offset, std::string what) {
  return Status::Corruption(fmt::format("offset {}: {}", offset, what));
}

bool AllZero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Status CheckVersion(const SectionPreamble& preamble, const SectionFooter& footer,
                    std::uint64_t footer_offset) {
  if (preamble.magic != kSectionMagic) return Bad(0, "not a section file (magic)");
  if (footer.magic != kSectionEndMagic) {
    return Bad(footer_offset + offsetof(SectionFooter, magic),
               "the footer's magic is missing; the file may be truncated");
  }
  if (preamble.version != footer.version) {
    return Bad(offsetof(SectionPreamble, version),
               fmt::format("version {} in the preamble, {} in the footer", preamble.version,
                           footer.version));
  }
  if (preamble.version > kSectionVersion) {
    return Status::Unsupported(
        fmt::format("section file of version {}, but this build reads versions up to {}; use a "
                    "newer version of Rhizome",
                    preamble.version, kSectionVersion));
  }
  if (preamble.version != kSectionVersion)
    return Bad(offsetof(SectionPreamble, version), fmt::format("version {}", preamble.version));
  return {};
}

/// Checks the footer. Its fields are determined by each other and by the length of the file, so
/// every wrong offset is detected.
Status CheckFooter(const SectionFooter& footer, std::span<const std::byte> footer_bytes,
                   std::uint64_t file_bytes) {
  const std::uint64_t at = file_bytes - sizeof(SectionFooter);
  const std::uint32_t crc = Crc32c(footer_bytes.first(offsetof(SectionFooter, footer_crc)));
  if (crc != footer.footer_crc)
    return Bad(at + offsetof(SectionFooter, footer_crc), "checksum of the footer");
  if (footer.reserved != 0)
    return Bad(at + offsetof(SectionFooter, reserved), "reserved field is not zero");
  if (footer.block_bytes != kSectionBlockBytes) {
    return Bad(at + offsetof(SectionFooter, block_bytes),
               fmt::format("block size {}", footer.block_bytes));
  }
  if (footer.file_bytes != file_bytes) {
    return Bad(at + offsetof(SectionFooter, file_bytes),
               fmt::format("file length {}, but it has {} bytes", footer.file_bytes, file_bytes));
  }
  if (footer.section_count > kMaxSections) {
    return Bad(
        at + offsetof(SectionFooter, section_count),
        fmt::format("{} sections, at most {} are allowed", footer.section_count, kMaxSections));
  }
  const std::uint64_t table_bytes = footer.section_count * sizeof(SectionEntry);
  const std::uint64_t covered = footer.crc_table_offset;
  if (covered > at || covered < sizeof(SectionPreamble) + table_bytes ||
      footer.table_offset != covered - table_bytes ||
      footer.table_offset % kSectionAlignment != 0) {
    return Bad(
        at, fmt::format("section table at {}, checksum table at {}", footer.table_offset, covered));
  }
  const std::uint64_t blocks = (covered + kSectionBlockBytes - 1) / kSectionBlockBytes;
  if (footer.block_count != blocks || at - covered != blocks * sizeof(std::uint32_t)) {
    return Bad(
        at + offsetof(SectionFooter, block_count),
        fmt::format("{} block checksums do not cover {} bytes", footer.block_count, covered));
  }
  return {};
}

Status CheckPreamble(const SectionPreamble& preamble, FileKind kind, const StoreId& store_id) {
  if (preamble.file_kind != kind) {
    return Bad(
        offsetof(SectionPreamble, file_kind),
        fmt::format("file kind {}, expected {}", static_cast<std::uint32_t>(preamble.file_kind),
                    static_cast<std::uint32_t>(kind)));
  }
  if (preamble.store_id != store_id) {
    return Bad(offsetof(SectionPreamble, store_id),
               fmt::format("the file belongs to store {}, not to {}", preamble.store_id.ToString(),
                           store_id.ToString()));
  }
  if (!AllZero(preamble.reserved))
    return Bad(offsetof(SectionPreamble, reserved), "reserved bytes are not zero");
  return {};
}

/// Checks an entry, whose section must begin at `begin` and end at or before `limit`. Returns its
/// end.
Result<std::uint64_t> CheckEntry(const SectionEntry& entry, std::uint64_t entry_offset,
                                 std::uint64_t begin, std::uint64_t limit) {
  const auto bad = [&](std::size_t field, std::string what) {
    return Fail(Bad(entry_offset + field, fmt::format("section {}: {}", entry.kind, what)));
  };
  if (entry.kind == 0) return bad(offsetof(SectionEntry, kind), "kind 0");
  const std::uint32_t width = entry.element_bytes;
  if (width != 1 && width != 2 && width != 4 && width != 8)
    return bad(offsetof(SectionEntry, element_bytes), fmt::format("elements of {} bytes", width));
  if (entry.reserved != 0)
    return bad(offsetof(SectionEntry, reserved), "reserved field is not zero");
  if (entry.offset_bytes != begin) {
    return bad(offsetof(SectionEntry, offset_bytes),
               fmt::format("begins at {} instead of {}", entry.offset_bytes, begin));
  }
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;
  if (__builtin_mul_overflow(entry.element_count, std::uint64_t{width}, &bytes) ||
      __builtin_add_overflow(begin, bytes, &end) || end > limit) {
    return bad(offsetof(SectionEntry, element_count),
               fmt::format("{} elements of {} bytes reach past the section table",
                           entry.element_count, width));
  }
  return end;
}

}  // namespace

Result<SectionFooter> CheckSectionEnds(
    std::span<const std::byte, sizeof(SectionPreamble)> preamble_bytes,
    std::span<const std::byte, sizeof(SectionFooter)> footer_bytes, std::uint64_t file_bytes,
    FileKind kind, const StoreId& store_id) {
  const auto preamble = LoadStruct<SectionPreamble>(preamble_bytes, 0);
  const auto footer = LoadStruct<SectionFooter>(footer_bytes, 0);
  RHIZOME_RETURN_IF_ERROR(CheckVersion(preamble, footer, file_bytes - sizeof(SectionFooter)));
  RHIZOME_RETURN_IF_ERROR(CheckFooter(footer, footer_bytes, file_bytes));
  RHIZOME_RETURN_IF_ERROR(CheckPreamble(preamble, kind, store_id));
  return footer;
}

Result<std::vector<std::uint32_t>> CheckBlockTable(const SectionFooter& footer,
                                                   std::span<const std::byte> table) {
  if (Crc32c(table) != footer.crc_table_crc) {
    return Fail(Bad(footer.crc_table_offset, "checksum of the table of block checksums"));
  }
  std::vector<std::uint32_t> crcs(footer.block_count);
  for (std::size_t block = 0; block < crcs.size(); ++block)
    crcs[block] = LoadLittle<std::uint32_t>(table.data() + block * sizeof(std::uint32_t));
  return crcs;
}

Result<std::vector<SectionEntry>> CheckSectionTable(const SectionFooter& footer,
                                                    std::span<const std::byte> table) {
  std::vector<SectionEntry> entries(footer.section_count);
  std::uint64_t end = sizeof(SectionPreamble);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t at = footer.table_offset + i * sizeof(SectionEntry);
    entries[i] = LoadStruct<SectionEntry>(table, i * sizeof(SectionEntry));
    // Sections are contiguous, so a table cannot describe gaps or overlaps.
    const std::uint64_t begin = AlignUp(end, kSectionAlignment);
    if (begin > footer.table_offset)
      return Fail(Bad(at, "the section begins beyond the section table"));
    RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t next,
                             CheckEntry(entries[i], at, begin, footer.table_offset));
    const auto same = [&](const SectionEntry& other) { return other.kind == entries[i].kind; };
    if (std::any_of(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(i), same))
      return Fail(Bad(at, fmt::format("section {} is repeated", entries[i].kind)));
    end = next;
  }
  if (AlignUp(end, kSectionAlignment) != footer.table_offset)
    return Fail(Bad(end, "the padding before the section table is not zero, or too long"));
  return entries;
}

Status CheckSectionPadding(std::span<const SectionEntry> entries, const SectionFooter& footer,
                           std::span<const std::byte> bytes) {
  std::uint64_t end = sizeof(SectionPreamble);
  const auto check = [&](std::uint64_t begin) {
    return AllZero(bytes.subspan(end, begin - end)) ? Status::Ok()
                                                    : Bad(end, "padding is not zero");
  };
  for (const SectionEntry& entry : entries) {
    RHIZOME_RETURN_IF_ERROR(check(entry.offset_bytes));
    end = entry.offset_bytes + entry.element_count * entry.element_bytes;
  }
  return check(footer.table_offset);
}

Status CheckSectionBlocks(std::span<const std::uint32_t> block_crcs, std::uint64_t covered_bytes,
                          std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  const std::uint64_t end = std::min(covered_bytes, offset_bytes + bytes.size());
  for (std::uint64_t begin = offset_bytes; begin < end; begin += kSectionBlockBytes) {
    const std::uint64_t length = std::min(kSectionBlockBytes, covered_bytes - begin);
    if (begin + length > end) break;
    const auto block = bytes.subspan(begin - offset_bytes, length);
    if (Crc32c(block) != block_crcs[begin / kSectionBlockBytes] &&
        !RHIZOME_MUTANT("blocks are not checked"))
      return Bad(begin, fmt::format("checksum of the block of {} bytes", length));
  }
  return {};
}

/// Checks in these steps:
///   1. Magic and version of both ends, then the footer, which contains the offsets of the tables.
///   2. The table of block checksums, then every block against it.
///   3. The preamble and the section table, whose bytes are now known to be intact.
///   4. The padding between sections must be zero.
Result<std::vector<SectionEntry>> CheckSectionFile(std::span<const std::byte> bytes, FileKind kind,
                                                   const StoreId& store_id) {
  if (bytes.size() < sizeof(SectionPreamble) + sizeof(SectionFooter)) {
    return Fail(Bad(bytes.size(), fmt::format("{} bytes are too few for a section file (truncated)",
                                              bytes.size())));
  }
  const auto preamble = LoadStruct<SectionPreamble>(bytes, 0);
  const auto footer_bytes = bytes.last<sizeof(SectionFooter)>();
  const auto footer = LoadStruct<SectionFooter>(footer_bytes, 0);
  RHIZOME_RETURN_IF_ERROR(CheckVersion(preamble, footer, bytes.size() - sizeof(SectionFooter)));
  RHIZOME_RETURN_IF_ERROR(CheckFooter(footer, footer_bytes, bytes.size()));
  RHIZOME_ASSIGN_OR_RETURN(
      const auto crcs,
      CheckBlockTable(footer, bytes.subspan(footer.crc_table_offset,
                                            footer.block_count * sizeof(std::uint32_t))));
  RHIZOME_RETURN_IF_ERROR(CheckSectionBlocks(crcs, footer.crc_table_offset, 0, bytes));
  RHIZOME_RETURN_IF_ERROR(CheckPreamble(preamble, kind, store_id));
  RHIZOME_ASSIGN_OR_RETURN(
      auto entries,
      CheckSectionTable(
          footer, bytes.subspan(footer.table_offset, footer.section_count * sizeof(SectionEntry))));
  RHIZOME_RETURN_IF_ERROR(CheckSectionPadding(entries, footer, bytes));
  return entries;
}

}  // namespace internal
}  // namespace rhizome
