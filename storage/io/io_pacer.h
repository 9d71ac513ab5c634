#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "rhizome/storage/mutex.h"

namespace rhizome::inline internal {

/// Makes background reads and writes give way to commits on the same disk. While a commit is under
/// way, or ended a moment ago, all background work together has one small piece in flight, so a
/// commit waits for one piece at most. Otherwise nothing is held back. Every turn moves a piece, so
/// the background work ends however many commits there are.
/// Threads: any. Ownership: outlives what it is given to; a null pointer stands for no pacing.
class IoPacer {
 public:
  /// The size of a piece while somebody commits. Most disks read such pieces at nearly their full
  /// rate even one at a time, and each in less time than a commit's fsync takes.
  static constexpr std::size_t kPieceBytes = std::size_t{128} << 10;

  /// `linger` is the time after a commit for which the next one is expected.
  explicit IoPacer(std::chrono::nanoseconds linger = std::chrono::milliseconds(100))
      : linger_(linger) {}

  /// Is held while a commit is under way.
  class Commit {
   public:
    explicit Commit(IoPacer& pacer) : pacer_(pacer) { pacer_.commits_.fetch_add(1); }
    ~Commit();
    Commit(const Commit&) = delete;
    Commit& operator=(const Commit&) = delete;

   private:
    IoPacer& pacer_;
  };

  /// Returns whether a commit is under way, or ended less than `linger` ago.
  bool busy() const;

  /// Is held by background work while it reads or writes a piece. If the pacer is busy, it waits
  /// until no other turn is held.
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

/// Returns how much to read or write in one turn, at most `most`.
inline std::size_t PieceBytes(const IoPacer* pacer, std::size_t most) {
  return pacer != nullptr && pacer->busy() && most > IoPacer::kPieceBytes ? IoPacer::kPieceBytes
                                                                          : most;
}

}  // namespace rhizome::inline internal
