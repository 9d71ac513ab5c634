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

/// Returns a bzip2 stream with `text`.
std::string Bzip2(std::string_view text);

/// Returns an xz stream with `text`, with a dictionary of the given size.
std::string Xz(std::string_view text, std::uint32_t dictionary_bytes = 1U << 20);

/// Writes `text` to `path`, compressed by its extension (.gz, .zst, .bz2, .xz).
void WriteInput(const std::filesystem::path& path, std::string_view text);

}  // namespace rhizome::testing
