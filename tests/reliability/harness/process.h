#pragma once

#include <functional>

namespace rhizome::testing {

/// Prepares this process for many thousand small stores: memory that was taken is kept; and
/// io_uring is forbidden, as containers do, so that reads go through pread. The files of a fake
/// disk are read that way anyhow, and to make and take down rings would take most of the time.
void PrepareProcess();

/// Calls `work` in one thread for each processor, and returns when all have. Each keeps to its
/// processor with all threads that the library makes there: those of thousands of small stores
/// would wait for each other otherwise.
void OnAllProcessors(const std::function<void()>& work);

}  // namespace rhizome::testing
