#pragma once

#include <cstdint>

namespace rhizome::testing {

/// Lets allocations of this thread, or of all threads, fail that the library asks for itself
/// (operator new called from librhizome.so), as std::bad_alloc, from the `fail_at`-th on (counted
/// from 0): one of them, or all of them if `sticky`. Passed over are those with RocksDB or oneTBB
/// on the stack, which are not made for it. Of those of all threads there is one at a time.
class AllocationFaults {
 public:
  enum class Of : std::uint8_t { kThisThread, kAllThreads };
  AllocationFaults(std::uint64_t fail_at, bool sticky, Of of = Of::kThisThread);
  ~AllocationFaults();
  AllocationFaults(const AllocationFaults&) = delete;
  AllocationFaults& operator=(const AllocationFaults&) = delete;

  /// The library's allocations so far, and how many of them failed.
  std::uint64_t asked() const;
  std::uint64_t failed() const;

 private:
  const Of of_;
};

/// Is the library on the stack, and neither RocksDB nor oneTBB?
bool IsOfTheLibrary();

}  // namespace rhizome::testing
