#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/status.h"

namespace RHIZOME_API rhizome {

// Rules for forked children. A child may read data that is in memory, and open a store to read it.
// It may end by _exit(), by exec or by exit(). RocksDB and oneTBB have threads in a process that
// has a store open, and would wait for them in a child too; so exit() in a child runs only the
// handlers (atexit, destructors of static objects) that were registered since a store was first
// opened for writing, or all of them if no store was open at the fork. Then it flushes the standard
// streams and ends the process.

/// Returns how many forks lie between this process and the one that loaded the library. It costs a
/// load, while getpid is a system call. Threads: any.
std::uint64_t ForkCount();

/// Records which process made a resource that a fork leaves behind or shares with its parent: a
/// ring, threads, a database. The owner of the resource asks before each use, and does not touch a
/// resource of another process, not even in its destructor. Threads: any.
class OwnerProcess {
 public:
  OwnerProcess();
  bool here() const { return forks_ == ForkCount(); }

  /// Errors: kInvalidArgument, this is a fork. `what` names the resource in the message, such as
  /// "the catalogue 'g.rz/catalog'".
  Status Check(std::string_view what) const;

 private:
  std::uint64_t forks_;
  pid_t pid_;
};

/// A Mutex that a forked child may use even if another thread of the parent uses it: a fork waits
/// until it is free. It guards data in memory that a child goes on reading. Rules: hold it for
/// moments only, and neither lock nor make another ForkMutex meanwhile.
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
