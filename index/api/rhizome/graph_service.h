#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/graph_lookup.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/store_options.h"

namespace RHIZOME_API rhizome {

/// Settings of a GraphService. The profiles below are starting points.
struct ServiceOptions {
  Store::Mode mode = Store::Mode::kRead;

  /// The state to open, which another process must hold (StoreOptions::at). Unset: the last commit.
  std::optional<StorePoint> at = {};

  /// Memory of the service in bytes, beyond the memory of the bare process. ServiceMemoryPlan
  /// describes its division.
  std::uint64_t memory_budget_bytes = std::uint64_t{1} << 30;

  /// Vertex arrays whose rows are looked up; each gets a cache.
  std::vector<std::string> arrays = {};

  /// Storage of adjacency lists. Unset: in memory if they take at most half of the memory left for
  /// the caches (all of it without arrays), otherwise on disk behind a cache.
  std::optional<TopologyPlace> topology = {};

  /// Shares of the budget for the catalogue and for the delta.
  double catalog_share = 1.0 / 16;
  double delta_share = 1.0 / 8;

  /// Number of threads that look up at the same time; each may need a buffer for a read.
  std::uint32_t threads = 4;

  /// Fill the caches before Open returns, see Warm. If the deadline passes, warming stops and Open
  /// continues; if `control` is cancelled, Open fails with kInterrupted.
  bool warm = false;
  LookupOptions warm_limits = {};

  /// Time to wait for the writer's lock (StoreOptions::wait).
  LockWait wait = {};

  /// Compact in the background, with these options, whenever the delta has reached
  /// CompactOptions::min_delta. A service that is open for reading compacts what other processes
  /// write, and takes the writer's lock only for the commit. Set a memory limit here: a compaction
  /// uses memory beyond memory_budget_bytes. Errors go to the log. Unset: never.
  std::optional<CompactOptions> compact_when = {};

  /// Receives the log, see storage/base/logger.h. Unset: no log.
  LogCallback log = {};
  LogLevel log_level = LogLevel::kInfo;

  /// Receives all metrics every `metrics_period`, and once more at the end, on a separate thread.
  /// Unset: never; metrics() works in any case.
  MetricsCallback metrics = {};
  std::chrono::milliseconds metrics_period = std::chrono::seconds(10);
};

/// The profile `small` (64 MiB, one thread, no warming), for a sidecar, a test or a laptop.
ServiceOptions SmallProfile();

/// The profile `bulk-load` (1 GiB), for writing: adjacency lists are on disk, and most memory is
/// for the catalogue and the delta.
ServiceOptions BulkLoadProfile();

/// The profile `serve` (4 GiB, 8 threads, warmed before Open returns).
ServiceOptions ServeProfile();

/// The division of a memory budget, in bytes; the parts add up to the budget. The caches get what
/// the fixed parts leave, in proportion to their full sizes, and at most those sizes.
struct ServiceMemoryPlan {
  TopologyPlace topology = TopologyPlace::kMemory;
  std::uint64_t catalog_cache_bytes = 0;
  std::uint64_t catalog_write_bytes = 0;
  std::uint64_t read_buffer_bytes = 0;

  /// An allowance, not a limit: the delta is held in memory (about 100 bytes an entry of
  /// Gauge::kDeltaEntries) until it is compacted.
  std::uint64_t delta_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t list_cache_bytes = 0;                             ///< with kDirect
  std::vector<std::pair<std::string, std::uint64_t>> row_caches;  ///< by array
  std::uint64_t spare_bytes = 0;                                  ///< bytes that no cache can use

  /// Returns the sum of all parts.
  std::uint64_t total_bytes() const;
};

/// Plans the memory of a service with these options on a store's generation. Reads only section
/// tables.
/// Errors: kOutOfMemory, the budget is too small (the message names each need and the smallest
/// sufficient budget); kNotFound, no such array; kInvalidArgument, shares that leave nothing;
/// kCorruption; kIoError.
Result<ServiceMemoryPlan> PlanMemory(const Store& store, const ServiceOptions& options);

/// A store opened for a service: its live graph, look-ups of rows, log and metrics, from one memory
/// budget. It is a convenience: Store, Graph and RowLookup can do the same.
///
/// Threads: all functions may be called from many threads, as with Graph. After `fork`, the child
/// must not use it.
/// Ownership: owns store, graph and look-ups; `fs` must outlive it.
class GraphService {
 public:
  /// Errors: any error of PlanMemory, Store::Open and Graph::Open; kInterrupted, see warm_limits.
  static Result<std::unique_ptr<GraphService>> Open(FileSystem& fs, const Path& path,
                                                    const ServiceOptions& options);
  ~GraphService();

  /// The service owns the graph and the store; they live as long as it does.
  Graph& graph();
  const Graph& graph() const;
  Store& store();

  /// Returns the look-up of one of ServiceOptions::arrays; the service owns it.
  /// Errors: kNotFound.
  Result<const RowLookup*> Rows(std::string_view array) const;

  /// Fills the caches: adjacency lists that are on disk, then the rows of each array, beginning
  /// with the highest degrees. Look-ups may run concurrently; loaded data remains in the caches
  /// even after an error.
  /// Errors: kInterrupted, cancelled or past the deadline; kCorruption; kIoError.
  Status Warm(const LookupOptions& options = {}) const;

  /// Return the memory plan, and the current values of all metrics.
  const ServiceMemoryPlan& memory() const;
  MetricsSnapshot metrics() const;

  /// Returns MetricsText with the label store="<path>".
  std::string MetricsAsText() const;

 private:
  class Impl;
  explicit GraphService(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace rhizome
