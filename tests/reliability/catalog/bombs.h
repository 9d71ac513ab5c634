#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rhizome/storage/status.h"

namespace rhizome::testing {

/// An input that asks a reader for more than it is: sizes that no file has, streams that swell,
/// nesting without end.
struct Bomb {
  std::string name;

  /// Bytes that the reader may take for what the input honestly declares (a chunk); 0: none.
  std::uint64_t declared_bytes = 0;

  /// Hands it to its reader, which must refuse it. Runs in a process of its own.
  std::function<Status()> read;
};

/// All of them, made by hand; the large ones are written when they are read.
std::vector<Bomb> AllBombs();

/// What became of one.
struct BombOutcome {
  bool ended = false;  ///< the process came back, with the rest:
  Status status;
  std::uint64_t grown_bytes = 0;  ///< of its peak resident memory
  double processor_seconds = 0;
};

/// Reads one in a process that may address 1 GiB and compute for half a minute.
BombOutcome Explode(const Bomb& bomb);

}  // namespace rhizome::testing
