#include "index/topology/patched_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace rhizome {
inline namespace internal {
namespace {

// The assumed size of a patch: a position and a value of 4 bytes each.
constexpr std::uint64_t kPatchBytes = 8;

std::uint64_t CountFrom(std::span<const std::uint64_t> values, std::uint64_t least) {
  return static_cast<std::uint64_t>(std::count_if(
      values.begin(), values.end(), [&](std::uint64_t value) { return value >= least; }));
}

}  // namespace

Status WritePatched(SectionFileWriter& writer, const PatchedKinds& kinds,
                    std::span<const std::uint64_t> values) {
  const std::uint64_t narrow = values.size() + kPatchBytes * CountFrom(values, UINT8_MAX);
  const std::uint64_t broad = 2 * values.size() + kPatchBytes * CountFrom(values, UINT16_MAX);
  const std::uint64_t mark = narrow <= broad ? UINT8_MAX : UINT16_MAX;
  std::vector<std::uint64_t> kept(values.size());
  std::vector<std::uint64_t> places;
  std::vector<std::uint64_t> patches;
  for (std::size_t i = 0; i < values.size(); ++i) {
    kept[i] = std::min(values[i], mark);
    if (values[i] < mark) continue;
    places.push_back(i);
    patches.push_back(values[i]);
  }
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, kinds.values, kept, mark == UINT8_MAX ? 1 : 2));
  RHIZOME_RETURN_IF_ERROR(WriteColumn(writer, kinds.places, places));
  return WriteColumn(writer, kinds.patches, patches);
}

Result<PatchedColumn> PatchedColumn::Read(const SectionFile& file, const PatchedKinds& kinds,
                                          std::uint64_t count, std::uint64_t largest,
                                          const char* name) {
  const auto corrupt = [&](const std::string& what) {
    return Fail(Status::Corruption(fmt::format("{}: {} {}", file.path().string(), name, what)));
  };
  PatchedColumn column;
  const std::uint64_t patches = file.Count(kinds.places);
  RHIZOME_ASSIGN_OR_RETURN(column.values_, Column::Read(file, kinds.values, count));
  RHIZOME_ASSIGN_OR_RETURN(column.places_, Column::Read(file, kinds.places, patches));
  RHIZOME_ASSIGN_OR_RETURN(column.patches_, Column::Read(file, kinds.patches, patches));
  const std::uint32_t width = file.ElementBytes(kinds.values);
  if (width > 2) return corrupt(fmt::format("have {} bytes each; 1 or 2 were expected", width));
  column.mark_ = width == 1 ? UINT8_MAX : UINT16_MAX;
  if (file.paged()) return column;
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (column.values_[i] != column.mark_) continue;
    if (next == patches || column.places_[next] != i)
      return corrupt(fmt::format("entry {}: its patch is missing", i));
    if (column.patches_[next] < column.mark_ || column.patches_[next] > largest)
      return corrupt(fmt::format("entry {}: patch {} is out of range", i, column.patches_[next]));
    ++next;
  }
  if (next != patches) return corrupt(fmt::format("patch {}: belongs to no entry", next));
  return column;
}

}  // namespace internal
}  // namespace rhizome
