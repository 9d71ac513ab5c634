#pragma once

#include <functional>

#include "rhizome/storage/status.h"

namespace rhizome {

/// Runs `work` on a thread of its own, and waits for it. That thread, and those that it starts,
/// yield the processors to all others of the machine, and the disk as far as its scheduler knows
/// priorities: for work beside which something else must stay quick. (An unprivileged thread cannot
/// raise its own priority again, so the caller's stays as it is.)
Status RunInBackground(const std::function<Status()>& work);

/// Is this the thread of a RunInBackground?
bool InBackground();

}  // namespace rhizome
