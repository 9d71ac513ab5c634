#include "cache/job/process_memory.h"

#include <fstream>
#include <string>

#include "storage/base/bytes_left.h"

namespace rhizome {
namespace {

std::uint64_t StatusField(const std::string& process, const std::string& name) {
  std::ifstream status("/proc/" + process + "/status");
  std::string word;
  while (status >> word) {
    std::uint64_t kibibytes = 0;
    if (word == name && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace

std::uint64_t ResidentBytes() { return StatusField("self", "VmRSS:"); }
std::uint64_t PeakResidentBytes() { return StatusField("self", "VmHWM:"); }
std::uint64_t PeakResidentBytesOf(pid_t process) {
  return StatusField(std::to_string(process), "VmHWM:");
}

std::uint64_t HeldBytes(std::uint64_t base_bytes) { return BytesLeft(ResidentBytes(), base_bytes); }

}  // namespace rhizome
