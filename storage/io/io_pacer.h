#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "rhizome/storage/mutex.h"

namespace rhizome::inline internal {

/// Lets the reads and writes of work in the background give way to commits on the same disk. While
/// somebody commits, or did a moment ago, all of that work together has one small piece in flight:
/// a commit waits for that piece at most. Otherwise nothing is held back. Every turn moves a piece,
/// so the work ends however many commits there are.
/// Threads: any. Ownership: outlives what it is given to; a null pointer stands for no pacing.
class IoPacer {
 public:
  /// What a piece may have while somebody commits: most disks read it at nearly their full rate
  /// even one at a time, and in less time than a commit's sync takes.
  static constexpr std::size_t kPieceBytes = std::size_t{128} << 10;

  /// `linger`: for how long after a commit the next one is expected.
  explicit IoPacer(std::chrono::nanoseconds linger = std::chrono::milliseconds(100))
      : linger_(linger) {}

  /// Held while a commit is under way.
  class Commit {
   public:
    explicit Commit(IoPacer& pacer) : pacer_(pacer) { pacer_.commits_.fetch_add(1); }
    ~Commit();
    Commit(const Commit&) = delete;
    Commit& operator=(const Commit&) = delete;

   private:
    IoPacer& pacer_;
  };

  /// Does somebody commit?
  bool busy() const;

  /// Held by work in the background while it reads or writes a piece; waits for others' turns if
  /// somebody commits.
  class Turn {
   public:
    explicit Turn(IoPacer* pacer) RHIZOME_THREAD_ATTRIBUTE(no_thread_safety_analysis);
    ~Turn() RHIZOME_THREAD_ATTRIBUTE(no_thread_safety_analysis);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    IoPacer* held_ = nullptr;
  };

 private:
  const std::chrono::nanoseconds linger_;
  std::atomic<std::uint32_t> commits_{0};  // under way
  std::atomic<std::int64_t> last_{0};      // when one ended, in the steady clock's ticks; 0: never
  Mutex turn_;
};

/// How much to read or write in one turn, of at most `most`.
inline std::size_t PieceBytes(const IoPacer* pacer, std::size_t most) {
  return pacer != nullptr && pacer->busy() && most > IoPacer::kPieceBytes ? IoPacer::kPieceBytes
                                                                          : most;
}

}  // namespace rhizome::inline internal
