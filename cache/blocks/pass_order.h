#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rhizome/cache/block_plan.h"
#include "rhizome/cache/chunk_reader.h"
#include "rhizome/cache/pass_layout.h"
#include "rhizome/cache/row_order.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/job_control.h"
#include "rhizome/storage/result.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// One pass of layerwise inference: what it reads, and how it is cut. The same whether it is
/// counted or run.
struct PassReads {
  BlockPlannerOptions planner = {};
  ChunkReaderOptions reader = {};
  std::uint64_t source_chunk_bytes = 1;  ///< size of a decoded chunk
  std::uint64_t output_chunk_rows = 1;
  std::uint64_t block_rows = 1;
  std::uint64_t block_edges = ~std::uint64_t{0};
  std::uint64_t cache_chunks() const { return reader.cache_bytes / source_chunk_bytes; }
};

/// The blocks of a pass that writes `rows` rows; output chunks for which done[chunk] is set are
/// left out.
std::vector<Block> BlocksOfPass(const PassReads& pass, std::uint64_t rows,
                                const std::vector<bool>& done);

/// Chunks that a pass reads below its cache: of `chunks` that its source has, those that `blocks`
/// asks for.
Result<std::uint64_t> CountPassReads(const PassReads& pass, Trace blocks, std::uint64_t chunks);

/// Returns what a pass over all rows reads if none of it is done yet. Errors: those of Sampler;
/// kInterrupted.
Result<BlockReads> PlanPassReads(const GraphSnapshot& graph, const PassReads& pass,
                                 std::uint64_t rows, const JobControl& control);

struct OrderOptions {
  PassReads maker;                   ///< the pass that computes the array, in its order
  PassReads reader;                  ///< the pass that reads it, with targets in stored order
  std::optional<RowRule> rule = {};  ///< absent: chosen by counting
  std::uint64_t memory_bytes = 0;    ///< bound on the memory of counting
};

/// The cost of an order to both passes: bytes of decoded chunks that miss the cache.
struct OrderCost {
  RowRule rule = RowRule::kStored;
  std::uint64_t maker_reads = 0;   ///< chunks
  std::uint64_t reader_reads = 0;  ///< chunks
  std::uint64_t bytes = 0;
  std::uint64_t least_bytes = 0;  ///< lower bound for any order, given the order of targets
};

struct OrderChoice {
  RowRule rule = RowRule::kStored;
  RowOrder order;
  std::vector<OrderCost> costs;  ///< of the orders that were counted, the stored one first

  /// The reads of both passes, if the stored order was chosen by counting.
  std::optional<BlockReads> maker;
  std::optional<BlockReads> reader;
};

/// Chooses the order of the rows in an array between two layers. Its rows are also computed in that
/// order. Whatever the order, the array is written once, so the bytes that both passes read decide.
/// The stored order is counted exactly. Others are counted only where the stored order reads so
/// much more than the distinct rows of each block that counting is worth it, and where their lists
/// fit into memory. The choice is never worse than the stored order.
/// Source: GLISP (section III-D) places rows by PDS; the rules here are those of
/// cache/layout/pass_layout.h.
/// Errors: kOutOfMemory, `rule` is given and memory does not suffice to lay it out; those of
/// Sampler; kInterrupted.
Result<OrderChoice> ChooseOrder(const GraphSnapshot& graph, const OrderOptions& options,
                                const JobControl& control);

/// Returns the name of a rule ("stored", "references", ...), as in cache/layout/pass_layout.h.
std::string RowRuleName(RowRule rule);

}  // namespace internal
}  // namespace rhizome
