#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/cache/pass_lists.h"
#include "rhizome/storage/export.h"

namespace RHIZOME_API rhizome {

// The layout of a pass: in which order a worker computes its targets, and where the rows that it
// works on stand, which decides how many chunks each block of targets reads. GLISP (section III-D)
// takes one, PDS; none is best everywhere, so they are counted (cache/pass_cost.h).

/// The order of a worker's targets.
enum class TargetOrder : std::uint8_t {
  kStored,   ///< as rows stand in the store
  kNatural,  ///< by vertex id
  kRandom,   ///< shuffled
  kPds,      ///< by (owner, degree descending)
  kBfs,      ///< breadth first through the worker's lists
};

/// The order of the rows that a worker works on.
enum class RowRule : std::uint8_t {
  kStored,
  kNatural,
  kRandom,
  kPds,
  kBfs,
  kFirstUse,    ///< as the targets, in their order, first read them
  kReferences,  ///< by how many of the worker's targets read them; those read once by first use
  kBlockCount,  ///< by how many blocks of targets read them; then by first use
  kBlocks,      ///< by which blocks of targets read them, those that few rows share first; rows of
                ///< one block behind all others (ours: half of the requests of kReferences)
};

/// One candidate. Its name: the two orders, rows first ("references/bfs"), or one if they are
/// equal.
struct LayoutRule {
  RowRule rows = RowRule::kStored;
  TargetOrder targets = TargetOrder::kStored;
  friend bool operator==(const LayoutRule&, const LayoutRule&) = default;
};
std::string LayoutName(const LayoutRule& rule);
std::optional<LayoutRule> ParseLayout(std::string_view name);

/// What is worth counting: the stored order and natural ids, PDS, BFS, and the mixes of each order
/// of targets with rows by references, blocks and first use.
std::vector<LayoutRule> CandidateLayouts();

/// A layout as it came out for a worker.
struct PassLayout {
  std::vector<std::uint32_t> order;     ///< [targets]: which target is computed when
  std::vector<std::uint32_t> position;  ///< [locals]: where a local row stands; a permutation
};

/// `block_rows`: targets of a block, for kBlocks. Deterministic, on one thread; `seed` for kRandom.
/// O(edges + rows log rows).
PassLayout LayOut(const PassLists& lists, const LayoutRule& rule, std::uint64_t block_rows,
                  std::uint64_t seed = 1);

}  // namespace rhizome
