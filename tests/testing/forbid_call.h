#pragma once

namespace rhizome::testing {

/// From now on the system refuses call `number` (SYS_...) to this thread, and those that it starts,
/// with `error`, as sandboxes and older systems do. False: it has no seccomp.
bool ForbidCall(unsigned number, unsigned error);

}  // namespace rhizome::testing
