#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/types.h"
#include "storage/section/section_file.h"
#include "storage/section/section_format.h"

namespace rhizome {
inline namespace internal {

/// Rewrites the parts of a section file that can be derived from the rest: the preamble, the block
/// checksums and the footer. `bytes` has the length of the file. Its sections are assumed to be
/// intact; the caller verifies this with a hash of the whole file. Returns false if no section
/// table is found.
bool ResealSections(std::span<std::byte> bytes, FileKind kind, const StoreId& store_id);

/// A damaged section file in memory. Knows where its sections are, and which blocks of 4 KiB still
/// match their checksums. Ownership: borrows the bytes. Threads: const functions may be called from
/// many threads.
class SectionSalvage {
 public:
  /// Returns nullopt if the footer, the section table or the checksums are damaged.
  static std::optional<SectionSalvage> Read(std::span<const std::byte> bytes, FileKind kind,
                                            const StoreId& store_id);

  const std::vector<SectionEntry>& entries() const { return entries_; }
  const SectionEntry* Find(std::uint32_t kind) const;

  /// Returns whether the section exists and all of its bytes are intact.
  bool Whole(std::uint32_t kind) const;

  /// Returns whether element i of a section is intact.
  bool Sound(const SectionEntry& entry, std::uint64_t i) const;

  /// Returns the bytes of a section, intact or not; empty if it is absent.
  std::span<const std::byte> Bytes(std::uint32_t kind) const;

 private:
  bool SoundRange(std::uint64_t begin, std::uint64_t end) const;

  std::span<const std::byte> bytes_;
  std::vector<SectionEntry> entries_;
  std::vector<bool> sound_;  // by block
};

}  // namespace internal
}  // namespace rhizome
