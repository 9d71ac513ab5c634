#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "index/generation/id_spool.h"
#include "index/generation/key_sorter.h"
#include "index/generation/spill.h"
#include "index/ids/spilled_ids.h"
#include "rhizome/job_control.h"

namespace rhizome {
inline namespace internal {

/// Number of edges in a block of the spilled ends.
inline constexpr std::size_t kSpilledBlockEdges = std::size_t{1} << 15;

/// Returns the error for `vertices` vertices that need `needed` bytes when the budget is `budget`.
Status TooManyVertices(std::uint64_t vertices, std::uint64_t needed, std::uint64_t budget);

/// Numbers the keys of SpilledIds by an external sort of all keys with their positions. Nodes have
/// the positions 0..n-1; edge e has n + 2e and n + 2e + 1. Equal keys form a group; groups are
/// numbered in order of their first positions. Memory: see SpilledIds.
/// Threads: one at a time.
class SpilledIdEncoder {
 public:
  using Vertices = SpilledIds::Vertices;

  SpilledIdEncoder(SpillSpace& space, std::uint64_t memory_bytes, std::uint64_t nodes,
                   std::uint64_t edges, bool strings, const JobControl& control)
      : space_(space),
        memory_bytes_(memory_bytes),
        nodes_(nodes),
        edges_(edges),
        strings_(strings),
        control_(control),
        sorter_(space, memory_bytes / 2) {}

  /// Add the keys in order of position.
  Status Add(std::string_view text) { return sorter_.AddString(text, position_++); }
  Status Add(std::int64_t id) { return sorter_.AddInteger(id, position_++); }
  Status AddEither(std::int64_t id) {
    return strings_ ? Add(std::string_view(fmt::format_int(id).str())) : Add(id);
  }
  std::uint64_t position() const { return position_; }

  /// Fills `vertices`.
  /// Errors: kOutOfMemory, too many vertices for the memory; any error of spilling.
  Status Encode(Vertices& vertices);

 private:
  /// A position within a bucket, and the group of its key. Groups ascend with their keys.
  struct Placed {
    std::uint32_t place;
    std::uint32_t group;
  };

  std::uint64_t BucketPositions() const {
    return std::clamp<std::uint64_t>(memory_bytes_ / 4 / sizeof(std::uint32_t), 4096, 1 << 30);
  }
  std::uint64_t Positions() const { return nodes_ + 2 * edges_; }
  std::size_t BucketCount() const {
    return static_cast<std::size_t>(Positions() / BucketPositions() + 1);
  }
  Status MakeBuckets();
  Status Take(std::string_view key, std::span<const std::uint64_t> positions, bool is_new);
  Status NumberGroups(Vertices& vertices);
  Status ReadBucket(std::size_t bucket, std::vector<std::uint32_t>& groups);
  Result<SpillFile> WriteNumbers() const;

  SpillSpace& space_;
  const std::uint64_t memory_bytes_;
  const std::uint64_t nodes_;
  const std::uint64_t edges_;
  const bool strings_;
  const JobControl& control_;
  KeySorter sorter_;
  std::uint64_t position_ = 0;

  std::vector<SpillWriter> buckets_;   // of positions
  std::optional<IdSpoolWriter> ids_;   // by group
  std::uint64_t groups_ = 0;           // number of distinct keys so far
  std::vector<std::uint32_t> number_;  // by group
  std::uint64_t positions_done_ = 0;
};

}  // namespace internal
}  // namespace rhizome
