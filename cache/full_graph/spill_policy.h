#pragma once

#include <cstdint>
#include <vector>

#include "cache/full_graph/pass_sequence.h"

namespace rhizome {
inline namespace internal {

/// A chunk that leaves memory. `write`: it must be written first, because it is needed and exists
/// nowhere else.
struct LeavingChunk {
  ArrayId array = 0;
  std::uint32_t chunk = 0;
  bool write = false;
};

/// Decides which chunks remain in memory, access by access. It does no I/O. The code that runs the
/// passes moves chunks as the policy decides, and CountSpill counts bytes with the same policy, so
/// that both agree. The accesses of a pass must match PlannedSpill::Accesses.
/// Threads: not thread-safe.
class SpillPolicy {
 public:
  virtual ~SpillPolicy() = default;

  /// Begins pass `pass`, in order from 0. Appends to `leaves` the chunks that leave memory before
  /// the sums of the pass are allocated.
  virtual void Begin(std::size_t pass, std::vector<LeavingChunk>& leaves) = 0;

  /// Decides about a chunk that is being read or was just computed. If a chunk was in memory and is
  /// not kept, it is also appended to `leaves` if it must be written.
  struct Verdict {
    bool hit = false;    ///< reads: it is in memory; else it comes from the slow tier
    bool keep = false;   ///< it is in memory afterwards
    bool write = false;  ///< computed chunks: it is written to the slow tier now
  };
  virtual Verdict Read(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) = 0;
  virtual Verdict Made(ArrayId array, std::uint32_t chunk, std::vector<LeavingChunk>& leaves) = 0;

  /// Ends the pass.
  virtual void End(std::vector<LeavingChunk>& leaves) = 0;
};

}  // namespace internal
}  // namespace rhizome
