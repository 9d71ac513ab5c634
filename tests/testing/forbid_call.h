#pragma once

namespace rhizome::testing {

/// Makes the system refuse call `number` (SYS_...) with `error` to this thread and those that it
/// starts, as sandboxes and older systems do. Returns false if the system has no seccomp.
bool ForbidCall(unsigned number, unsigned error);

}  // namespace rhizome::testing
