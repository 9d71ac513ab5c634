#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/types.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {

// The byte layout of a section file; see storage/FORMAT.md, "Section file". Nothing here accesses a
// file.

inline constexpr std::array<char, 8> kSectionMagic = {'R', 'Z', 'S', 'E', 'C', 'T', 'I', 'O'};
inline constexpr std::array<char, 8> kSectionEndMagic = {'R', 'Z', 'S', 'E', 'C', 'E', 'N', 'D'};
inline constexpr std::uint32_t kSectionVersion = 1;
inline constexpr std::uint64_t kSectionAlignment = 64;
inline constexpr std::uint64_t kSectionBlockBytes = 4096;
inline constexpr std::size_t kMaxSections = 256;

/// The first bytes of the file. Magic and version keep their offsets in every format version.
struct SectionPreamble {
  std::array<char, 8> magic;
  std::uint32_t version;
  FileKind file_kind;
  StoreId store_id;
  std::array<std::byte, 32> reserved;  // zero
};
static_assert(sizeof(SectionPreamble) == 64, "on-disk layout");

/// One entry of the section table.
struct SectionEntry {
  std::uint32_t kind;           // not 0; unique in the file
  std::uint32_t element_bytes;  // 1, 2, 4 or 8
  std::uint64_t offset_bytes;   // from the start of the file; a multiple of 64
  std::uint64_t element_count;
  std::uint64_t reserved;  // zero
};
static_assert(sizeof(SectionEntry) == 32, "on-disk layout");

/// The last bytes of the file. Version and magic keep their distance from the end in every format
/// version.
struct SectionFooter {
  std::uint64_t table_offset;      // of the section table
  std::uint64_t crc_table_offset;  // directly after the section table
  std::uint64_t file_bytes;        // length of the whole file
  std::uint64_t block_count;       // entries of the CRC table
  std::uint32_t section_count;
  std::uint32_t block_bytes;    // 4096
  std::uint32_t crc_table_crc;  // CRC-32C of the CRC table
  std::uint32_t version;        // as in the preamble
  std::uint32_t reserved;       // zero
  std::uint32_t footer_crc;     // CRC-32C of the footer's bytes before this field
  std::array<char, 8> magic;
};
static_assert(sizeof(SectionFooter) == 64, "on-disk layout");

/// Checks the two ends of a section file of `file_bytes` bytes, as far as possible without the
/// rest, and returns the footer. Errors: as for CheckSectionFile.
Result<SectionFooter> CheckSectionEnds(std::span<const std::byte, sizeof(SectionPreamble)> preamble,
                                       std::span<const std::byte, sizeof(SectionFooter)> footer,
                                       std::uint64_t file_bytes, FileKind kind,
                                       const StoreId& store_id);

/// Checks a table of block checksums against the footer, and returns the checksums.
/// Errors: kCorruption.
Result<std::vector<std::uint32_t>> CheckBlockTable(const SectionFooter& footer,
                                                   std::span<const std::byte> table);

/// Checks a section table whose blocks have been verified, and returns its entries. The caller must
/// check the padding between sections. Errors: kCorruption.
Result<std::vector<SectionEntry>> CheckSectionTable(const SectionFooter& footer,
                                                    std::span<const std::byte> table);

/// Verifies the blocks that `bytes` contains completely. `bytes` starts at `offset_bytes`, a
/// multiple of kSectionBlockBytes, of a file whose blocks end at `covered_bytes`. Errors:
/// kCorruption.
Status CheckSectionBlocks(std::span<const std::uint32_t> block_crcs, std::uint64_t covered_bytes,
                          std::uint64_t offset_bytes, std::span<const std::byte> bytes);

/// Checks that the padding between sections is zero. `bytes` must contain the file at least up to
/// its CRC table. Errors: kCorruption.
Status CheckSectionPadding(std::span<const SectionEntry> entries, const SectionFooter& footer,
                           std::span<const std::byte> bytes);

/// Checks every byte of a section file and returns its section table. Errors: kCorruption, naming
/// offset and field; kUnsupported, a newer version.
Result<std::vector<SectionEntry>> CheckSectionFile(std::span<const std::byte> bytes, FileKind kind,
                                                   const StoreId& store_id);

}  // namespace internal
}  // namespace rhizome
