#pragma once

#include <cstdint>

namespace rhizome {
inline namespace internal {

/// Sections of a dictionary file; see storage/FORMAT.md, "Vertex ids". Stored on disk: never
/// renumber, only append.
enum class IdsSection : std::uint32_t {
  kInvalid = 0,
  kHeader = 1,    // one IdsHeader
  kIntegers = 2,  // kInteger: [vertices] int64, by vertex id
  kOffsets = 3,   // kString: [vertices + 1] into kBytes
  kBytes = 4,     // kString: UTF-8, one after another by vertex id
  kSorted = 5,    // [vertices] vertex ids in ascending order of external id
};

/// Little-endian, like every number on disk.
struct IdsHeader {
  std::uint64_t vertices;
  std::uint32_t id_kind;  // an ExternalIdKind: kInteger or kString
  std::uint32_t deleted;  // vertices that the sorted side omits
};
static_assert(sizeof(IdsHeader) == 16, "on-disk layout");

}  // namespace internal
}  // namespace rhizome
