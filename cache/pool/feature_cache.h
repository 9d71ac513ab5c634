#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rhizome/cache/hold_room.h"
#include "rhizome/cache/policy.h"
#include "rhizome/cache/read_counts.h"
#include "rhizome/index/graph.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/read_cost.h"
#include "rhizome/storage/row_reader.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {
class BufferPool;
}  // namespace rhizome::inline internal

namespace RHIZOME_API rhizome {

/// Settings fixed when a FeatureCache opens.
struct FeatureCacheOptions {
  /// Memory for cached rows, in bytes; never exceeded. 0: no pool, every row is read.
  std::size_t capacity_bytes = std::size_t{256} << 20;

  /// Room for rows that are held beside the cached ones, in rows. A step's misses need it, and hits
  /// that have left the pool since.
  HoldRoom held;

  /// `gap_bytes` is not looked at: it is that of the read cost.
  RowReaderOptions reader;

  /// What reads cost on this disk; absent: measured when the cache opens.
  std::optional<ReadCost> read_cost = std::nullopt;

  /// Rows are kept, and given out, in this many bytes, at least the array's row_bytes; 0: as many.
  std::size_t kept_row_bytes = 0;

  /// Called once for each row that was read, whose first row_bytes are as stored: makes of it what
  /// is kept. Empty: it is kept as it is.
  std::function<void(std::span<std::byte>)> on_arrival = {};
};

struct GatherStats : RowReads {
  double update_seconds = 0;  ///< of Hold: the policy's, and of finding room
};

class FeatureCache;

/// Rows of a step, in the cache's memory: they stay there, and stay the same, until this is
/// destroyed, from any thread; before its cache is. Empty when default-made.
class HeldRows {
 public:
  HeldRows() = default;
  HeldRows(HeldRows&& other) noexcept;
  HeldRows& operator=(HeldRows&& other) noexcept;
  ~HeldRows();

  /// Where row i of the step lies in `table()`, counted in rows.
  std::span<const SlotId> slots() const { return slots_; }

  /// All of the cache's memory; of it only the rows of slots() may be read.
  std::span<const std::byte> table() const { return table_; }

 private:
  friend class FeatureCache;
  BufferPool* pool_ = nullptr;  // null: nothing to release
  std::span<const std::byte> table_;
  std::vector<SlotId> slots_;
};

/// Gathers rows of one array (layout kRow) for a sequence of minibatches whose rows are known ahead
/// (a superbatch), through a pool that any Policy drives; Belady, LRU, FIFO and static share this
/// one code path and differ in nothing else. Over a graph, rows that were put since its generation
/// are read from the delta, and new vertices have rows behind the array's, which are zeros until
/// they are put; they are cached like the others.
///
/// Source: the changesets are those of Ginex (VLDB 2022); that a minibatch computes on the cache
/// itself is ours.
/// Threads: one at a time, but for SetStarved and Cancel, which any may call at any time.
/// Ownership: `store` must outlive it, of a graph it keeps a Snapshot; gathered rows are copies,
/// held rows are not.
class FeatureCache {
 public:
  /// Errors: kNotFound, no such array; kInvalidArgument, its layout is not kRow; kCorruption;
  /// kOutOfMemory.
  static Result<std::unique_ptr<FeatureCache>> Open(const Store& store, std::string_view array,
                                                    const FeatureCacheOptions& options);

  /// The rows as `graph` has them now. Errors: as above.
  static Result<std::unique_ptr<FeatureCache>> Open(const GraphSnapshot& graph,
                                                    std::string_view array,
                                                    const FeatureCacheOptions& options);
  ~FeatureCache();

  /// Frames of the pool, for building policies.
  std::uint32_t frame_count() const;
  const ArrayEntry& array() const;

  /// What reads cost, for policies that ask.
  const ReadCost& read_cost() const;

  /// Bound of the rows that can be gathered: those of the array, and of new vertices.
  std::uint64_t row_count() const;

  /// Starts a new superbatch: reads the policy's prefill in sweeps, but for what the pool holds of
  /// it already. What is held stays; where it takes the room of the prefill, this waits. Errors:
  /// kInvalidArgument, the policy prefills frames or rows that there are not; those of reading.
  Status Start(std::unique_ptr<Policy> policy);

  /// `next` will be the policy of the superbatch after this one, and lives until it is started.
  void Announce(const Policy& next);
  bool announced() const;

  /// Reads a piece of the prefill of the policy that was announced, into memory that the superbatch
  /// of now does not need any more; a few milliseconds. False: there is none, or no memory for it
  /// yet. Errors: as of Start.
  Result<bool> ReadAhead();

  /// Makes `held` the rows, row i in slots()[i]; `rows` are distinct and are the policy's next
  /// step. Waits where there is no room (FeatureCacheOptions::held), until enough of what is held
  /// was released. Errors: kInvalidArgument, a row out of range or twice, other rows than the
  /// policy's next step, or a policy that was made for another cache; kCorruption; kIoError;
  /// kInterrupted, cancelled; kOutOfMemory, more is held than options.held.most allows. On error
  /// the cache must be started again.
  Status Hold(std::span<const Row> rows, HeldRows& held);

  /// Copies row rows[i] to out[i * kept_row_bytes, (i + 1) * kept_row_bytes); the same contract,
  /// and no room is needed. Errors: as above; kInvalidArgument, a wrong `out` size, or rows are
  /// held. On error `out` is unspecified.
  Status Gather(std::span<const Row> rows, std::span<std::byte> out);

  /// Waits until nothing is held and gives the memory of the rows back to the system; the cache
  /// must be started again. Does nothing while whoever holds rows waits for the next step.
  void Discard();

  /// Whoever holds rows waits for the next step: Hold and Start do not wait for room meanwhile.
  void SetStarved(bool starved);

  /// Ends every wait for room, now and later.
  void Cancel();

  std::size_t kept_row_bytes() const;
  GatherStats stats() const;
  RowReaderStats reader_stats() const;

 private:
  class Impl;
  explicit FeatureCache(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
