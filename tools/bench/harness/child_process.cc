#include "tools/bench/harness/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "storage/io/files.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMaxChildReportBytes = std::uint64_t{16} << 20;

Result<std::string> ReadText(const Path& path) {
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           ReadWholeFile(FileSystem::Posix(), path, kMaxChildReportBytes));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace

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

Result<nlohmann::ordered_json> RunForJson(const std::vector<std::string>& arguments,
                                          const std::string& name, const Path& scratch,
                                          bool may_be_killed) {
  const ChildOutput output{.standard = scratch / "report.json", .errors = scratch / "errors"};
  RHIZOME_ASSIGN_OR_RETURN(const int code, RunChild(arguments, output));
  if (code == kKilledChild && may_be_killed) return nlohmann::ordered_json::object();
  if (code != 0) {
    const std::string said = ReadText(output.errors).value_or("");
    return Fail(Status::IoError(
        fmt::format("{} exited with code {}{}; its output: {}", name, code,
                    code == kKilledChild ? ", killed; perhaps it exceeded the memory limit" : "",
                    said.empty() ? "nothing" : said)));
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::string text, ReadText(output.standard));
  auto report = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded()) return Fail(Status::IoError(name + " printed no JSON object"));
  return report;
}

}  // namespace rhizome
