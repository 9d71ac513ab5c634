#pragma once

#include <cstdint>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/status.h"
#include "testing/child_process.h"

namespace rhizome::testing {

/// Processes that write to and read a real store, to be killed or cut off.
///
/// The writer writes the commits of live_model.h, every third without sync, and compacts after
/// every seventh. It reports over a pipe which commits are durable. The writer of arrays also adds
/// those of live_arrays.h, each of which is durable if a later commit is. The reader checks again
/// and again, and ends with an error as soon as it sees something else than the first m commits for
/// some m, or a smaller m than before. The verifier verifies again and again, and ends with an
/// error as soon as that finds damage. Both report how often they have done it.

/// Makes the initial store.
Status MakeLiveStore(const Path& path);

/// Returns the number of commits in the store. Errors: kCorruption, the store does not hold exactly
/// these commits; those of opening and reading.
Result<std::uint64_t> CountCommits(const Path& path);

/// Opens a store for writing, as the next writer does, then verifies that it has no damage. No
/// other process may have it open for writing.
Status CheckAfterwards(const Path& path);

/// Writes so many commits undisturbed, and compares after each. Errors: kCorruption.
Status CheckUndisturbed(const Path& path, std::uint64_t commits);

/// A child process. Destroying it kills it.
class LiveProcess {
 public:
  enum class Role : std::uint8_t { kWriter, kArrayWriter, kReader, kVerifier };

  /// Runs this binary again in that role (RunRoleIfAsked).
  LiveProcess(Role role, const Path& path);
  ~LiveProcess();
  LiveProcess(LiveProcess&&) = delete;

  /// Waits until the writer has reported that `count` commits of its own are durable, or has ended.
  /// Returns the number reported so far: that many commits must be found afterwards.
  std::uint64_t WaitForAcks(std::uint64_t count);

  /// Returns the number reported so far.
  std::uint64_t acknowledged();

  void Kill() { process_.Kill(); }

  /// Returns whether the process has ended by itself, which it does only after an error.
  bool Failed();

 private:
  bool ReadAck(bool wait);

  ChildProcess process_;
  int pipe_ = -1;
  std::uint64_t acknowledged_ = 0;
  bool ended_ = false;  // nothing comes out of the pipe any more
};

}  // namespace rhizome::testing
