#pragma once

#include <functional>

#include "rhizome/export.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Runs `work` on a new thread and waits for it. That thread, and every thread that it starts, has
/// low processor priority, and low disk priority if the I/O scheduler supports priorities. Use it
/// for work that must not slow down foreground requests. (The caller's own thread keeps its
/// priority, because an unprivileged thread cannot raise its priority again.) An exception from
/// `work` becomes an error.
/// Errors: any error of `work`; kOutOfMemory, the system cannot start a thread.
Status RunInBackground(const std::function<Status()>& work);

/// Returns whether the calling thread is the thread of a RunInBackground call.
bool InBackground();

/// Returns whether parallel loops must not use the process's thread pool (oneTBB): in the
/// background, and in a forked child whose parent had a pool, because threads do not survive a
/// fork.
bool NeedsOwnThreads();

}  // namespace internal
}  // namespace rhizome
