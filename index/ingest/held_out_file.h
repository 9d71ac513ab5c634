#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/generation/spill.h"
#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Lines of a tab-separated file, compressed by zstd, that is written when all lines are known.
/// Until then the compressed lines are in memory or in a spill file, so that a process that is
/// killed leaves no file behind.
/// Threads: one at a time.
class HeldOutFile {
 public:
  /// With `space`, compressed lines are in a spill file there.
  /// Errors: as SpillWriter::Create.
  static Result<HeldOutFile> Create(SpillSpace* space);

  /// Adds a line.
  /// Errors: kInvalidArgument, a field cannot be part of a tab-separated line; errors of spilling;
  /// kOutOfMemory.
  Status AddLine(std::span<const std::string_view> fields);

  /// Writes the lines to `path`, atomically. Can be called once.
  /// Errors: as OutputFile; any error of spilling.
  Status Write(const Path& path);

  std::uint64_t memory_bytes() const { return lines_.capacity() + frames_.capacity(); }

 private:
  HeldOutFile() = default;
  Status Compress();

  std::string lines_;              // not yet compressed
  std::vector<std::byte> frames_;  // compressed lines, unless they are spilled
  std::optional<SpillWriter> spilled_;
};

}  // namespace internal
}  // namespace rhizome
