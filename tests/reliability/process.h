#pragma once

namespace rhizome::testing {

/// Prepares this process for many thousand small stores: memory that was taken is kept; and
/// io_uring is forbidden, as containers do, so that reads go through pread. The files of a fake
/// disk are read that way anyhow, and to make and take down rings would take most of the time.
void PrepareProcess();

}  // namespace rhizome::testing
