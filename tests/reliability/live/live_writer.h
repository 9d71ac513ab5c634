#pragma once

#include <cstdint>

#include "rhizome/file_system.h"
#include "rhizome/status.h"
#include "testing/child_process.h"

namespace rhizome::testing {

/// Processes that write to and read a real store, to be killed or cut off.
///
/// The writer writes the commits of live_model.h, every third without sync, and compacts after
/// every seventh. It reports over a pipe which commits are durable. The writer of arrays also adds
/// the arrays of live_arrays.h; an array is durable if a later commit is. The reader checks the
/// store repeatedly, and ends with an error if it sees anything other than the first m commits for
/// some m, or a smaller m than before. The verifier verifies the store repeatedly, and ends with an
/// error if that finds damage. Both report the number of their checks.
///
/// The follower and the compactor open the store once, for reading, and outlive many writers. The
/// follower refreshes its graph and checks it as the reader does, and reports m. The compactor
/// compacts the store whenever no writer has it open, and reports the number of its compactions.

/// Creates the initial store.
Status MakeLiveStore(const Path& path);

/// Returns the number of commits in the store. Errors: kCorruption, the store does not hold exactly
/// these commits; any of opening and reading.
Result<std::uint64_t> CountCommits(const Path& path);

/// Opens a store for writing, as the next writer does, then verifies that it has no damage. No
/// other process may have it open for writing.
Status CheckAfterwards(const Path& path);

/// Writes `commits` commits undisturbed, and compares after each. Errors: kCorruption.
Status CheckUndisturbed(const Path& path, std::uint64_t commits);

/// A child process. Destroying it kills it.
class LiveProcess {
 public:
  enum class Role : std::uint8_t {
    kWriter,
    kArrayWriter,
    kReader,
    kVerifier,
    kFollower,
    kCompactor,
  };

  /// Runs this binary again in this role.
  LiveProcess(Role role, const Path& path);
  ~LiveProcess();
  LiveProcess(LiveProcess&&) = delete;

  /// Waits until the writer has reported `count` more times that commits are durable, or has ended.
  /// Returns the last reported number: this many commits must be found afterwards.
  std::uint64_t WaitForAcks(std::uint64_t count);

  /// Returns the number reported so far.
  std::uint64_t acknowledged();

  void Kill() { process_.Kill(); }

  /// Waits until the process has reported a number of at least `number`. Returns false if it ends
  /// before, or does not for a minute times Patience().
  bool Reaches(std::uint64_t number);

  /// Returns whether the process has ended on its own, which it does only after an error.
  bool Failed();

 private:
  bool ReadAck(bool wait);

  ChildProcess process_;
  int pipe_ = -1;
  std::uint64_t acknowledged_ = 0;
  bool ended_ = false;  // the pipe is at its end
};

}  // namespace rhizome::testing
