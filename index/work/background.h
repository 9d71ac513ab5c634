#pragma once

#include <functional>

#include "rhizome/storage/export.h"
#include "rhizome/storage/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// Runs `work` on a thread of its own, and waits for it. That thread, and those that it starts,
/// yield the processors to all others of the machine, and the disk as far as its scheduler knows
/// priorities: for work beside which something else must stay quick. (An unprivileged thread cannot
/// raise its own priority again, so the caller's stays as it is.) What `work` throws is an error.
/// Errors: those of `work`; kOutOfMemory, the system gives no thread.
Status RunInBackground(const std::function<Status()>& work);

/// Is this the thread of a RunInBackground?
bool InBackground();

/// Must parallel loops here leave the process's pool of threads (oneTBB) alone? In the background,
/// and in a fork of a process that had one: its threads did not come along.
bool NeedsOwnThreads();

}  // namespace internal
}  // namespace rhizome
