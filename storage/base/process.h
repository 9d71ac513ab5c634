#pragma once

#include <sys/types.h>

#include <cstdint>
#include <list>
#include <string_view>

#include "rhizome/storage/export.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/status.h"

namespace RHIZOME_API rhizome {

// Of forked children. A child may read what is in memory, and open a store to read it. It ends by
// _exit(), by exec or by exit(): RocksDB and oneTBB have threads of their own in a process that has
// a store open, and would wait for them in a child, too, so that exit() does there what was
// registered for it (atexit, destructors of static objects) since a store was first opened for
// writing, or all of it where none was open at the fork; it flushes the standard streams, and then
// the process ends.

/// How many forks lie between this process and the one that loaded the library. As cheap as a load,
/// where getpid is a system call. Threads: any.
std::uint64_t ForkCount();

/// Notes which process made something that a fork leaves behind or shares with its parent: a ring,
/// threads, a database. Whoever has one asks before each use, and leaves what is not of this
/// process alone, also when it is destroyed. Threads: any.
class OwnerProcess {
 public:
  OwnerProcess();
  bool here() const { return forks_ == ForkCount(); }

  /// Errors: kInvalidArgument, this is a fork. `what`: such as "the catalogue 'g.rz/catalog'".
  Status Check(std::string_view what) const;

 private:
  std::uint64_t forks_;
  pid_t pid_;
};

/// A Mutex that a forked child may use although another thread of the parent had it at that moment:
/// a fork waits for it. For what is in memory, which a child goes on reading. It is held for
/// moments only, and never while another one of these is locked or made.
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
