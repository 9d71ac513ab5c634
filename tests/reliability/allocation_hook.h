#pragma once

#include <cstdint>

namespace rhizome::testing {

/// Lets allocations of this thread fail that the library asks for itself (operator new called from
/// librhizome.so), as std::bad_alloc, from the `fail_at`-th on (counted from 0): one of them, or
/// all of them if `sticky`. Passed over are those with RocksDB or oneTBB on the stack, which are
/// not made for it.
class AllocationFaults {
 public:
  AllocationFaults(std::uint64_t fail_at, bool sticky);
  ~AllocationFaults();
  AllocationFaults(const AllocationFaults&) = delete;
  AllocationFaults& operator=(const AllocationFaults&) = delete;

  /// The library's allocations in this thread so far, and how many of them failed.
  std::uint64_t asked() const;
  std::uint64_t failed() const;
};

}  // namespace rhizome::testing
