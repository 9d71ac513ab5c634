#include "cache/blocks/non_finite_rows.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "cache/feed/feature_decoder.h"
#include "index/input/convert.h"
#include "index/topology/type_rows.h"
#include "storage/array/array_facts.h"
#include "storage/base/exceptions.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Returns whether a value is NaN or infinite. The loop has no branch, so that compilers vectorise
/// it.
bool HasNonFinite(std::span<const float> values) {
  constexpr std::uint32_t kExponent = 0x7f800000;
  std::uint32_t found = 0;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    found |= static_cast<std::uint32_t>((bits & kExponent) == kExponent);
  }
  return found != 0;
}

/// Calls use(index of the row) for each row with a NaN or infinite value. Such rows are rare, so
/// blocks of rows are checked first.
template <typename Use>
void ForNonFinite(std::span<const float> rows, std::size_t dim, const Use& use) {
  constexpr std::size_t kBlockValues = 4096;
  if (dim == 0) return;
  const std::size_t count = rows.size() / dim;
  const std::size_t block = std::max<std::size_t>(kBlockValues / dim, 1);
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t end = std::min(first + block, count);
    if (!HasNonFinite(rows.subspan(first * dim, (end - first) * dim))) continue;
    for (std::size_t row = first; row < end; ++row)
      if (HasNonFinite(rows.subspan(row * dim, dim))) use(row);
  }
}

}  // namespace

std::uint64_t CountNonFinite(std::span<const float> rows, std::size_t dim) {
  std::uint64_t count = 0;
  ForNonFinite(rows, dim, [&](std::size_t) { ++count; });
  return count;
}

namespace {

/// `counts`: returns whether a vertex counts.
template <typename Counts>
Result<NonFiniteRows> FindAmong(const GraphSnapshot& graph, const ChunkArray& array,
                                const DeltaRows* delta, const JobControl& control,
                                const Counts& counts) {
  const ArrayEntry& entry = array.entry();
  NonFiniteRows found;
  if (!IsFloat(entry.dtype) && !NullOf(entry.attributes)) return found;
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(entry, /*normalize=*/false));
  const std::uint64_t all = std::max(entry.rows, delta == nullptr ? 0 : delta->rows());
  const std::uint64_t at_once =
      std::max<std::uint64_t>(entry.sharded() ? entry.inner_rows : entry.chunk_rows, 1);
  std::vector<std::byte> stored;
  std::vector<float> floats;
  const auto type = TypeNamed(graph.vertex_types(), BoundType(entry));
  for (std::uint64_t first = 0; first < all; first += at_once) {
    RHIZOME_RETURN_IF_ERROR(
        control.Report({.phase = "checking for NaN", .done = first, .total = all, .detail = {}}));
    const std::uint64_t count = std::min(at_once, all - first);
    stored.resize(count * entry.row_bytes());
    const std::uint64_t in_files = first < entry.rows ? std::min(count, entry.rows - first) : 0;
    if (in_files > 0) {
      RHIZOME_RETURN_IF_ERROR(
          array.ReadRows(first, in_files, std::span(stored).first(in_files * entry.row_bytes())));
    }
    if (delta != nullptr) RHIZOME_RETURN_IF_ERROR(delta->Overlay(static_cast<Row>(first), stored));
    floats.resize(count * entry.dim);
    decoder.Decode(stored, floats);
    Status status;
    ForNonFinite(floats, entry.dim, [&](std::size_t row) {
      const Result<VertexId> vertex = graph.VertexAt(static_cast<Row>(first + row));
      if (!vertex) status = vertex.error();
      if (!vertex || graph.IsDeleted(*vertex) || !counts(*vertex)) return;
      // The rows of other types are NaN in a bound array.
      if (type && ValueOrThrow(graph.TypeOf(*vertex)) != *type) return;
      ++found.rows;
      found.first = std::min(found.first.value_or(*vertex), *vertex);
    });
    RHIZOME_RETURN_IF_ERROR(status);
  }
  return found;
}

}  // namespace

Result<NonFiniteRows> FindNonFinite(const GraphSnapshot& graph, const ChunkArray& array,
                                    const DeltaRows* delta, const JobControl& control) {
  return FindAmong(graph, array, delta, control, [](VertexId) { return true; });
}

Result<NonFiniteRows> FindNonFinite(const GraphSnapshot& graph, std::string_view array,
                                    const JobControl& control,
                                    std::span<const FeatureInput> inputs) {
  RHIZOME_ASSIGN_OR_RETURN(const auto opened, graph.store().OpenArray(array));
  const auto delta = DeltaRows::Of(graph.Snapshot(), opened->entry());
  return FindAmong(graph, *opened, delta.get(), control, [&](VertexId vertex) {
    const Result<TypeId> type = graph.TypeOf(vertex);
    return inputs.empty() || !type || inputs[*type].array == array;
  });
}

}  // namespace internal
}  // namespace rhizome
