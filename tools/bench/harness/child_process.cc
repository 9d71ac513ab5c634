#include "tools/bench/harness/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace rhizome {

Result<int> RunChild(const std::vector<std::string>& arguments, const ChildOutput& output) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const auto target = [](const Path& path) {
    return path.empty() ? std::string("/dev/null") : path.string();
  };
  const std::string standard = target(output.standard), errors = target(output.errors);
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, standard.c_str(), kFlags, 0644);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), kFlags, 0644);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return Fail(Status::Unsupported(fmt::format("'{}' is not installed", arguments[0])));
  }
  if (error != 0) return Fail(Status::FromErrno(error, "start " + arguments[0]));
  int state = 0;
  while (::waitpid(child, &state, 0) < 0) {
    if (errno != EINTR) return Fail(Status::FromErrno(errno, "wait for " + arguments[0]));
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

}  // namespace rhizome
