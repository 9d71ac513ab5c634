#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "storage/base/mutex.h"

namespace rhizome {
inline namespace internal {

/// Makes background reads and writes yield to commits on the same disk. During a commit and for a
/// short time after it, all background work together has at most one small piece in flight, so a
/// commit waits for at most one piece. Otherwise nothing is delayed. Every turn transfers a piece,
/// so background work completes even under a continuous stream of commits.
/// Threads: any. Ownership: must outlive its users; a null pointer means no pacing.
class IoPacer {
 public:
  /// Size of a piece while a commit is running. Most disks read pieces of this size at nearly their
  /// full rate even one at a time, and each takes less time than a commit's fsync.
  static constexpr std::size_t kPieceBytes = std::size_t{128} << 10;

  /// `linger` is the time after a commit during which the next one is expected.
  explicit IoPacer(std::chrono::nanoseconds linger = std::chrono::milliseconds(100))
      : linger_(linger) {}

  /// Held while a commit is running.
  class Commit {
   public:
    explicit Commit(IoPacer& pacer) : pacer_(pacer) { pacer_.commits_.fetch_add(1); }
    ~Commit();
    Commit(const Commit&) = delete;
    Commit& operator=(const Commit&) = delete;

   private:
    IoPacer& pacer_;
  };

  /// Returns whether a commit is running, or ended less than `linger` ago.
  bool busy() const;

  /// Held by background work while it reads or writes a piece. If the pacer is busy, the
  /// constructor waits until no other turn is held.
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
  std::atomic<std::uint32_t> commits_{0};  // commits that are running
  std::atomic<std::int64_t> last_{0};      // end of the last commit, steady-clock ticks; 0: none
  Mutex turn_;
};

/// Returns the number of bytes to read or write in one turn, at most `most`.
inline std::size_t PieceBytes(const IoPacer* pacer, std::size_t most) {
  return pacer != nullptr && pacer->busy() && most > IoPacer::kPieceBytes ? IoPacer::kPieceBytes
                                                                          : most;
}

}  // namespace internal
}  // namespace rhizome
