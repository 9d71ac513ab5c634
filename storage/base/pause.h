#pragma once

namespace rhizome::inline internal {

/// Waits a moment (10 ms), in which a writer that is in a reader's way goes on. Private.
/// Threads: any.
void PauseForWriter();

/// For tests without a writer that could go on, but with thousands of damaged or failing disks:
/// from now on PauseForWriter returns at once, in all of this process.
void PauseNoMore();

}  // namespace rhizome::inline internal
