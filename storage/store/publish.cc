#include "rhizome/array_change.h"
#include "storage/base/exceptions.h"

namespace rhizome {

Status Store::PublishArray(FileSystem& fs, const Path& path, std::uint64_t generation,
                           std::span<const ArrayEntry> arrays, const Path& source_root,
                           std::span<const FileEntry> files) try {
  return ArrayChange::Run(fs, path, {.generation = generation}, [&](ArrayChange& change) -> Status {
    RHIZOME_RETURN_IF_ERROR(change.Add({arrays, source_root, files}));
    return Status::Ok();
  });
} catch (...) {
  return StatusOfException();
}

}  // namespace rhizome
