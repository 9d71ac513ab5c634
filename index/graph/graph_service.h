#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/index/graph.h"
#include "rhizome/index/graph_lookup.h"
#include "rhizome/storage/export.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"
#include "rhizome/storage/store_options.h"

namespace RHIZOME_API rhizome {

/// Settings of a GraphService. The profiles below fill them in; change what differs.
struct ServiceOptions {
  Store::Mode mode = Store::Mode::kRead;

  /// All memory of the service beside the process's own, in bytes; ServiceMemoryPlan says who gets
  /// what.
  std::uint64_t memory_budget_bytes = std::uint64_t{1} << 30;

  /// Arrays of vertices whose rows are looked up; each gets a cache.
  std::vector<std::string> arrays = {};

  /// Where neighbour lists are; nothing: in memory where they take at most half of what is left for
  /// the caches (all of it without arrays), else on disk behind a cache.
  std::optional<TopologyPlace> topology = {};

  /// Shares of the budget for the catalogue, and for what was written since the generation.
  double catalog_share = 1.0 / 16;
  double delta_share = 1.0 / 8;

  /// Threads that look up at once: each may need a buffer for a read.
  std::uint32_t threads = 4;

  /// Fill the caches before Open returns, see Warm. A deadline that passes stops it and Open goes
  /// on; a cancelled `control` ends Open with kInterrupted.
  bool warm = false;
  LookupOptions warm_limits = {};

  /// See storage/logger.h. None: silent.
  LogCallback log = {};
  LogLevel log_level = LogLevel::kInfo;

  /// Called with all metrics every `metrics_period`, and once more at the end, from a thread of its
  /// own. None: never; metrics() works anyway.
  MetricsCallback metrics = {};
  std::chrono::milliseconds metrics_period = std::chrono::seconds(10);
};

/// `small`: 64 MiB, one thread, nothing loaded ahead: a sidecar, a test, a laptop.
ServiceOptions SmallProfile();

/// `bulk-load`: 1 GiB, for writing: lists stay on disk, most memory is for the catalogue and what
/// was written.
ServiceOptions BulkLoadProfile();

/// `serve`: 4 GiB, 8 threads, warmed up before Open returns.
ServiceOptions ServeProfile();

/// How a memory budget is shared out, in bytes; the parts add up to it.
/// First what is needed: the catalogue (its share, 3 MiB or more), read buffers (1 MiB a thread, or
/// two chunks of the largest array that is decoded by chunk), the delta's share, and what of the
/// generation is always in memory (order, external ids, offsets; neighbour lists with kMemory).
/// The rest goes to the caches, in proportion to what each would take in full, and no more.
struct ServiceMemoryPlan {
  TopologyPlace topology = TopologyPlace::kMemory;
  std::uint64_t catalog_cache_bytes = 0;
  std::uint64_t catalog_write_bytes = 0;
  std::uint64_t read_buffer_bytes = 0;

  /// An allowance, not a bound: what is written is held in memory (about 100 bytes an entry of
  /// Gauge::kDeltaEntries) until it is compacted.
  std::uint64_t delta_bytes = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t list_cache_bytes = 0;                             ///< with kDirect
  std::vector<std::pair<std::string, std::uint64_t>> row_caches;  ///< by array
  std::uint64_t spare_bytes = 0;                                  ///< nobody has use for them

  std::uint64_t total_bytes() const;
};

/// What a service with these options would do with a store's generation. Reads section tables only.
/// Errors: kOutOfMemory, the budget is too small: the message names each need and the least budget;
/// kNotFound, no such array; kInvalidArgument, shares that leave nothing; kCorruption; kIoError.
Result<ServiceMemoryPlan> PlanMemory(const Store& store, const ServiceOptions& options);

/// A store opened for a service: its live graph, look-ups of rows, log and metrics, from one memory
/// budget. A convenience: everything it does can be done with Store, Graph and RowLookup.
///
/// Threads: all functions from many threads, as those of Graph. After `fork`, a child may only
/// leave it alone. Ownership: owns store, graph and look-ups; `fs` must outlive it.
class GraphService {
 public:
  /// Errors: those of PlanMemory, Store::Open and Graph::Open; kInterrupted, see warm_limits.
  static Result<std::unique_ptr<GraphService>> Open(FileSystem& fs, const Path& path,
                                                    const ServiceOptions& options);
  ~GraphService();

  Graph& graph() { return *graph_; }
  const Graph& graph() const { return *graph_; }
  Store& store() { return *store_; }

  /// The look-up of one of ServiceOptions::arrays. Errors: kNotFound.
  Result<const RowLookup*> Rows(std::string_view array) const;

  /// Fills the caches: neighbour lists that are on disk, then rows of each array, those of the
  /// highest degrees first. Look-ups go on meanwhile; what was loaded stays. Errors: kInterrupted,
  /// late or cancelled; kCorruption; kIoError.
  Status Warm(const LookupOptions& options = {}) const;

  const ServiceMemoryPlan& memory() const { return plan_; }
  MetricsSnapshot metrics() const { return metrics_->Snapshot(); }

  /// As MetricsText, with the label store="<path>".
  std::string MetricsAsText() const;

 private:
  GraphService() = default;

  ServiceMemoryPlan plan_;
  std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  std::unique_ptr<Store> store_;
  std::unique_ptr<Graph> graph_;
  std::map<std::string, std::unique_ptr<RowLookup>, std::less<>> rows_;
  std::unique_ptr<MetricsReporter> reporter_;  // first to go
};

}  // namespace rhizome
