#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rhizome/status.h"

namespace rhizome::testing {

/// An input that requests far more than its size from a reader: sizes that no file has, streams
/// that expand, endless nesting.
struct Bomb {
  std::string name;

  /// Bytes that the reader may allocate because the input honestly declares them (a chunk); 0:
  /// none.
  std::uint64_t declared_bytes = 0;

  /// Passes the input to its reader, which must refuse it. Runs in a child process.
  std::function<Status()> read;
};

/// Returns all inputs. Large ones are generated when they are read.
std::vector<Bomb> AllBombs();

/// The result of reading one input.
struct BombOutcome {
  bool ended = false;  ///< the process exited normally; otherwise the rest is unset
  Status status;
  std::uint64_t grown_bytes = 0;  ///< growth of its peak resident memory
  double processor_seconds = 0;
};

/// Reads an input in a process that may use 1 GiB of addresses and half a minute of CPU time.
BombOutcome Explode(const Bomb& bomb);

}  // namespace rhizome::testing
