#include "index/compact/compacted_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace rhizome {
inline namespace internal {

CompactedIds::CompactedIds(const GraphParts& parts, const Delta& delta)
    : parts_(parts), delta_(delta) {
  const auto before = parts.ids.deleted();
  deleted_.assign(before.begin(), before.end());
  if (const auto merged = delta.Merged())
    deleted_.insert(deleted_.end(), merged->deleted.begin(), merged->deleted.end());
  std::sort(deleted_.begin(), deleted_.end());
  for (std::uint64_t v = delta.base_vertices(); v < delta.vertices(); ++v) {
    const auto vertex = static_cast<VertexId>(v);
    const auto* id = std::get_if<std::int64_t>(&delta.IdOf(vertex));
    if (id == nullptr || *id != vertex) dense_ = false;
  }
  dense_ = dense_ && deleted_.empty() && kind_before() == ExternalIdKind::kDense;
}

ExternalIdKind CompactedIds::kind() const {
  if (kind_before() == ExternalIdKind::kString) return ExternalIdKind::kString;
  return dense_ ? ExternalIdKind::kDense : ExternalIdKind::kInteger;
}

Status CompactedIds::Write(ByteSink& sink, const StoreId& store_id) const {
  const std::vector<VertexId> sorted_new = SortedNew();
  IdStream ids{.kind = kind(), .vertices = delta_.vertices(), .read = {}, .read_sorted = {}};
  ids.read = [this](const IdStream::PutId& put) { return PutIds(put); };
  ids.read_sorted = [&](const IdStream::PutVertex& put) { return PutSorted(sorted_new, put); };
  RHIZOME_RETURN_IF_ERROR(ids.read([&](std::string_view id) {
    ids.bytes += id.size();
    return Status::Ok();
  }));
  RHIZOME_RETURN_IF_ERROR(ids.read_sorted([&](std::uint64_t vertex) {
    ++ids.sorted;
    ids.largest = std::max(ids.largest, vertex);
    return Status::Ok();
  }));
  return VertexIds::Write(sink, store_id, ids);
}

ExternalId CompactedIds::IdOf(VertexId vertex) const {
  return static_cast<std::uint64_t>(vertex) < delta_.base_vertices() ? parts_.ids.IdOf(vertex)
                                                                     : delta_.IdOf(vertex);
}

bool CompactedIds::IsDeleted(VertexId vertex) const {
  return std::binary_search(deleted_.begin(), deleted_.end(), vertex);
}

/// Returns the new vertices that are not deleted, sorted by their ids.
std::vector<VertexId> CompactedIds::SortedNew() const {
  std::vector<VertexId> fresh;
  for (std::uint64_t v = delta_.base_vertices(); v < delta_.vertices(); ++v)
    if (!IsDeleted(static_cast<VertexId>(v))) fresh.push_back(static_cast<VertexId>(v));
  std::sort(fresh.begin(), fresh.end(),
            [&](VertexId a, VertexId b) { return delta_.IdOf(a) < delta_.IdOf(b); });
  return fresh;
}

/// Passes all vertices that are not deleted to `put`, sorted by id: merges the new vertices into
/// the order of the generation.
Status CompactedIds::PutSorted(std::span<const VertexId> sorted_new,
                               const IdStream::PutVertex& put) const {
  std::uint64_t place = 0;
  std::optional<VertexId> last;
  const auto put_next = [&](VertexId vertex) {
    last = vertex;
    return put(static_cast<std::uint64_t>(vertex));
  };
  const auto put_old = [&](std::uint64_t end) -> Status {
    for (; place < end; ++place) {
      const VertexId old = parts_.ids.SortedAt(place);
      if (!IsDeleted(old)) RHIZOME_RETURN_IF_ERROR(put_next(old));
    }
    return Status::Ok();
  };
  for (const VertexId fresh : sorted_new) {
    // If the id exists in the generation and is not deleted, that vertex must come before the new
    // one, so that the repetition is detected.
    std::uint64_t end = parts_.ids.LowerBound(delta_.IdOf(fresh));
    if (end < parts_.ids.sorted_count() &&
        parts_.ids.IdOf(parts_.ids.SortedAt(end)) == delta_.IdOf(fresh))
      ++end;
    RHIZOME_RETURN_IF_ERROR(put_old(end));
    if (last && !(IdOf(*last) < IdOf(fresh)))
      return Status::Corruption(fmt::format("delta: vertices {} and {} have the same external id",
                                            std::min(*last, fresh), std::max(*last, fresh)));
    RHIZOME_RETURN_IF_ERROR(put_next(fresh));
  }
  return put_old(parts_.ids.sorted_count());
}

Status CompactedIds::PutIds(const IdStream::PutId& put) const {
  for (std::uint64_t v = 0; v < delta_.vertices(); ++v) {
    const ExternalId id = IdOf(static_cast<VertexId>(v));
    const auto* const integer = std::get_if<std::int64_t>(&id);
    RHIZOME_RETURN_IF_ERROR(
        put(integer != nullptr
                ? std::string_view(reinterpret_cast<const char*>(integer), sizeof(*integer))
                : std::string_view(std::get<std::string>(id))));
  }
  return Status::Ok();
}

}  // namespace internal
}  // namespace rhizome
