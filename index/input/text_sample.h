#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// Number of samples of a file, and the size of each. They are spread over the file; a compressed
/// file is sampled only at its beginning.
inline constexpr std::size_t kSampleBytes = std::size_t{256} << 10;
inline constexpr std::size_t kSamples = 8;

/// Returns whether a file is compressed, by its content.
Result<bool> IsCompressed(FileSystem& fs, const Path& path);

/// Pieces of a text file, and properties of the whole file.
struct TextSample {
  std::vector<std::string> pieces;  ///< each consists of whole lines
  /// length of the whole file, decompressed; an estimate for compressed files
  std::uint64_t bytes = 0;
  std::uint64_t file_bytes = 0;
  bool whole = false;  ///< the pieces cover the whole file
};

/// Reads at most a few MiB.
/// Errors: any error of opening and reading the file.
Result<TextSample> SampleText(FileSystem& fs, const Path& path);

}  // namespace internal
}  // namespace rhizome
