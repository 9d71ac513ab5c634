#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace rhizome::testing {

/// Returns a gzip member with `text` in stored blocks, built without zlib.
std::string Gzip(std::string_view text);

/// Returns a zstd frame with `text`, compressed.
std::string Zstd(std::string_view text);

/// Writes `text` to `path`, compressed by its extension (.gz, .zst).
void WriteInput(const std::filesystem::path& path, std::string_view text);

}  // namespace rhizome::testing
