#pragma once

#include "storage/base/process.h"

namespace rhizome {
inline namespace internal {

/// Held while a library (RocksDB, oneTBB) has threads in this process that it joins or releases at
/// the end of the process. A forked child has none of these threads: there the library would wait
/// forever or read freed memory. So a child that was forked while this object existed, and calls
/// exit(), runs only the exit handlers (atexit, destructors of static objects) that were registered
/// after the library's handlers; then it flushes the standard streams and ends. Threads: any.
class LibraryThreads {
 public:
  LibraryThreads();
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

  /// Returns whether the threads belong to this process, and not to its parent.
  bool here() const { return process_.here(); }

  /// Must be called after the first use of a library that waits for its threads in the destructor
  /// of a static object, which it creates at that first use. A forked child then skips all exit
  /// handlers that were registered before this call. A library that waits when it is unloaded needs
  /// no call.
  static void AreAwaitedFromNowOn();

 private:
  const OwnerProcess process_;
};

}  // namespace internal
}  // namespace rhizome
