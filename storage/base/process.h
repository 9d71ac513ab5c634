#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <string_view>

#include "rhizome/export.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"

namespace RHIZOME_API rhizome {

// Rules for forked children. A child may read data that is in memory, and may open a store to read
// it. It may end by _exit(), exec or exit(). In a process that has a store open, RocksDB and oneTBB
// have threads, and a forked child would wait for threads that it does not have. So exit() in such
// a child runs only the handlers (atexit, destructors of static objects) that were registered since
// a store was first opened for writing, or all of them if no store was open at the time of the
// fork. Then it flushes the standard streams and ends the process.

/// Returns the number of forks between this process and the one that loaded the library. This is a
/// memory load, whereas getpid is a system call. Threads: any.
std::uint64_t ForkCount();

/// Records which process created a resource that a fork either loses or shares with its parent: a
/// ring, threads, a database. The owner of the resource checks it before each use, and never
/// touches a resource of another process, not even in its destructor. Threads: any.
class OwnerProcess {
 public:
  OwnerProcess();
  bool here() const { return forks_ == ForkCount(); }

  /// Errors: kInvalidArgument, this process is a fork. `what` names the resource in the message,
  /// such as "the catalogue 'g.rz/catalog'".
  Status Check(std::string_view what) const;

 private:
  std::uint64_t forks_;
  pid_t pid_;
};

/// A Mutex that remains usable in a forked child even if another thread of the parent held it: a
/// fork waits until it is free. It guards in-memory data that a child continues to read. Rules:
/// hold it only briefly, and neither lock nor create another ForkMutex while holding it.
class ForkMutex : public Mutex {
 public:
  ForkMutex();
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

 private:
  std::list<ForkMutex*>::iterator place_;
};

}  // namespace rhizome
