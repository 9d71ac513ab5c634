#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rhizome::testing {

/// A child process of a test. The destructor kills the child and waits for it. Threads: one at a
/// time.
class ChildProcess {
 public:
  /// Forks a child that runs `body` and exits with the code that `body` returns. A signal ends the
  /// child after `seconds` times Patience(). The buffers of stdio are flushed first; otherwise the
  /// child might print them a second time.
  static ChildProcess Fork(const std::function<int()>& body, unsigned seconds = 60);

  /// Describes how to start this program again.
  struct Again {
    std::vector<std::string> arguments = {};
    std::vector<std::string> variables = {};  ///< NAME=value, in addition to this process's

    /// Descriptors of this process, each with its number in the child.
    std::vector<std::pair<int, int>> descriptors = {};
  };

  /// Starts this program again. The variables GTEST_*, which select tests, are not inherited.
  static ChildProcess RunAgain(const Again& again);

  /// Returns the arguments that make the program run one test with brief output.
  static std::vector<std::string> OnlyTest(const std::string& filter);

  /// Constructs a handle without a process.
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Kill(); }

  /// Process id; -1 if the process could not be started or has ended.
  pid_t id() const { return id_; }

  /// Waits for the end of the process. Returns its status as from waitpid: 0 if it exited with code
  /// 0; -1 if there is no process.
  int Wait();

  /// Returns the status if the process has ended, else nullopt.
  std::optional<int> Poll();
  void Kill();

 private:
  explicit ChildProcess(pid_t id) : id_(id) {}
  pid_t id_ = -1;
};

/// Runs `body` in a fork and waits for its end. Returns the same as ChildProcess::Wait.
int RunForked(const std::function<int()>& body, unsigned seconds = 60);

}  // namespace rhizome::testing
