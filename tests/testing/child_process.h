#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rhizome::testing {

/// A child process of a test. It is killed, and waited for, when this goes. Threads: one at a time.
class ChildProcess {
 public:
  /// A fork that runs `body` and ends at once with the exit code which that returns; after
  /// `seconds` times Patience() a signal ends it. What stdio holds is written before, or the child
  /// might say it again.
  static ChildProcess Fork(const std::function<int()>& body, unsigned seconds = 60);

  /// How this program is started once more.
  struct Again {
    std::vector<std::string> arguments = {};
    std::vector<std::string> variables = {};  ///< NAME=value, beside those of this process

    /// Descriptors of this process, and the numbers that the child has them by.
    std::vector<std::pair<int, int>> descriptors = {};
  };

  /// A process that runs this program, without the variables GTEST_*, which say what is to be run.
  static ChildProcess RunAgain(const Again& again);

  /// The arguments by which it runs one test, quietly.
  static std::vector<std::string> OnlyTest(const std::string& filter);

  /// No process.
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Kill(); }

  /// -1: it could not be started, or has ended.
  pid_t id() const { return id_; }

  /// Waits for its end. How it ended, as waitpid says it: 0, it exited with 0; -1: there is none.
  int Wait();

  /// The same if it has ended.
  std::optional<int> Poll();
  void Kill();

 private:
  explicit ChildProcess(pid_t id) : id_(id) {}
  pid_t id_ = -1;
};

/// Runs `body` in a fork, to its end. As ChildProcess::Wait.
int RunForked(const std::function<int()>& body, unsigned seconds = 60);

}  // namespace rhizome::testing
