#pragma once

namespace rhizome {
inline namespace internal {

/// Waits 10 ms, to let a writer finish that blocks a reader. Threads: any.
void PauseForWriter();

/// Makes PauseForWriter return immediately from now on, in the whole process. For tests that try
/// thousands of damaged or failing disks and have no writer to wait for.
void PauseNoMore();

}  // namespace internal
}  // namespace rhizome
