#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/storage/section_file.h"
#include "rhizome/storage/section_format.h"
#include "rhizome/storage/store_id.h"

namespace rhizome::inline internal {

/// Writes the parts of a section file anew that follow from the others: the preamble, the block
/// checksums and the footer. `bytes` has the file's length; its sections are taken for sound, which
/// the caller finds out from a hash of the whole. False: no section table fits.
bool ResealSections(std::span<std::byte> bytes, FileKind kind, const StoreId& store_id);

/// A damaged section file in memory: where its sections are, and which blocks of 4 KiB still have
/// their checksums. Ownership: borrows the bytes. Threads: const.
class SectionSalvage {
 public:
  /// Nothing if footer, table or checksums themselves are damaged.
  static std::optional<SectionSalvage> Read(std::span<const std::byte> bytes, FileKind kind,
                                            const StoreId& store_id);

  const std::vector<SectionEntry>& entries() const { return entries_; }
  const SectionEntry* Find(std::uint32_t kind) const;

  /// Is the section there, and are all of its bytes sound?
  bool Whole(std::uint32_t kind) const;

  /// Is element i of a section sound?
  bool Sound(const SectionEntry& entry, std::uint64_t i) const;

  /// The bytes of a section, sound or not; empty if it is absent.
  std::span<const std::byte> Bytes(std::uint32_t kind) const;

 private:
  bool SoundRange(std::uint64_t begin, std::uint64_t end) const;

  std::span<const std::byte> bytes_;
  std::vector<SectionEntry> entries_;
  std::vector<bool> sound_;  // by block
};

}  // namespace rhizome::inline internal
