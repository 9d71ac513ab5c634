#pragma once

namespace rhizome::inline internal {

/// Waits 10 ms, so that a writer that is in a reader's way can go on.
/// Threads: any.
void PauseForWriter();

/// Makes PauseForWriter return at once from now on, in the whole process. For tests that try
/// thousands of damaged or failing disks and have no writer that could go on.
void PauseNoMore();

}  // namespace rhizome::inline internal
