#pragma once

#include <cstdint>

namespace rhizome {
inline namespace internal {

/// Sections of an order file; see storage/FORMAT.md, "Order". Stored on disk: never renumber.
enum class OrderSection : std::uint32_t {
  kInvalid = 0,
  kHeader = 1,       // one OrderHeader
  kRowOfVertex = 2,  // [vertices], 4 or 8 bytes
  kVertexOfRow = 3,  // [vertices], 4 or 8 bytes; the inverse
  kSegments = 4,     // grouped: [segments] of OrderSegmentRecord
  kOwnerOfRow = 5,   // not grouped: [vertices]
  kTypeOfRow = 6,    // not grouped and more than one vertex type: [vertices]
};

/// The rows are sorted by (owner, type), so that the segments determine both.
inline constexpr std::uint32_t kOrderGrouped = 1;

/// Little-endian, like every number on disk.
struct OrderHeader {
  std::uint64_t vertices;
  std::uint64_t segments;  // 0 if not grouped
  std::uint32_t partitions;
  std::uint32_t vertex_types;
  std::uint32_t flags;     // kOrderGrouped; other bits are zero
  std::uint32_t reserved;  // zero
};
static_assert(sizeof(OrderHeader) == 32, "on-disk layout");

/// A run of rows: from first_row to the first row of the next segment they belong to (owner, type).
/// Segments are never empty and ascend strictly by (owner, type). Typed rows count the rows of one
/// type over all owners.
struct OrderSegmentRecord {
  std::uint64_t first_row;
  std::uint64_t first_typed_row;
  std::uint16_t owner;
  std::uint16_t type;
  std::uint32_t reserved;  // zero
};
static_assert(sizeof(OrderSegmentRecord) == 24, "on-disk layout");

}  // namespace internal
}  // namespace rhizome
