#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/job_report.h"
#include "rhizome/manifest.h"
#include "rhizome/policy.h"
#include "rhizome/resource_options.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {
class BufferPool;
}  // namespace internal
}  // namespace rhizome

namespace RHIZOME_API rhizome {

class RowReader;

class RowFetcher;

/// Index of a slot, the memory for one unit (a row or a decoded chunk). Slots are contiguous.
using SlotId = std::uint32_t;

/// Number of slots for units that steps hold in addition to the frames, until they release them.
struct HoldLimits {
  std::uint64_t slots = 0;  ///< soft limit; a step that needs more waits for a release

  /// Hard limit, at least `slots`; addresses are reserved for this many. Slots above the soft limit
  /// are used only if a wait would never end. Memory is allocated only as slots are used.
  std::uint64_t most = 0;
};

/// Creates the fetcher of a cache, given the reader of the array on the local disk.
using RowFetcherFactory = std::function<Result<std::unique_ptr<RowFetcher>>(
    std::unique_ptr<RowReader> local, const ArrayEntry& array)>;

/// Settings fixed when a FeatureCache opens.
struct FeatureCacheOptions {
  /// Memory for cached rows, in bytes; a hard limit. 0: no cache, every row is read.
  std::size_t capacity_bytes = std::size_t{256} << 20;

  /// Number of slots for rows that are held in addition to the cached ones: the misses of held
  /// steps, and their hits that were evicted since.
  HoldLimits held;

  /// Options of the row reader. `gap_bytes` is ignored; it follows from the read cost.
  RowReaderOptions reader;

  /// Read cost of the disk; if absent, it is measured when the cache opens.
  std::optional<ReadCost> read_cost = std::nullopt;

  /// Size of a row in the cache in bytes, at least the array's row_bytes. 0: row_bytes.
  std::size_t kept_row_bytes = 0;

  /// Called once for each row that was read, with kept_row_bytes bytes; the first row_bytes contain
  /// the stored form. Converts them in place to the cached form. Empty: rows are cached as stored.
  std::function<void(std::span<std::byte>)> on_arrival = {};

  /// Creates the object through which rows are read, if not all of them are on the local disk. It
  /// is not asked for rows that the delta holds. It receives a reader for the local disk that loads
  /// checksums on demand, so that a damaged checksum is an error of reading, not of Open. Empty:
  /// all rows are read from the local disk, with all checksums loaded at Open.
  RowFetcherFactory fetcher = {};
};

/// Statistics of a cache. Bytes and reads refer to the local disk.
struct GatherStats : RowReads {
  double update_seconds = 0;  ///< time spent in Hold by the policy and for finding slots
};

class FeatureCache;

/// The rows of a step in the cache's memory. They do not move or change until this object is
/// destroyed. Any thread may destroy it, and it must be destroyed before the cache.
/// Default-constructed objects are empty.
class HeldRows {
 public:
  HeldRows() = default;
  HeldRows(HeldRows&& other) noexcept;
  HeldRows& operator=(HeldRows&& other) noexcept;
  ~HeldRows();

  /// Returns the position of each row i of the step in `table()`, in units of kept_row_bytes.
  std::span<const SlotId> slots() const { return slots_; }

  /// Returns all of the cache's memory; only the rows at slots() may be read.
  std::span<const std::byte> table() const { return table_; }

  /// The bytes of a row in it: FeatureCache::kept_row_bytes; 0 if there are no rows.
  std::size_t row_bytes() const;

 private:
  friend class FeatureCache;
  BufferPool* pool_ = nullptr;  // null: no rows to release
  std::span<const std::byte> table_;
  std::vector<SlotId> slots_;
};

/// Reads rows of one array (layout kRow) for a sequence of minibatches whose rows are known ahead
/// (a superbatch), through a pool that works with any Policy. Over a graph, rows that were put
/// since its generation are read from the delta. The rows of new vertices follow the rows of the
/// array and are zero until they are put; they are cached like the others.
///
/// Source: the changesets of Ginex (VLDB 2022). Computing directly on the memory of the cache is
/// our own addition.
/// Threads: one at a time, except SetStarved and Cancel, which any thread may call at any time.
/// Ownership: `store` must outlive the cache. The cache keeps a snapshot of a graph. Gathered rows
/// are copies, held rows are not.
class FeatureCache {
 public:
  /// Opens `array` of `store`, with the rows of the store's generation. Errors: kNotFound, no such
  /// array; kInvalidArgument, its layout is not kRow; kCorruption; kIoError; kOutOfMemory.
  static Result<std::unique_ptr<FeatureCache>> Open(const Store& store, std::string_view array,
                                                    const FeatureCacheOptions& options);

  /// Opens `array` of a graph, with the current rows of `graph`. Errors: as above.
  static Result<std::unique_ptr<FeatureCache>> Open(const GraphSnapshot& graph,
                                                    std::string_view array,
                                                    const FeatureCacheOptions& options);
  ~FeatureCache();

  /// Number of frames in the pool, which is the frame_count of its policies.
  std::uint32_t frame_count() const;
  const ArrayEntry& array() const;

  /// Returns the read cost, as given or measured.
  const ReadCost& read_cost() const;

  /// Rows [0, row_count()) can be read: the rows of the array, then the rows of new vertices.
  std::uint64_t row_count() const;

  /// Starts a new superbatch: reads the policy's prefill, except rows that are already in the pool,
  /// in sweeps. Waits while held rows occupy slots that the prefill needs. Errors: as Hold.
  Status Start(std::unique_ptr<Policy> policy);

  /// Announces the policy of the next superbatch. It must live until that superbatch is started.
  void Announce(const Policy& next);
  bool announced() const;

  /// Reads a piece of the announced policy's prefill, a few MiB, into slots that the current
  /// superbatch no longer needs. Returns false if all rows were read, or no slots are available
  /// yet. Errors: as Start.
  Result<bool> ReadAhead();

  /// Makes `held` hold the rows of the policy's next step, row i at slots()[i]. `rows` must be
  /// distinct. If there is no space (FeatureCacheOptions::held), waits until enough held rows are
  /// released.
  /// Errors: kInvalidArgument, a row out of range, or the cache must be started again; kCorruption;
  /// kIoError; kInterrupted, cancelled; kOutOfMemory, more rows are held than options.held.most.
  /// After any error except a row out of range, the cache must be started again.
  Status Hold(std::span<const Row> rows, HeldRows& held);

  /// Copies row rows[i] to out[i * kept_row_bytes, (i + 1) * kept_row_bytes). Otherwise the
  /// contract is as for Hold, but no extra slots are needed. Errors: as Hold; kInvalidArgument,
  /// wrong size of `out`, or rows are held. On error the contents of `out` are unspecified.
  Status Gather(std::span<const Row> rows, std::span<std::byte> out);

  /// Waits until no rows are held, then returns the memory of the rows to the system. The cache
  /// must be started again. After SetStarved(true), frees no memory while rows are held.
  void Discard();

  /// Sets whether the holder of rows is itself waiting for the next step. While it is, Hold and
  /// Start do not wait for space.
  void SetStarved(bool starved);

  /// Ends all waits for space, now and later.
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
