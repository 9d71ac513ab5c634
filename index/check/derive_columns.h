#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rhizome/storage/manifest.h"
#include "rhizome/storage/section_salvage.h"

namespace rhizome::inline internal {

// What follows from the rest of a damaged order or dictionary, written into `image`, which has the
// file's bytes and length. False where something is missing that nothing else tells. The caller
// seals the image and compares it with the hash of what was committed.

/// What to believe of an order. Both directions have a block in common, which may be damaged in one
/// of them only, so that each is worth a try.
enum class OrderSource : std::uint8_t { kSoundBlocks, kRowOfVertex, kVertexOfRow };

/// Each entry of one direction of the order from the other.
bool DeriveOrder(const SectionSalvage& salvage, const GenerationInfo& info, OrderSource source,
                 std::span<std::byte> image);

/// The sorted side of the external ids, where no vertex was deleted.
bool DeriveVertexIds(const SectionSalvage& salvage, const GenerationInfo& info,
                     std::span<std::byte> image);

/// Number `i` of a section, and the same written.
std::uint64_t LoadElement(std::span<const std::byte> bytes, std::uint32_t width, std::uint64_t i);
void StoreElement(std::span<std::byte> bytes, std::uint32_t width, std::uint64_t i,
                  std::uint64_t value);

}  // namespace rhizome::inline internal
