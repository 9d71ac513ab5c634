#include "tools/cli/machine.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace rhizome {
namespace {

double SecondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Returns the CPU model name from /proc/cpuinfo.
std::string CpuModel() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

/// Type and source of the mount that contains a path, from the kernel's mountinfo.
struct Mount {
  std::string filesystem = "unknown";
  std::string device = "unknown";
};

Mount FindMount(const Path& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return {};
  const std::string wanted = fmt::format("{}:{}", major(info.st_dev), minor(info.st_dev));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string id, parent, numbers;
    fields >> id >> parent >> numbers;
    const std::size_t dash = line.find(" - ");
    if (numbers != wanted || dash == std::string::npos) continue;
    Mount mount;
    std::istringstream(line.substr(dash + 3)) >> mount.filesystem >> mount.device;
    return mount;
  }
  return {};
}

}  // namespace

nlohmann::ordered_json DescribeMachine(const Path& path) {
  utsname system = {};
  const bool known = ::uname(&system) == 0;
  const Mount mount = FindMount(path);
  return {{"cpu", CpuModel()},
          {"cpus", std::thread::hardware_concurrency()},
          {"kernel", known ? system.release : "unknown"},
          {"filesystem", mount.filesystem},
          {"device", mount.device}};
}

bool LocksMayBeLocal(std::string_view filesystem) {
  for (const std::string_view name : {"nfs", "nfs4", "cifs", "smb3", "lustre", "9p", "virtiofs"})
    if (filesystem == name) return true;
  return filesystem.starts_with("fuse");
}

double ProcessCpuSeconds() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID); }

double ThreadCpuSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace rhizome
