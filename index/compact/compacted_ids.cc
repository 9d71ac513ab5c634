#include "index/compact/compacted_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

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
  return kind() == ExternalIdKind::kString ? WriteStrings(sink, store_id)
                                           : WriteIntegers(sink, store_id);
}

ExternalId CompactedIds::IdOf(VertexId vertex) const {
  return static_cast<std::uint64_t>(vertex) < delta_.base_vertices() ? parts_.ids.IdOf(vertex)
                                                                     : delta_.IdOf(vertex);
}

bool CompactedIds::IsDeleted(VertexId vertex) const {
  return std::binary_search(deleted_.begin(), deleted_.end(), vertex);
}

Status CompactedIds::WriteIntegers(ByteSink& sink, const StoreId& store_id) const {
  std::vector<std::int64_t> ids(delta_.vertices());
  for (std::size_t v = 0; v < ids.size(); ++v)
    ids[v] = std::get<std::int64_t>(IdOf(static_cast<VertexId>(v)));
  return VertexIds::Write(sink, store_id, std::span<const std::int64_t>(ids), deleted_);
}

Status CompactedIds::WriteStrings(ByteSink& sink, const StoreId& store_id) const {
  StringIds ids;
  ids.offsets.assign(delta_.vertices() + 1, 0);
  for (std::size_t v = 0; v + 1 < ids.offsets.size(); ++v)
    ids.offsets[v + 1] =
        ids.offsets[v] + std::get<std::string>(IdOf(static_cast<VertexId>(v))).size();
  RHIZOME_ASSIGN_OR_RETURN(ids.sorted, Sorted());
  ids.read_bytes = [this](const std::function<Status(std::span<const std::byte>)>& put) {
    return PutTexts(put);
  };
  return VertexIds::Write(sink, store_id, ids);
}

/// Returns the new vertices that are not deleted, sorted by the texts of their ids.
std::vector<VertexId> CompactedIds::SortedNew() const {
  std::vector<VertexId> fresh;
  for (std::uint64_t v = delta_.base_vertices(); v < delta_.vertices(); ++v)
    if (!IsDeleted(static_cast<VertexId>(v))) fresh.push_back(static_cast<VertexId>(v));
  std::sort(fresh.begin(), fresh.end(),
            [&](VertexId a, VertexId b) { return delta_.IdOf(a) < delta_.IdOf(b); });
  return fresh;
}

/// Returns all vertices that are not deleted, sorted by id: merges the new vertices into the order
/// of the generation.
Result<std::vector<std::uint64_t>> CompactedIds::Sorted() const {
  std::vector<std::uint64_t> sorted;
  sorted.reserve(delta_.vertices());
  std::uint64_t place = 0;
  const auto add_old = [&](std::uint64_t end) {
    for (; place < end; ++place) {
      const VertexId old = parts_.ids.SortedAt(place);
      if (!IsDeleted(old)) sorted.push_back(static_cast<std::uint64_t>(old));
    }
  };
  const auto check_above_last = [&](VertexId next) -> Status {
    if (sorted.empty()) return Status::Ok();
    const auto last = static_cast<VertexId>(sorted.back());
    if (IdOf(last) < IdOf(next)) return Status::Ok();
    return Status::Corruption(fmt::format("delta: vertices {} and {} have the same external id",
                                          std::min(last, next), std::max(last, next)));
  };
  for (const VertexId fresh : SortedNew()) {
    // If the id exists in the generation and is not deleted, that vertex must come before the new
    // one, so that check_above_last detects the repetition.
    std::uint64_t end = parts_.ids.LowerBound(delta_.IdOf(fresh));
    if (end < parts_.ids.sorted_count() &&
        parts_.ids.IdOf(parts_.ids.SortedAt(end)) == delta_.IdOf(fresh))
      ++end;
    add_old(end);
    RHIZOME_RETURN_IF_ERROR(check_above_last(fresh));
    sorted.push_back(static_cast<std::uint64_t>(fresh));
  }
  add_old(parts_.ids.sorted_count());
  return sorted;
}

Status CompactedIds::PutTexts(const std::function<Status(std::span<const std::byte>)>& put) const {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 16;
  std::string piece;  // joins many short texts for one call of `put`
  for (std::uint64_t v = 0; v < delta_.vertices(); ++v) {
    piece += std::get<std::string>(IdOf(static_cast<VertexId>(v)));
    if (piece.size() < kPieceBytes) continue;
    RHIZOME_RETURN_IF_ERROR(put(std::as_bytes(std::span(piece))));
    piece.clear();
  }
  return put(std::as_bytes(std::span(piece)));
}

}  // namespace internal
}  // namespace rhizome
