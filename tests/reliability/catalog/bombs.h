#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rhizome/storage/status.h"

namespace rhizome::testing {

/// An input that asks a reader for far more than its size: sizes that no file has, streams that
/// expand, endless nesting.
struct Bomb {
  std::string name;

  /// Bytes that the reader may allocate for what the input honestly declares (a chunk); 0: none.
  std::uint64_t declared_bytes = 0;

  /// Passes the input to its reader, which must refuse it. Runs in a process of its own.
  std::function<Status()> read;
};

/// Returns all inputs, made by hand; the large ones are written when they are read.
std::vector<Bomb> AllBombs();

/// The outcome of reading one input.
struct BombOutcome {
  bool ended = false;  ///< the process came back, with the rest:
  Status status;
  std::uint64_t grown_bytes = 0;  ///< of its peak resident memory
  double processor_seconds = 0;
};

/// Reads an input in a process that may address 1 GiB and compute for half a minute.
BombOutcome Explode(const Bomb& bomb);

}  // namespace rhizome::testing
