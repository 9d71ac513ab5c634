#pragma once

#include <cstddef>

namespace rhizome {

/// Returns the number of rows of `kept_row_bytes` bytes that are read at once ahead of a
/// superbatch. If a policy lists the prefill keys that are read (Policy::PrefillReads), all of them
/// are read in order in pieces of this many rows, except for the last piece. The requests to other
/// ranks are then the same in each run.
std::size_t PrefillPiece(std::size_t kept_row_bytes);

}  // namespace rhizome
