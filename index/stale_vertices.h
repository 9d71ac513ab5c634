#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/index/delta_view.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/storage/manifest.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// "emb.v3.stale": an array of one uint8 a vertex, 1 where a compaction carried over a row of
/// `array` whose inputs had changed. Absent while none has.
std::string StaleName(std::string_view array);

/// An attribute (ArrayEntry::attributes): how many of its rows are stale, a decimal.
inline constexpr std::string_view kStaleRowsAttribute = "stale_rows";

/// How an array was computed, as `infer` notes it in the array's attributes: from which array, in
/// how many layers.
struct ArrayOrigin {
  std::string features;
  std::uint32_t layers = 0;
};
std::optional<ArrayOrigin> OriginOf(const ArrayEntry& array);

/// The vertices whose embedding a delta can have changed: those whose in-lists changed, or that can
/// be reached over at most `layers` out-edges from one whose features changed, or over fewer from
/// one whose in-list did. New vertices are among them. One byte a vertex, 1: stale.
/// `features_id`: the array that layer 0 reads. Errors: those of reading lists that are on disk.
Result<std::vector<std::uint8_t>> StaleVertices(const GraphParts& parts, const DeltaView& view,
                                                std::uint64_t features_id, std::uint32_t layers);

}  // namespace rhizome
