#include "tools/bench/harness/memory_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

namespace rhizome {
namespace {

bool WriteLine(const Path& path, const std::string& line) {
  std::ofstream file(path);
  file << line << std::flush;
  return file.good();
}

}  // namespace

Result<MemoryGroup> MemoryGroup::Create(std::uint64_t limit_bytes) {
  const Path first = "/sys/fs/cgroup/memory";  // cgroup version 1, otherwise version 2
  const bool is_first = std::filesystem::exists(first / "memory.limit_in_bytes");
  const Path folder =
      (is_first ? first : first.parent_path()) / fmt::format("rhizome-{}", ::getpid());
  std::error_code error;
  std::filesystem::create_directory(folder, error);
  MemoryGroup group(folder);
  const char* const limit = is_first ? "memory.limit_in_bytes" : "memory.max";
  if (error || !WriteLine(folder / limit, std::to_string(limit_bytes))) {
    return Fail(Status::Unsupported(
        fmt::format("cannot create a control group with a memory limit at {}: this needs root, and "
                    "a kernel with memory limits for control groups",
                    folder.string())));
  }
  if (std::filesystem::exists(folder / "memory.swap.max"))
    WriteLine(folder / "memory.swap.max", "0");
  return group;
}

MemoryGroup::~MemoryGroup() {
  if (folder_.empty()) return;
  // The kernel releases the last process shortly after its end, so removal may have to be repeated.
  std::error_code error;
  for (int i = 0; i < 20 && !std::filesystem::remove(folder_, error); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::vector<std::string> MemoryGroup::Command(const std::vector<std::string>& arguments) const {
  std::vector<std::string> command = {"sh", "-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\"",
                                      folder_.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

bool DropPageCache() {
  ::sync();
  return WriteLine("/proc/sys/vm/drop_caches", "3");
}

}  // namespace rhizome
