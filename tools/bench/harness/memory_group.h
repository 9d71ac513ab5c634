#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rhizome/file_system.h"
#include "rhizome/status.h"

namespace rhizome {

/// A control group with a memory limit. The limit covers all processes of the group and the page
/// cache charged to them; a process that exceeds it is killed. The destructor removes the group.
class MemoryGroup {
 public:
  /// Creates the group. Errors: kUnsupported, not possible here (it requires root).
  static Result<MemoryGroup> Create(std::uint64_t limit_bytes);
  MemoryGroup(MemoryGroup&& other) noexcept : folder_(std::move(other.folder_)) {
    other.folder_.clear();
  }
  MemoryGroup& operator=(MemoryGroup&&) = delete;
  ~MemoryGroup();

  /// Returns the command line that runs `arguments` in the group.
  std::vector<std::string> Command(const std::vector<std::string>& arguments) const;

 private:
  explicit MemoryGroup(Path folder) : folder_(std::move(folder)) {}
  Path folder_;
};

/// Drops the page cache of all files. Returns false if not permitted.
bool DropPageCache();

}  // namespace rhizome
