#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

/// "emb.v3.stale": an array of one uint8 a vertex, 1 where a compaction carried over a row of
/// `array` whose inputs had changed. Absent while none has.
std::string StaleName(std::string_view array);

/// What is known of rows that infer computed, without reading lists.
struct Staleness {
  std::uint64_t marked_rows = 0;  ///< of NAME.stale, as the array's facts count them

  /// Edges, vertices or features were written after what the array was computed from, and no
  /// compaction has marked the rows that this reaches.
  bool written_since = false;

  bool any() const { return marked_rows != 0 || written_since; }
};

}  // namespace rhizome
