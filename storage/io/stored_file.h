#pragma once

#include <fmt/format.h>

#include <memory>

#include "rhizome/storage/file_system.h"

namespace rhizome {

/// Opens a file that a manifest names. Errors: those of OpenRead, but for kNotFound: that it is
/// missing is damage (kCorruption).
inline Result<std::unique_ptr<ReadableFile>> OpenStored(
    FileSystem& fs, const Path& path, const FileSystem::ReadOptions& options = {}) {
  auto file = fs.OpenRead(path, options);
  if (file || file.error().code() != StatusCode::kNotFound) return file;
  return Fail(Status::Corruption(fmt::format("'{}' is missing", path.string())));
}

}  // namespace rhizome
