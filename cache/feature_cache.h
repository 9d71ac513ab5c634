#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "rhizome/cache/buffer_pool.h"
#include "rhizome/cache/policy.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/read_cost.h"
#include "rhizome/storage/row_reader.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// Settings fixed when a FeatureCache opens.
struct FeatureCacheOptions {
  /// Memory for cached rows, in bytes; never exceeded. 0: no pool, every row is read.
  std::size_t capacity_bytes = std::size_t{256} << 20;

  /// `gap_bytes` is not looked at: it is that of the read cost.
  RowReaderOptions reader;

  /// What reads cost on this disk; absent: measured when the cache opens.
  std::optional<ReadCost> read_cost = std::nullopt;
};

struct GatherStats {
  std::uint64_t rows_requested = 0;  ///< distinct rows of each minibatch
  std::uint64_t pool_hits = 0;
  std::uint64_t rows_kept = 0;  ///< prefill that was in the pool from the superbatch before
  std::uint64_t rows_read = 0;  ///< misses, and the rest of the prefill
  std::uint64_t bytes_read = 0;
  std::uint64_t reads_issued = 0;
};

/// A minibatch between the two halves of its gather. Reusable; its memory is kept.
struct GatherStep {
  StepPlan plan;
  std::vector<Row> inserted;  ///< rows that the plan inserts, in its order
  std::span<std::byte> out;
  double copy_seconds = 0;    ///< of Finish: from the pool
  double update_seconds = 0;  ///< of Finish: into the pool
};

/// Gathers rows of one array (layout kRow) for a sequence of minibatches whose rows are known ahead
/// (a superbatch), through a pool that any Policy drives; Belady, LRU, FIFO and static share this
/// one code path and differ in nothing else. Over a graph, rows that were put since its generation
/// are read from the delta, and new vertices have rows behind the array's, which are zeros until
/// they are put; they are cached like the others.
///
/// A gather has two halves, so that one minibatch's reads run while the one before it is copied
/// out of and into the pool: reads land in `out`, never in frames, so they may run ahead as far as
/// there are outputs.
///
/// Source: the changesets are those of Ginex (VLDB 2022).
/// Threads: one at a time, except that Finish may run while another thread is in Fetch. Ownership:
/// `store` must outlive it, of a graph it keeps a Snapshot; gathered rows are copies.
class FeatureCache {
 public:
  /// Errors: kNotFound, no such array; kInvalidArgument, its layout is not kRow; kCorruption;
  /// kOutOfMemory.
  static Result<std::unique_ptr<FeatureCache>> Open(const Store& store, std::string_view array,
                                                    const FeatureCacheOptions& options);

  /// The rows as `graph` has them now. Errors: as above.
  static Result<std::unique_ptr<FeatureCache>> Open(const Graph& graph, std::string_view array,
                                                    const FeatureCacheOptions& options);
  ~FeatureCache();

  /// Frames of the pool, for building policies.
  std::uint32_t frame_count() const;
  const ArrayEntry& array() const;

  /// What reads cost, for policies that ask.
  const ReadCost& read_cost() const;

  /// Bound of the rows that can be gathered: those of the array, and of new vertices.
  std::uint64_t row_count() const;

  /// Starts a new superbatch: reads the policy's prefill in one sweep, but for what the pool holds
  /// of it already. Every step that was fetched must be finished, or given up.
  Status Start(std::unique_ptr<Policy> policy);

  /// Copies row rows[i] to out[i * row_bytes, (i + 1) * row_bytes); `rows` are distinct and are the
  /// policy's next step. Errors: kInvalidArgument, a row out of range or a wrong `out` size;
  /// kCorruption; kIoError. On error `out` is unspecified and the cache must be started again.
  Status Gather(std::span<const Row> rows, std::span<std::byte> out);

  /// The first half: reads what is not in the pool. The same arguments and errors; of `step` all
  /// but the times is set.
  Status Fetch(std::span<const Row> rows, std::span<std::byte> out, GatherStep& step);

  /// The second half: copies the rest from the pool, then into it what shall stay. Call once for
  /// each Fetch that succeeded, in their order.
  void Finish(GatherStep& step);

  /// Call where Fetch may be called.
  GatherStats stats() const;
  RowReaderStats reader_stats() const;

 private:
  class Impl;
  explicit FeatureCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
