#pragma once

#include <functional>

namespace rhizome::testing {

/// Prepares this process for many thousands of small stores: freed memory is kept, and io_uring is
/// forbidden, as in containers, so that reads use pread. Files of a fake disk are read this way
/// anyway, and creating and destroying rings would take most of the time.
void PrepareProcess();

/// Calls `work` in one thread for each CPU, and returns when all have returned. Each thread is
/// bound to its CPU, together with all threads that the library starts there; otherwise the threads
/// of thousands of small stores would wait for each other.
void OnAllProcessors(const std::function<void()>& work);

}  // namespace rhizome::testing
