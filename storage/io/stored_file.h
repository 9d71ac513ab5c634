#pragma once

#include <fmt/format.h>

#include <memory>

#include "rhizome/file_system.h"
#include "storage/base/mutant.h"

namespace rhizome {
inline namespace internal {

/// Turns kNotFound into kCorruption, for a file that a manifest names or that every store has: its
/// absence is damage and not a wrong name from the user. Returns every other outcome unchanged.
template <typename T>
Result<T> MissingIsDamage(Result<T> outcome, const Path& path) {
  if (outcome || outcome.error().code() != StatusCode::kNotFound) return outcome;
  if (RHIZOME_MUTANT("a missing file is a wrong name")) return outcome;
  return Fail(Status::Corruption(fmt::format("'{}' is missing", path.string())));
}

/// Opens such a file. Errors: see OpenRead, but kCorruption if it is missing.
inline Result<std::unique_ptr<ReadableFile>> OpenStored(
    FileSystem& fs, const Path& path, const FileSystem::ReadOptions& options = {}) {
  return MissingIsDamage(fs.OpenRead(path, options), path);
}

}  // namespace internal
}  // namespace rhizome
