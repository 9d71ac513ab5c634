#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rhizome::inline internal {

/// What a coordinate says of the rows of a generation.
enum class CoordinateKind : std::uint8_t { kVertexId, kExternalId };

/// The name, without the underscores that it has behind where an array bears it.
inline std::string_view PlainCoordinateName(CoordinateKind kind) {
  return kind == CoordinateKind::kVertexId ? "vertex_id" : "external_id";
}

/// The kind of coordinate that such a folder may be of: a plain name, underscores behind or not.
inline std::optional<CoordinateKind> CoordinateKindOf(std::string_view name) {
  for (const CoordinateKind kind : {CoordinateKind::kVertexId, CoordinateKind::kExternalId}) {
    const std::string_view plain = PlainCoordinateName(kind);
    if (!name.starts_with(plain)) continue;
    if (name.find_first_not_of('_', plain.size()) == name.npos) return kind;
  }
  return std::nullopt;
}

}  // namespace rhizome::inline internal
