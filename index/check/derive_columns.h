#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/manifest.h"
#include "storage/section/section_salvage.h"

namespace rhizome {
inline namespace internal {

// These functions derive the damaged parts of an order or dictionary from the rest, and write them
// into `image`, which has the file's bytes and length. They return false if a missing part cannot
// be derived. The caller reseals the image and compares it with the committed hash.

/// The part of an order to trust. Both directions may share a damaged block although only one of
/// them is damaged, so the caller tries all three.
enum class OrderSource : std::uint8_t { kSoundBlocks, kRowOfVertex, kVertexOfRow };

/// Derives each entry of one direction of the order from the other.
bool DeriveOrder(const SectionSalvage& salvage, const GenerationInfo& info, OrderSource source,
                 std::span<std::byte> image);

/// Derives the sorted side of the external ids, if no vertex was deleted.
bool DeriveVertexIds(const SectionSalvage& salvage, const GenerationInfo& info,
                     std::span<std::byte> image);

/// Load or store number `i` of a section.
std::uint64_t LoadElement(std::span<const std::byte> bytes, std::uint32_t width, std::uint64_t i);
void StoreElement(std::span<std::byte> bytes, std::uint32_t width, std::uint64_t i,
                  std::uint64_t value);

}  // namespace internal
}  // namespace rhizome
