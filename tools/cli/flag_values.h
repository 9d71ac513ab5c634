#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/array/codec.h"

namespace rhizome {

/// Parsers of flag values. They are pure functions, so that the fuzz targets can call them.

/// Parses a size with a 1024-based suffix: "512M", "4G", "1.5g", "65536". Returns nullopt for any
/// other text.
std::optional<std::uint64_t> ParseSize(std::string_view text);

/// Parses a list of fanouts such as "10,10,5" or "all,10"; "all" is kAllNeighbors. Returns nullopt
/// for any other text.
std::optional<std::vector<std::int64_t>> ParseFanouts(std::string_view text);

/// Parses a codec such as "zstd", "zstd:19" or "blosc-lz4:5". Returns nullopt for any other text
/// and for a level out of range.
std::optional<Codec> ParseCodecFlag(std::string_view text);

std::vector<std::string> SplitList(std::string_view text, char separator);

}  // namespace rhizome
