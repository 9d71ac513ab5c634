#include "storage/io/lock_holder.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

bool HasEnded(pid_t pid) { return kill(pid, 0) != 0 && errno == ESRCH; }

/// Returns the processes that hold a flock of this file, as far as this process is allowed to see
/// them. A line of /proc/locks looks like "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF".
std::set<pid_t> HoldersOf(const struct stat& file) {
  const std::string place =
      fmt::format("{:02x}:{:02x}:{}", major(file.st_dev), minor(file.st_dev), file.st_ino);
  std::set<pid_t> holders;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, mode, where;
    pid_t pid = 0;
    if (!(words >> number >> kind >> advisory >> mode >> pid >> where)) continue;
    if (kind == "FLOCK" && where == place && pid > 0) holders.insert(pid);
  }
  return holders;
}

std::string Describe(pid_t pid) {
  if (HasEnded(pid))
    return fmt::format("process {}, which has ended but has a child that is running", pid);
  std::string name;
  std::ifstream comm(fmt::format("/proc/{}/comm", pid));
  std::getline(comm, name);
  return name.empty() ? fmt::format("process {}", pid) : fmt::format("process {} ({})", pid, name);
}

/// Describes the holder by the content of the lock file, "rhizome 1234" and a newline, as written
/// by the last exclusive holder. That process may have ended; shared holders write nothing.
std::string DescribeContent(int descriptor) {
  std::array<char, 128> text{};
  const ssize_t got = pread(descriptor, text.data(), text.size(), 0);
  std::string content(text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  while (!content.empty() && (content.back() == ' ' || content.back() == '\n')) content.pop_back();
  if (content.empty()) return "an unknown process";
  constexpr std::string_view kHead = "rhizome ";
  pid_t pid = 0;
  const std::string_view digits = std::string_view(content).substr(
      std::min(content.size(), content.starts_with(kHead) ? kHead.size() : content.size()));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  if (whole && pid > 0 && HasEnded(pid))
    return fmt::format("an unknown process (the last writer, process {}, has ended)", pid);
  return content;
}

std::string DescribeAll(const std::set<pid_t>& holders) {
  constexpr std::size_t kMaxNames = 3;
  std::string text;
  std::size_t names = 0;
  for (const pid_t pid : holders) {
    if (++names > kMaxNames) return text + " and others";
    text += fmt::format("{}{}", text.empty() ? "" : ", ", Describe(pid));
  }
  return text;
}

}  // namespace

std::string DescribeLockHolder(int descriptor) {
  struct stat file = {};
  const std::set<pid_t> holders =
      fstat(descriptor, &file) == 0 ? HoldersOf(file) : std::set<pid_t>{};
  if (holders.contains(getpid()))
    return fmt::format("this process {} itself; close its handle", getpid());
  const std::string who = holders.empty() ? DescribeContent(descriptor) : DescribeAll(holders);
  return fmt::format("another process: {}; wait for it or end it", who);
}

}  // namespace internal
}  // namespace rhizome
