#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/result.h"

namespace rhizome {

/// A control group whose processes together, with what the page cache holds for them, get so much
/// memory and no more: who wants more is killed. Removed at the end.
class MemoryGroup {
 public:
  /// Errors: kUnsupported, no such group can be made here (it takes root).
  static Result<MemoryGroup> Create(std::uint64_t limit_bytes);
  MemoryGroup(MemoryGroup&& other) noexcept : folder_(std::move(other.folder_)) {
    other.folder_.clear();
  }
  MemoryGroup& operator=(MemoryGroup&&) = delete;
  ~MemoryGroup();

  /// The command that runs `arguments` in the group.
  std::vector<std::string> Command(const std::vector<std::string>& arguments) const;

 private:
  explicit MemoryGroup(Path folder) : folder_(std::move(folder)) {}
  Path folder_;
};

/// Drops what the page cache holds of all files. False: not permitted.
bool DropPageCache();

}  // namespace rhizome
