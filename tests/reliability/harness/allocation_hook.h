#pragma once

#include <cstdint>

namespace rhizome::testing {

/// Makes allocations of this thread, or of all threads, throw std::bad_alloc if the library itself
/// requests them (operator new called from its code): the `fail_at`-th, counted from 0, and all
/// later ones if `sticky`. Allocations with RocksDB or oneTBB on the stack do not fail, because
/// these libraries cannot handle it. With kRocksDb, the allocations of this thread that have
/// RocksDB on the stack fail instead, RocksDB's own and the engine's. Only one object for all
/// threads may exist at a time.
class AllocationFaults {
 public:
  enum class Of : std::uint8_t { kThisThread, kAllThreads, kRocksDb };
  AllocationFaults(std::uint64_t fail_at, bool sticky, Of of = Of::kThisThread);
  ~AllocationFaults();
  AllocationFaults(const AllocationFaults&) = delete;
  AllocationFaults& operator=(const AllocationFaults&) = delete;

  /// Number of these allocations so far, and how many of them failed.
  std::uint64_t asked() const;
  std::uint64_t failed() const;

 private:
  const Of of_;
};

/// Returns whether the library is on the stack, and neither RocksDB nor oneTBB is.
bool IsOfTheLibrary();

}  // namespace rhizome::testing
