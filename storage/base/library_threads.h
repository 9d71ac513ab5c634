#pragma once

#include "rhizome/storage/process.h"

namespace rhizome::inline internal {

/// Is held while a library (RocksDB, oneTBB) has threads in this process that it waits for, or
/// releases, when the process ends. A forked child has none of these threads: there the library
/// would wait for ever, or read freed memory. So a child that was forked meanwhile and calls exit()
/// runs only the exit handlers (atexit, destructors of static objects) that were registered after
/// the library's, flushes the standard streams and ends. Threads: any.
class LibraryThreads {
 public:
  LibraryThreads();
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

  /// Returns whether this is the process that has the threads.
  bool here() const { return process_.here(); }

  /// Must be called after the first use of a library that waits for its threads in the destructor
  /// of a static object, which it makes at that first use. A forked child then leaves out all exit
  /// handlers that were registered before. A library that waits when it is unloaded needs no call.
  static void AreAwaitedFromNowOn();

 private:
  const OwnerProcess process_;
};

}  // namespace rhizome::inline internal
