#include "testing/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "testing/testing.h"

extern char** environ;

namespace rhizome::testing {
namespace {

/// Returns a null-terminated array of pointers as execve expects it. The strings must outlive it.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

ChildProcess ChildProcess::Fork(const std::function<int()>& body, unsigned seconds) {
  (void)std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return ChildProcess(child);
  ::alarm(seconds * Patience());
  ::_exit(body());
}

ChildProcess ChildProcess::RunAgain(const Again& again) {
  std::vector<std::string> arguments = {"/proc/self/exe"};
  arguments.insert(arguments.end(), again.arguments.begin(), again.arguments.end());
  std::vector<std::string> variables = again.variables;
  for (char** at = environ; *at != nullptr; ++at)
    if (!std::string_view(*at).starts_with("GTEST_")) variables.emplace_back(*at);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [ours, as] : again.descriptors)
    posix_spawn_file_actions_adddup2(&actions, ours, as);
  pid_t child = -1;
  const int failed = ::posix_spawn(&child, arguments.front().c_str(), &actions, nullptr,
                                   Pointers(arguments).data(), Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  return ChildProcess(failed == 0 ? child : -1);
}

std::vector<std::string> ChildProcess::OnlyTest(const std::string& filter) {
  return {"--gtest_filter=" + filter, "--gtest_brief=1"};
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  Kill();
  id_ = std::exchange(other.id_, -1);
  return *this;
}

int ChildProcess::Wait() {
  int how = 0;
  const pid_t child = std::exchange(id_, -1);
  return child > 0 && ::waitpid(child, &how, 0) == child ? how : -1;
}

std::optional<int> ChildProcess::Poll() {
  int how = 0;
  if (id_ <= 0 || ::waitpid(id_, &how, WNOHANG) != id_) return std::nullopt;
  id_ = -1;
  return how;
}

void ChildProcess::Kill() {
  if (id_ <= 0) return;
  ::kill(id_, SIGKILL);
  Wait();
}

int RunForked(const std::function<int()>& body, unsigned seconds) {
  return ChildProcess::Fork(body, seconds).Wait();
}

}  // namespace rhizome::testing
