#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/file_system.h"

namespace RHIZOME_API rhizome {

/// The compression of an input file, by its first bytes.
enum class Compression : std::uint8_t { kNone, kGzip, kZstd, kBzip2, kXz };

/// Returns "gzip", "zstd", "bzip2" or "xz"; empty for kNone.
std::string_view CompressionName(Compression compression);

/// Number of leading bytes that determine the kind of any file.
inline constexpr std::size_t kFormatBytes = 16;

/// Returns the compression of a file that begins with `head`.
Compression CompressionOf(std::span<const std::byte> head);

/// Returns the compression that the name calls for (.gz, .zst, .bz2, .xz, in small letters or
/// capitals) if `head` is a file's only bytes and could begin such a file: the file was cut off.
Compression CutOffCompression(const Path& path, std::span<const std::byte> head);

/// Returns why a file that begins with `head` is not text: its kind, and how to convert it; nullopt
/// if it may be text. `head` is decompressed.
std::optional<std::string> RefuseAsText(std::span<const std::byte> head);

/// Returns whether a file that begins with `head` is a NumPy array.
bool IsNpy(std::span<const std::byte> head);

/// Returns the extension in small letters, without an extension of compression before which it
/// may be: "A.CSV.GZ" -> ".csv".
std::string ContentExtension(const Path& path);

}  // namespace rhizome
