#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rhizome {
inline namespace internal {

/// The kinds of coordinates: a coordinate holds the vertex id, the external id or the vertex type
/// of each row.
enum class CoordinateKind : std::uint8_t { kVertexId, kExternalId, kVertexType };

/// Returns the name of a coordinate without the underscores that are appended if an array has the
/// same name.
inline std::string_view PlainCoordinateName(CoordinateKind kind) {
  switch (kind) {
    case CoordinateKind::kVertexId:
      return "vertex_id";
    case CoordinateKind::kVertexType:
      return "vertex_type";
    default:
      return "external_id";
  }
}

/// Returns the kind of coordinate that may have this name: a plain name, possibly followed by
/// underscores. Returns nullopt for other names.
inline std::optional<CoordinateKind> CoordinateKindOf(std::string_view name) {
  for (const CoordinateKind kind :
       {CoordinateKind::kVertexId, CoordinateKind::kExternalId, CoordinateKind::kVertexType}) {
    const std::string_view plain = PlainCoordinateName(kind);
    if (!name.starts_with(plain)) continue;
    if (name.find_first_not_of('_', plain.size()) == name.npos) return kind;
  }
  return std::nullopt;
}

}  // namespace internal
}  // namespace rhizome
