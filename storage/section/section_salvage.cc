#include "storage/section/section_salvage.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "storage/base/hash.h"

namespace rhizome {
inline namespace internal {
namespace {

SectionPreamble PreambleOf(FileKind kind, const StoreId& store_id) {
  SectionPreamble preamble = {};
  preamble.magic = kSectionMagic;
  preamble.version = kSectionVersion;
  preamble.file_kind = kind;
  preamble.store_id = store_id;
  return preamble;
}

std::uint64_t BlockCount(std::uint64_t covered) {
  return (covered + kSectionBlockBytes - 1) / kSectionBlockBytes;
}

/// Returns the offset of the block checksums in a file of that length; 0 if there is no valid
/// offset.
std::uint64_t CoveredBytes(std::uint64_t file_bytes) {
  const std::uint64_t rest = file_bytes - sizeof(SectionFooter);
  const std::uint64_t guess = rest / (kSectionBlockBytes + sizeof(std::uint32_t));
  for (std::uint64_t blocks = guess; blocks <= guess + 1; ++blocks) {
    const std::uint64_t sums = blocks * sizeof(std::uint32_t);
    if (sums < rest && BlockCount(rest - sums) == blocks) return rest - sums;
  }
  return 0;
}

SectionFooter FooterOf(std::uint64_t covered, std::uint64_t sections, std::uint64_t file_bytes) {
  SectionFooter footer = {};
  footer.table_offset = covered - sections * sizeof(SectionEntry);
  footer.crc_table_offset = covered;
  footer.block_count = BlockCount(covered);
  footer.file_bytes = file_bytes;
  footer.section_count = static_cast<std::uint32_t>(sections);
  footer.block_bytes = kSectionBlockBytes;
  footer.version = kSectionVersion;
  footer.magic = kSectionEndMagic;
  return footer;
}

void Seal(std::span<std::byte> bytes, SectionFooter footer) {
  std::byte* out = bytes.data() + footer.crc_table_offset;
  for (std::uint64_t block = 0; block < footer.block_count; ++block) {
    const std::uint64_t begin = block * kSectionBlockBytes;
    const std::uint32_t crc =
        Crc32c(bytes.subspan(begin, std::min(kSectionBlockBytes, footer.crc_table_offset - begin)));
    std::memcpy(out + block * sizeof(crc), &crc, sizeof(crc));
  }
  footer.crc_table_crc =
      Crc32c(bytes.subspan(footer.crc_table_offset, footer.block_count * sizeof(std::uint32_t)));
  footer.footer_crc =
      Crc32c(std::as_bytes(std::span(&footer, 1)).first(offsetof(SectionFooter, footer_crc)));
  std::memcpy(bytes.data() + bytes.size() - sizeof(footer), &footer, sizeof(footer));
}

}  // namespace

bool ResealSections(std::span<std::byte> bytes, FileKind kind, const StoreId& store_id) {
  if (bytes.size() < sizeof(SectionPreamble) + sizeof(SectionFooter)) return false;
  const SectionPreamble preamble = PreambleOf(kind, store_id);
  std::memcpy(bytes.data(), &preamble, sizeof(preamble));
  const std::uint64_t covered = CoveredBytes(bytes.size());
  for (std::uint64_t sections = 1; sections <= kMaxSections; ++sections) {
    if (covered < sizeof(preamble) + sections * sizeof(SectionEntry)) return false;
    const SectionFooter footer = FooterOf(covered, sections, bytes.size());
    if (footer.table_offset % kSectionAlignment != 0) continue;
    if (!CheckSectionTable(footer,
                           bytes.subspan(footer.table_offset, covered - footer.table_offset)))
      continue;
    Seal(bytes, footer);
    return true;
  }
  return false;
}

std::optional<SectionSalvage> SectionSalvage::Read(std::span<const std::byte> bytes, FileKind kind,
                                                   const StoreId& store_id) {
  if (bytes.size() < sizeof(SectionPreamble) + sizeof(SectionFooter)) return std::nullopt;
  // CheckSectionEnds receives the preamble that the file should have. The checksum of the first
  // block shows below whether it actually has it.
  const SectionPreamble preamble = PreambleOf(kind, store_id);
  std::array<std::byte, sizeof(SectionPreamble)> first;
  std::memcpy(first.data(), &preamble, sizeof(preamble));
  const auto footer =
      CheckSectionEnds(first, bytes.last<sizeof(SectionFooter)>(), bytes.size(), kind, store_id);
  if (!footer) return std::nullopt;
  const auto sums = CheckBlockTable(
      *footer,
      bytes.subspan(footer->crc_table_offset, footer->block_count * sizeof(std::uint32_t)));
  if (!sums) return std::nullopt;
  SectionSalvage salvage;
  salvage.bytes_ = bytes;
  for (std::uint64_t block = 0; block < footer->block_count; ++block) {
    const std::uint64_t begin = block * kSectionBlockBytes;
    const std::uint64_t size = std::min(kSectionBlockBytes, footer->crc_table_offset - begin);
    salvage.sound_.push_back(Crc32c(bytes.subspan(begin, size)) == (*sums)[block]);
  }
  auto entries = CheckSectionTable(
      *footer,
      bytes.subspan(footer->table_offset, footer->crc_table_offset - footer->table_offset));
  // The table is used even if its block is damaged, since the damage may be in a section in the
  // same block. A table that satisfies all rules is almost certainly correct, and the caller
  // compares the result with a hash.
  if (!entries) return std::nullopt;
  salvage.entries_ = *std::move(entries);
  return salvage;
}

const SectionEntry* SectionSalvage::Find(std::uint32_t kind) const {
  for (const SectionEntry& entry : entries_)
    if (entry.kind == kind) return &entry;
  return nullptr;
}

bool SectionSalvage::SoundRange(std::uint64_t begin, std::uint64_t end) const {
  for (std::uint64_t block = begin / kSectionBlockBytes; block * kSectionBlockBytes < end; ++block)
    if (!sound_[block]) return false;
  return true;
}

bool SectionSalvage::Whole(std::uint32_t kind) const {
  const SectionEntry* const entry = Find(kind);
  return entry != nullptr &&
         (entry->element_count == 0 ||
          SoundRange(entry->offset_bytes,
                     entry->offset_bytes + entry->element_count * entry->element_bytes));
}

bool SectionSalvage::Sound(const SectionEntry& entry, std::uint64_t i) const {
  return sound_[(entry.offset_bytes + i * entry.element_bytes) / kSectionBlockBytes];
}

std::span<const std::byte> SectionSalvage::Bytes(std::uint32_t kind) const {
  const SectionEntry* const entry = Find(kind);
  if (entry == nullptr) return {};
  return bytes_.subspan(entry->offset_bytes, entry->element_count * entry->element_bytes);
}

}  // namespace internal
}  // namespace rhizome
