#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/layout/pass_lists.h"
#include "rhizome/export.h"
#include "rhizome/neighbor_sampling.h"

namespace RHIZOME_API rhizome {

// The layout of a pass consists of the order in which a worker computes its targets and the order
// of the rows that it reads and writes. Together they determine how many chunks each block of
// targets reads. GLISP (section III-D) always uses PDS. No layout is best for every graph, so the
// candidates are counted (cache/layout/pass_cost.h).

/// The order in which a worker computes its targets.
enum class TargetOrder : std::uint8_t {
  kStored,   ///< in the order of the store
  kNatural,  ///< by vertex id
  kRandom,   ///< shuffled
  kPds,      ///< by (owner, degree descending)
  kBfs,      ///< breadth first through the worker's lists
};

/// A candidate layout. Its name consists of the two orders, rows first ("references/bfs"), or of
/// one name if they are equal.
struct LayoutRule {
  RowRule rows = RowRule::kStored;
  TargetOrder targets = TargetOrder::kStored;
  friend bool operator==(const LayoutRule&, const LayoutRule&) = default;
};
std::string LayoutName(const LayoutRule& rule);
std::optional<LayoutRule> ParseLayout(std::string_view name);

/// Returns the layouts worth counting: stored order, natural ids, PDS, BFS, and each target order
/// combined with rows by first use, references, block count and blocks.
std::vector<LayoutRule> CandidateLayouts();

/// The layout of one worker's pass.
struct PassLayout {
  /// [targets]: indexes of targets, in the order of computation
  std::vector<std::uint32_t> order;
  std::vector<std::uint32_t> position;  ///< [locals]: position of each local row; a permutation
};

/// Lays out a pass. `block_rows` is the number of targets in a block, for kBlockCount and kBlocks;
/// `seed` is used by kRandom. Deterministic and single-threaded. Time O(edges + rows log rows).
PassLayout LayOut(const PassLists& lists, const LayoutRule& rule, std::uint64_t block_rows,
                  std::uint64_t seed = 1);

}  // namespace rhizome
