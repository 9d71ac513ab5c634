#pragma once

namespace rhizome::testing {

/// Makes the system call `number` (SYS_...) fail with `error` in this thread and in threads that it
/// starts, as in sandboxes and older systems. Returns false if the system has no seccomp.
bool ForbidCall(unsigned number, unsigned error);

}  // namespace rhizome::testing
