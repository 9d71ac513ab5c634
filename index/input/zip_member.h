#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/file_system.h"

namespace rhizome {
inline namespace internal {

/// A member of a .npz file, as a path names it: "x.npz:feat" is the array feat in x.npz.
struct NpzMember {
  Path file;
  std::string member;  ///< without .npy
};

/// Returns the member that `path` names; nullopt for other paths.
std::optional<NpzMember> ParseNpzMember(const Path& path);

/// Opens a member of a zip archive, stored or deflated, as a file that is read once from front to
/// back. Its checksum is verified at its end. Zip64 is supported.
/// Errors: kNotFound, there is no such file or member, naming the members; kInvalidArgument, the
/// archive is damaged or has an unsupported form; kIoError.
Result<std::unique_ptr<ReadableFile>> OpenZipMember(FileSystem& fs, const Path& path,
                                                    const std::string& member);

}  // namespace internal
}  // namespace rhizome
