#pragma once

#include <cstdint>
#include <string_view>

#include "rhizome/export.h"

namespace RHIZOME_API rhizome {

/// The encoding of adjacency lists in a partition file.
enum class TopologyCodec : std::uint8_t {
  kNone,       ///< 4 bytes an entry; the fastest to read
  kEliasFano,  ///< ascending lists in about 2 + log2(vertices / list length) bits an entry
};

/// Returns the name of a codec: "none" or "elias-fano".
constexpr std::string_view TopologyCodecName(TopologyCodec codec) {
  return codec == TopologyCodec::kNone ? "none" : "elias-fano";
}

}  // namespace rhizome
