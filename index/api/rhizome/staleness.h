#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// Returns the name "emb.v3.stale" of an array with one uint8 a vertex: 1 if a compaction carried
/// over a row of `array` whose inputs had changed. The array exists only while there is such a row.
std::string StaleName(std::string_view array);

/// The staleness of an array that `infer` computed, as known without reading lists.
struct Staleness {
  /// The number of rows marked in NAME.stale, from the array's attributes.
  std::uint64_t marked_rows = 0;

  /// Edges, vertices or features were written after the commit that the array was computed from,
  /// and no compaction has marked the affected rows yet.
  bool written_since = false;

  bool any() const { return marked_rows != 0 || written_since; }
};

}  // namespace rhizome
