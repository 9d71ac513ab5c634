#pragma once

#include <string_view>

#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// Returns the name of a codec: "none" or "elias-fano".
constexpr std::string_view TopologyCodecName(TopologyCodec codec) {
  return codec == TopologyCodec::kNone ? "none" : "elias-fano";
}

}  // namespace internal
}  // namespace rhizome
