// Repair of the order and of the external ids. DeriveOrder rebuilds one direction of the
// permutation from the other; DeriveVertexIds rebuilds the sorted side by sorting the ids.

#include "index/check/derive_columns.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "index/topology/vertex_ids_format.h"
#include "index/topology/vertex_order_format.h"
#include "storage/base/little_endian.h"

namespace rhizome {
inline namespace internal {
namespace {

template <typename Section>
const SectionEntry* Find(const SectionSalvage& salvage, Section section) {
  return salvage.Find(static_cast<std::uint32_t>(section));
}

template <typename Section>
bool Whole(const SectionSalvage& salvage, Section section) {
  return salvage.Whole(static_cast<std::uint32_t>(section));
}

std::span<std::byte> Place(std::span<std::byte> image, const SectionEntry& entry) {
  return image.subspan(entry.offset_bytes, entry.element_count * entry.element_bytes);
}

template <typename T>
void WriteHeader(std::span<std::byte> image, const SectionEntry& entry, const T& header) {
  if (entry.element_count * entry.element_bytes == sizeof(header))
    std::memcpy(Place(image, entry).data(), &header, sizeof(header));
}

/// Writes the entries of one direction that follow from the other direction: from all entries, or
/// only from sound entries into damaged ones.
bool Invert(const SectionSalvage& salvage, const SectionEntry& from, const SectionEntry& to,
            bool all, std::span<std::byte> image) {
  const auto known = Place(image, from);
  const auto wanted = Place(image, to);
  for (std::uint64_t i = 0; i < from.element_count; ++i) {
    if (!all && !salvage.Sound(from, i)) continue;
    const std::uint64_t at = LoadElement(known, from.element_bytes, i);
    if (at >= to.element_count) return false;
    if (all || !salvage.Sound(to, at)) StoreElement(wanted, to.element_bytes, at, i);
  }
  return true;
}

/// External ids by vertex id, integers or strings.
class Ids {
 public:
  Ids(const SectionSalvage& salvage, std::uint64_t vertices) : vertices_(vertices) {
    const auto kind = [](IdsSection section) { return static_cast<std::uint32_t>(section); };
    integers_ = salvage.Bytes(kind(IdsSection::kIntegers));
    offsets_ = salvage.Bytes(kind(IdsSection::kOffsets));
    text_ = salvage.Bytes(kind(IdsSection::kBytes));
    if (const SectionEntry* entry = salvage.Find(kind(IdsSection::kOffsets)))
      width_ = entry->element_bytes;
  }

  bool Sound(bool strings) const {
    if (!strings) return integers_.size() == vertices_ * sizeof(std::int64_t);
    if (offsets_.size() != (vertices_ + 1) * width_) return false;
    for (std::uint64_t v = 0; v < vertices_; ++v)
      if (Offset(v) > Offset(v + 1) || Offset(v + 1) > text_.size()) return false;
    return true;
  }
  std::int64_t Integer(std::uint64_t v) const {
    return LoadLittle<std::int64_t>(integers_.data() + v * sizeof(std::int64_t));
  }
  std::string_view Text(std::uint64_t v) const {
    return {reinterpret_cast<const char*>(text_.data()) + Offset(v), Offset(v + 1) - Offset(v)};
  }

 private:
  std::uint64_t Offset(std::uint64_t i) const { return LoadElement(offsets_, width_, i); }

  const std::uint64_t vertices_;
  std::span<const std::byte> integers_;
  std::span<const std::byte> offsets_;
  std::span<const std::byte> text_;
  std::uint32_t width_ = 1;
};

}  // namespace

std::uint64_t LoadElement(std::span<const std::byte> bytes, std::uint32_t width, std::uint64_t i) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + i * width, width);
  return value;
}

void StoreElement(std::span<std::byte> bytes, std::uint32_t width, std::uint64_t i,
                  std::uint64_t value) {
  std::memcpy(bytes.data() + i * width, &value, width);
}

bool DeriveOrder(const SectionSalvage& salvage, const GenerationInfo& info, OrderSource source,
                 std::span<std::byte> image) {
  const SectionEntry* header = Find(salvage, OrderSection::kHeader);
  const SectionEntry* rows = Find(salvage, OrderSection::kRowOfVertex);
  const SectionEntry* vertices = Find(salvage, OrderSection::kVertexOfRow);
  const SectionEntry* segments = Find(salvage, OrderSection::kSegments);
  if (header == nullptr || rows == nullptr || vertices == nullptr) return false;
  if (rows->element_count != info.vertices || vertices->element_count != info.vertices)
    return false;
  WriteHeader(image, *header,
              OrderHeader{.vertices = info.vertices,
                          .segments = segments == nullptr
                                          ? 0
                                          : segments->element_count / sizeof(OrderSegmentRecord),
                          .partitions = info.partitions,
                          .vertex_types = static_cast<std::uint32_t>(info.vertex_types.size()),
                          .flags = segments == nullptr ? 0 : kOrderGrouped,
                          .reserved = 0});
  if (source == OrderSource::kRowOfVertex) return Invert(salvage, *rows, *vertices, true, image);
  if (source == OrderSource::kVertexOfRow) return Invert(salvage, *vertices, *rows, true, image);
  return Invert(salvage, *rows, *vertices, false, image) &&
         Invert(salvage, *vertices, *rows, false, image);
}

bool DeriveVertexIds(const SectionSalvage& salvage, const GenerationInfo& info,
                     std::span<std::byte> image) {
  const bool strings = info.id_kind == ExternalIdKind::kString;
  const SectionEntry* header = Find(salvage, IdsSection::kHeader);
  const SectionEntry* sorted = Find(salvage, IdsSection::kSorted);
  if (header == nullptr || sorted == nullptr || sorted->element_count > info.vertices) return false;
  const std::uint64_t deleted = info.vertices - sorted->element_count;
  if (deleted > std::numeric_limits<std::uint32_t>::max()) return false;
  WriteHeader(image, *header,
              IdsHeader{.vertices = info.vertices,
                        .id_kind = static_cast<std::uint32_t>(info.id_kind),
                        .deleted = static_cast<std::uint32_t>(deleted)});
  if (Whole(salvage, IdsSection::kSorted)) return true;
  const Ids ids(salvage, info.vertices);
  // Only the sorted side shows which vertices were deleted. The ids may share a damaged block with
  // it and still be sound.
  if (deleted > 0 || !ids.Sound(strings)) return false;
  std::vector<std::uint64_t> order(info.vertices);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return strings ? ids.Text(a) < ids.Text(b) : ids.Integer(a) < ids.Integer(b);
  });
  const auto place = Place(image, *sorted);
  for (std::uint64_t i = 0; i < order.size(); ++i)
    StoreElement(place, sorted->element_bytes, i, order[i]);
  return true;
}

}  // namespace internal
}  // namespace rhizome
