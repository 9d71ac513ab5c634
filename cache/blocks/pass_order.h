#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache/blocks/block_plan.h"
#include "cache/blocks/chunk_reader.h"
#include "cache/blocks/row_order.h"
#include "cache/layout/pass_layout.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_control.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// One pass of layerwise inference: its reads and its division into blocks. Used both for counting
/// and for running the pass.
struct PassReads {
  BlockPlannerOptions planner = {};
  ChunkReaderOptions reader = {};
  std::uint64_t source_chunk_bytes = 1;  ///< size of a decoded chunk
  std::uint64_t output_chunk_rows = 1;
  std::uint64_t block_rows = 1;
  std::uint64_t block_edges = ~std::uint64_t{0};
  std::uint64_t block_groups = ~std::uint64_t{0};
  std::uint64_t cache_chunks() const { return reader.cache_bytes / source_chunk_bytes; }
};

/// Returns the blocks of a pass that writes `rows` rows, without output chunks for which
/// done[chunk] is set.
std::vector<Block> BlocksOfPass(const PassReads& pass, std::uint64_t rows,
                                const std::vector<bool>& done);

/// Returns the number of chunks that a pass reads through its cache from disk, given the requests
/// `blocks` to a source of `chunks` chunks.
Result<std::uint64_t> CountPassReads(const PassReads& pass, Trace blocks, std::uint64_t chunks);

/// Returns the reads of a pass over all rows, with no chunk finished yet. Errors: as Sampler;
/// kInterrupted.
Result<BlockReads> PlanPassReads(const GraphSnapshot& graph, const PassReads& pass,
                                 std::uint64_t rows, const JobControl& control);

struct OrderOptions {
  PassReads maker;                   ///< the pass that computes the array, in its order
  PassReads reader;                  ///< the pass that reads it, with targets in stored order
  std::optional<RowRule> rule = {};  ///< absent: chosen by counting
  std::uint64_t memory_bytes = 0;    ///< limit on the memory of counting
};

/// The cost of an order for both passes: bytes of decoded chunks that miss the cache.
struct OrderCost {
  RowRule rule = RowRule::kStored;
  std::uint64_t maker_reads = 0;   ///< chunks
  std::uint64_t reader_reads = 0;  ///< chunks
  std::uint64_t bytes = 0;
  std::uint64_t min_bytes = 0;  ///< lower bound for any order, given the order of targets
};

struct OrderChoice {
  RowRule rule = RowRule::kStored;
  RowOrder order;
  std::vector<OrderCost> costs;  ///< costs of the counted orders, starting with the stored one

  /// Reads of both passes, if the stored order was chosen by counting.
  std::optional<BlockReads> maker;
  std::optional<BlockReads> reader;
};

/// Chooses the order of the rows in an array between two layers. Its rows are also computed in that
/// order. The array is written once in any order, so the choice depends on the bytes that both
/// passes read. The stored order is counted exactly. Others are counted only if the stored order
/// reads so much more than the distinct rows of each block that counting is worthwhile, and if
/// their lists fit into memory. The choice is never worse than the stored order.
/// Source: GLISP (section III-D) orders rows by PDS; the rules here are defined in
/// cache/layout/pass_layout.h.
/// Errors: kOutOfMemory, `rule` is given and memory does not suffice to lay it out; as Sampler;
/// kInterrupted.
Result<OrderChoice> ChooseOrder(const GraphSnapshot& graph, const OrderOptions& options,
                                const JobControl& control);

/// Returns the name of a rule ("stored", "references", ...), as in cache/layout/pass_layout.h.
std::string RowRuleName(RowRule rule);

}  // namespace internal
}  // namespace rhizome
