#pragma once

#include <cstdint>

#include "rhizome/storage/file_system.h"
#include "rhizome/storage/status.h"
#include "testing/child_process.h"

namespace rhizome::testing {

/// Processes of their own that write to and read a real store, to be killed or cut off.
///
/// The writer writes the commits of live_model.h, every third without sync, and compacts after
/// every seventh; it says over a pipe which commits are durable. The writer of arrays besides adds
/// those of live_arrays.h, each of which is durable where a later commit is. The reader looks again
/// and again, and ends with an error as soon as what it sees is not what the first m commits make
/// for some m, or m is less than it was. The verifier verifies again and again, and ends with an
/// error as soon as that finds damage. Both say how often they have done it.

/// Makes the store that they begin with.
Status MakeLiveStore(const Path& path);

/// How many commits the store holds. Errors: kCorruption, it is not just what these make; those of
/// opening and reading.
Result<std::uint64_t> CountCommits(const Path& path);

/// Verifies a store that no other process has open for writing: no damage. With an open for writing
/// before, as the next writer has.
Status CheckAfterwards(const Path& path);

/// Writes so many commits, and compares after each, with nobody in its way. Errors: kCorruption.
Status CheckUndisturbed(const Path& path, std::uint64_t commits);

/// A child process. Destroying it kills it.
class LiveProcess {
 public:
  enum class Role : std::uint8_t { kWriter, kArrayWriter, kReader, kVerifier };

  /// Runs this very binary again, in that role (RunRoleIfAsked).
  LiveProcess(Role role, const Path& path);
  ~LiveProcess();
  LiveProcess(LiveProcess&&) = delete;

  /// Waits until the writer has said that `count` commits of its own are durable, or ended. What it
  /// said so far: commits up to this number must be found afterwards.
  std::uint64_t WaitForAcks(std::uint64_t count);

  /// What was said up to now.
  std::uint64_t acknowledged();

  void Kill() { process_.Kill(); }

  /// Has it ended by itself? None does without an error.
  bool Failed();

 private:
  bool ReadAck(bool wait);

  ChildProcess process_;
  int pipe_ = -1;
  std::uint64_t acknowledged_ = 0;
  bool ended_ = false;  // nothing comes out of the pipe any more
};

}  // namespace rhizome::testing
