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
#include "rhizome/cache/row_fetcher.h"
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
  /// Memory for cached rows, in bytes, which is never exceeded. 0: no pool, every row is read.
  std::size_t capacity_bytes = std::size_t{256} << 20;

  /// Slots, in rows, for rows that are held in addition to the cached ones: the misses of held
  /// steps, and their hits that were evicted since.
  HoldRoom held;

  /// The row reader's settings; `gap_bytes` is ignored, the read cost's is used.
  RowReaderOptions reader;

  /// The cost of reads on this disk; if absent it is measured when the cache opens.
  std::optional<ReadCost> read_cost = std::nullopt;

  /// Bytes in which a row is kept and given out, at least the array's row_bytes. 0: row_bytes.
  std::size_t kept_row_bytes = 0;

  /// Called once for each row that was read, with kept_row_bytes bytes of which the first row_bytes
  /// are as stored; it turns them in place into what is kept. Empty: rows are kept as stored.
  std::function<void(std::span<std::byte>)> on_arrival = {};

  /// Makes what rows are read through, where not all of them are on this machine's disk. It is
  /// asked for no row that the delta holds. The disk's reader that it gets loads checksums as they
  /// are needed, so that a damaged one is an error of reading, not of Open. Empty: the disk's
  /// reader, with all checksums.
  RowFetcherMaker fetcher = {};
};

/// Rows of `kept_row_bytes` bytes that are read at once ahead of a superbatch. Where a policy says
/// what of its prefill is read (Policy::PrefillReads), all of it is read in pieces of so many rows,
/// in order, the last excepted: what is asked of others is then the same in each run.
std::size_t PrefillPiece(std::size_t kept_row_bytes);

/// Bytes and reads are those of this machine's disk.
struct GatherStats : RowReads {
  double update_seconds = 0;  ///< time of Hold in the policy and in finding slots
};

class FeatureCache;

/// The rows of a step in the cache's memory. They stay there unchanged until this object is
/// destroyed, which any thread may do, and which must happen before the cache is destroyed.
/// Default-made objects are empty.
class HeldRows {
 public:
  HeldRows() = default;
  HeldRows(HeldRows&& other) noexcept;
  HeldRows& operator=(HeldRows&& other) noexcept;
  ~HeldRows();

  /// The position of row i of the step in `table()`, in units of kept_row_bytes.
  std::span<const SlotId> slots() const { return slots_; }

  /// All of the cache's memory; only the rows at slots() may be read.
  std::span<const std::byte> table() const { return table_; }

 private:
  friend class FeatureCache;
  BufferPool* pool_ = nullptr;  // null: nothing to release
  std::span<const std::byte> table_;
  std::vector<SlotId> slots_;
};

/// Gathers rows of one array (layout kRow) for a sequence of minibatches whose rows are known ahead
/// (a superbatch), through a pool that any Policy drives; all policies share this one code path.
/// Over a graph, rows that were put since its generation are read from the delta. New vertices have
/// rows after those of the array, which are zeros until they are put; they are cached like the
/// others.
///
/// Source: the changesets are those of Ginex (VLDB 2022); that a minibatch computes on the cache's
/// memory itself is ours.
/// Threads: one at a time, except SetStarved and Cancel, which any thread may call at any time.
/// Ownership: `store` must outlive the cache; of a graph the cache keeps a snapshot. Gathered rows
/// are copies, held rows are not.
class FeatureCache {
 public:
  /// Opens `array` of `store`; the rows are those of the store's generation. Errors: kNotFound, no
  /// such array; kInvalidArgument, its layout is not kRow; kCorruption; kIoError; kOutOfMemory.
  static Result<std::unique_ptr<FeatureCache>> Open(const Store& store, std::string_view array,
                                                    const FeatureCacheOptions& options);

  /// Opens `array` of a graph; the rows are those that `graph` has now. Errors: as above.
  static Result<std::unique_ptr<FeatureCache>> Open(const GraphSnapshot& graph,
                                                    std::string_view array,
                                                    const FeatureCacheOptions& options);
  ~FeatureCache();

  /// Frames of the pool, the frame_count of its policies.
  std::uint32_t frame_count() const;
  const ArrayEntry& array() const;

  /// The cost of reads, as given or measured.
  const ReadCost& read_cost() const;

  /// Rows that can be gathered are [0, row_count()): those of the array, then those of new
  /// vertices.
  std::uint64_t row_count() const;

  /// Starts a new superbatch: reads the policy's prefill, except what the pool holds already, in
  /// sweeps. Waits where held rows occupy the prefill's slots. Errors: as Hold.
  Status Start(std::unique_ptr<Policy> policy);

  /// Announces the policy of the next superbatch, which must live until that is started.
  void Announce(const Policy& next);
  bool announced() const;

  /// Reads a piece of the announced policy's prefill, a few MiB, into slots that the current
  /// superbatch no longer needs. Returns false if there is nothing left to read, or no slot for it
  /// yet. Errors: as Start.
  Result<bool> ReadAhead();

  /// Makes `held` hold the rows of the policy's next step, row i at slots()[i]; `rows` are
  /// distinct. Waits while there is no room (FeatureCacheOptions::held) until enough held rows are
  /// released.
  /// Errors: kInvalidArgument, a row out of range, or the cache must be started again; kCorruption;
  /// kIoError; kInterrupted, cancelled; kOutOfMemory, more rows are held than options.held.most
  /// allows. After any error but a row out of range the cache must be started again.
  Status Hold(std::span<const Row> rows, HeldRows& held);

  /// Copies row rows[i] to out[i * kept_row_bytes, (i + 1) * kept_row_bytes). Otherwise the
  /// contract is that of Hold, but no extra slots are needed. Errors: as Hold; kInvalidArgument,
  /// wrong size of `out`, or rows are held. On error the contents of `out` are unspecified.
  Status Gather(std::span<const Row> rows, std::span<std::byte> out);

  /// Waits until nothing is held, then returns the memory of the rows to the system; the cache must
  /// be started again. While SetStarved(true) holds and rows are held it frees nothing.
  void Discard();

  /// Says whether the holder of rows waits for the next step; Hold and Start do not wait for room
  /// while it does.
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
