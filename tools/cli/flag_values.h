#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/storage/codec.h"

namespace rhizome {

/// Values of flags as text. Touch nothing else, so that fuzz/ can drive them.

/// 1024-based: "512M", "4G", "1.5g", "65536". Nothing for other text.
std::optional<std::uint64_t> ParseSize(std::string_view text);

/// "10,10,5" or "all,10"; "all" is kAllNeighbors. Nothing for other text.
std::optional<std::vector<std::int64_t>> ParseFanouts(std::string_view text);

/// "zstd", "zstd:19", "blosc-lz4:5". Nothing for other text or a level out of range.
std::optional<Codec> ParseCodecFlag(std::string_view text);

std::vector<std::string> SplitList(std::string_view text, char separator);

}  // namespace rhizome
