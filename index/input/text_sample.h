#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"

namespace rhizome::inline internal {

/// A file is sampled in so many pieces of this size, spread over it; a compressed one only at its
/// beginning.
inline constexpr std::size_t kSampleBytes = std::size_t{256} << 10;
inline constexpr std::size_t kSamples = 8;

bool IsCompressed(const Path& path);

/// Pieces of a text file, and what they tell of the whole.
struct TextSample {
  std::vector<std::string> pieces;  ///< each of whole lines
  std::uint64_t bytes = 0;          ///< of the file, decompressed, as far as can be told
  std::uint64_t file_bytes = 0;
  bool whole = false;  ///< the pieces are all of the file
};

/// Reads at most a few MiB. Errors: those of opening and reading.
Result<TextSample> SampleText(FileSystem& fs, const Path& path);

}  // namespace rhizome::inline internal
