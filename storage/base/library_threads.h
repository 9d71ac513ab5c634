#pragma once

#include "rhizome/storage/process.h"

namespace rhizome::inline internal {

/// Held while a library (RocksDB, oneTBB) has threads that are the process's, and that it waits
/// for, or lets go, when the process ends. A forked child has none of them: there it would wait for
/// ever, or read where nothing is. A child that was forked meanwhile and ends by exit() does what
/// was registered for that (atexit, destructors of static objects) up to what the library
/// registered, flushes the standard streams and ends. Threads: any.
class LibraryThreads {
 public:
  LibraryThreads();
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

  /// Is this the process that has the threads?
  bool here() const { return process_.here(); }

  /// A library that waits for its threads in a destructor of a static object which it makes when it
  /// is first used: to be called once it has. What was registered for the end of the process before
  /// that is left out in such a child. Where it waits when the library is unloaded nothing is.
  static void AreAwaitedFromNowOn();

 private:
  const OwnerProcess process_;
};

}  // namespace rhizome::inline internal
