#pragma once

#include <cstdint>
#include <vector>

#include "rhizome/cache/pass_sequence.h"

namespace rhizome::inline internal {

/// A chunk that leaves memory; `write`: it is nowhere else and is needed, so it is written first.
struct LeavingChunk {
  ArrayId array = 0;
  std::uint32_t chunk = 0;
  bool write = false;
};

/// Decides which chunks stay in memory, access by access. It does no I/O: whoever runs the passes
/// asks it, and moves what it says; whoever counts bytes asks it too (CountSpill), so that both
/// agree. The accesses of a pass are those of PlannedSpill, in their order.
/// Threads: one at a time.
class SpillPolicy {
 public:
  virtual ~SpillPolicy() = default;

  /// Begins pass `pass`, in order from 0. What is in `leaves` afterwards leaves memory before the
  /// sums of the pass take room. Appends.
  virtual void Begin(std::size_t pass, std::vector<LeavingChunk>& leaves) = 0;

  /// Says what to do with a chunk that is read or made now. A chunk that was in memory and does not
  /// stay stands in `leaves` too if it has to be written.
  struct Verdict {
    bool hit = false;    ///< read: it is in memory. Else it comes from the slow tier
    bool keep = false;   ///< it is in memory afterwards
    bool write = false;  ///< made: it goes to the slow tier now
  };
  virtual Verdict Read(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) = 0;
  virtual Verdict Made(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) = 0;

  /// Ends the pass.
  virtual void End(std::vector<LeavingChunk>& leaves) = 0;
};

}  // namespace rhizome::inline internal
