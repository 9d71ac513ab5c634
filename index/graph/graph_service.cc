// A service from one memory budget. Open computes the catalogue's share, opens the store, plans the
// rest of the memory (PlanMemory), opens the graph and the row look-ups with their caches, warms
// the caches if requested, and starts the metrics reporter.
//
// Fixed parts of the budget come first: the catalogue (its share, at least 3 MiB); read buffers (1
// MiB a thread, or two chunks of the largest array that is decoded by chunk); the delta's share;
// and the parts of the generation that are always in memory (order, external ids, offsets;
// adjacency lists with kMemory).

#include "rhizome/graph_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "index/graph/cached_rows.h"
#include "index/graph/compaction_watch.h"
#include "index/graph/graph_memory.h"
#include "index/topology/block_cache.h"
#include "index/topology/vertex_ids.h"
#include "storage/array/array_rules.h"
#include "storage/base/bytes_left.h"
#include "storage/base/exceptions.h"
#include "storage/base/logger.h"
#include "storage/base/process.h"
#include "storage/base/stopwatch.h"
#include "storage/base/threads.h"
#include "storage/section/section_format.h"

namespace rhizome {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A smaller cache is not worth its table.
constexpr std::uint64_t kMinCacheBytes = 256 << 10;

struct CatalogShare {
  std::uint64_t cache_bytes = 0;
  std::uint64_t write_bytes = 0;
};

// Computes the catalogue's share, which must be known before the store is open. In a writer the
// buffers get most of the share; in a reader the cache does.
CatalogShare CatalogShareOf(const ServiceOptions& options) {
  const auto share = static_cast<std::uint64_t>(static_cast<double>(options.memory_budget_bytes) *
                                                options.catalog_share);
  const bool writes = options.mode == Store::Mode::kWrite;
  const std::uint64_t small = std::clamp(share / 4, kMiB, 256 * kMiB);
  const std::uint64_t large = std::clamp(share > small ? share - small : 0, 2 * kMiB, 1024 * kMiB);
  return writes ? CatalogShare{small, large} : CatalogShare{large, small};
}

Status CheckShares(const ServiceOptions& options) {
  const bool sound = options.catalog_share >= 0 && options.delta_share >= 0 &&
                     options.catalog_share + options.delta_share <= 0.9;
  if (!sound)
    return Status::InvalidArgument(fmt::format(
        "catalog_share {} and delta_share {} must be at least 0, and their sum at most 0.9",
        options.catalog_share, options.delta_share));
  if (options.threads == 0 || options.threads > 65536)
    return Status::InvalidArgument(
        fmt::format("threads is {}; it must be 1 to 65536", options.threads));
  return Status::Ok();
}

/// A cache that requests memory.
struct Wish {
  std::string array;  // empty: the cache of adjacency lists
  std::uint64_t full_bytes = 0;
};

Result<std::vector<Wish>> RowWishes(const Store& store, const ServiceOptions& options,
                                    std::uint64_t& largest_chunk_bytes) {
  std::vector<Wish> wishes;
  for (const std::string& name : options.arrays) {
    RHIZOME_ASSIGN_OR_RETURN(const auto array, store.OpenArray(name));
    const ArrayEntry& entry = array->entry();
    wishes.push_back({name, CachedRows::FullBytes(entry)});
    const bool by_row = entry.layout == ArrayLayout::kRow && entry.codec.kind == CodecKind::kRaw;
    if (!by_row) largest_chunk_bytes = std::max(largest_chunk_bytes, CachedRows::ReadBytes(entry));
  }
  return wishes;
}

std::string InMiB(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / static_cast<double>(kMiB));
}

// Returns an error with the smallest sufficient budget. At a small budget, every part except the
// delta's share is independent of the budget.
Status TooSmall(const Store& store, const ServiceOptions& options, const ServiceMemoryPlan& plan,
                std::uint64_t caches) {
  const std::uint64_t needs = plan.read_buffer_bytes + plan.resident_bytes + caches;
  const double left = 1 - options.catalog_share - options.delta_share;
  const std::uint64_t min_catalog = 3 * kMiB;
  const auto by_share = static_cast<std::uint64_t>(std::ceil(static_cast<double>(needs) / left));
  const auto by_least = static_cast<std::uint64_t>(
      std::ceil(static_cast<double>(needs + min_catalog) / (1 - options.delta_share)));
  // The extra 64 bytes cover the rounding of shares.
  const std::uint64_t least = std::max(by_share, by_least) + 64;
  return Status::OutOfMemory(fmt::format(
      "'{}': memory_budget_bytes is {}, but at least {} ({}) are needed: {} for the catalogue, {} "
      "for what is written until it is compacted, {} for read buffers of {} threads, {} for order, "
      "external ids and {}, {} for caches; give more, fewer arrays or threads, or leave the "
      "neighbour lists on disk",
      store.path().string(), options.memory_budget_bytes, least, InMiB(least),
      InMiB(plan.catalog_cache_bytes + plan.catalog_write_bytes), InMiB(plan.delta_bytes),
      InMiB(plan.read_buffer_bytes), options.threads, InMiB(plan.resident_bytes),
      plan.topology == TopologyPlace::kMemory ? "neighbour lists" : "offsets of neighbour lists",
      InMiB(caches)));
}

// Divides the bytes in proportion to the caches' full sizes.
void ShareOut(const std::vector<Wish>& wishes, std::uint64_t bytes, ServiceMemoryPlan& plan) {
  double wanted = 0;
  for (const Wish& wish : wishes) wanted += static_cast<double>(wish.full_bytes);
  const double scale = wanted > 0 ? std::min(static_cast<double>(bytes) / wanted, 1.0) : 0;
  std::uint64_t left = bytes;
  for (const Wish& wish : wishes) {
    const std::uint64_t scaled =
        scale == 1 ? wish.full_bytes
                   : static_cast<std::uint64_t>(static_cast<double>(wish.full_bytes) * scale);
    const std::uint64_t given = std::min(scaled, left);
    left -= given;
    if (wish.array.empty()) {
      plan.list_cache_bytes = given;
    } else {
      plan.row_caches.emplace_back(wish.array, given);
    }
  }
  plan.spare_bytes = left;
}

}  // namespace

ServiceOptions SmallProfile() {
  ServiceOptions options;
  options.memory_budget_bytes = 64 * kMiB;
  options.threads = 1;
  return options;
}

ServiceOptions BulkLoadProfile() {
  ServiceOptions options;
  options.mode = Store::Mode::kWrite;
  options.memory_budget_bytes = 1024 * kMiB;
  options.topology = TopologyPlace::kDirect;
  options.catalog_share = 0.25;
  options.delta_share = 0.5;
  options.threads = 1;
  return options;
}

ServiceOptions ServeProfile() {
  ServiceOptions options;
  options.memory_budget_bytes = 4096 * kMiB;
  options.threads = 8;
  options.warm = true;
  return options;
}

std::uint64_t ServiceMemoryPlan::total_bytes() const {
  std::uint64_t total = catalog_cache_bytes + catalog_write_bytes + read_buffer_bytes +
                        delta_bytes + resident_bytes + list_cache_bytes + spare_bytes;
  for (const auto& [array, bytes] : row_caches) total += bytes;
  return total;
}

// Plans the memory:
// 1. the fixed parts: catalogue, read buffers, delta, resident data;
// 2. whether adjacency lists are in memory or on disk;
// 3. the caches (ShareOut).
Result<ServiceMemoryPlan> PlanMemory(const Store& store, const ServiceOptions& options) try {
  RHIZOME_RETURN_IF_ERROR(CheckShares(options));
  ServiceMemoryPlan plan;
  const CatalogShare catalog = CatalogShareOf(options);
  plan.catalog_cache_bytes = catalog.cache_bytes;
  plan.catalog_write_bytes = catalog.write_bytes;
  std::uint64_t chunk_bytes = 0;
  RHIZOME_ASSIGN_OR_RETURN(auto wishes, RowWishes(store, options, chunk_bytes));
  plan.read_buffer_bytes = options.threads * std::max(kMiB, 2 * chunk_bytes);
  plan.delta_bytes = static_cast<std::uint64_t>(static_cast<double>(options.memory_budget_bytes) *
                                                options.delta_share);
  RHIZOME_ASSIGN_OR_RETURN(const TopologyBytes topology, MeasureTopology(store));
  plan.resident_bytes = OrderAndIdBytes(store.manifest()) + topology.rest;
  const std::uint64_t fixed = plan.total_bytes();
  const std::uint64_t rest = BytesLeft(options.memory_budget_bytes, fixed);
  std::uint64_t least = 0;
  for (const Wish& wish : wishes) least += std::min(wish.full_bytes, kMinCacheBytes);
  const bool fits =
      topology.lists + least <= rest && topology.lists <= (wishes.empty() ? rest : rest / 2);
  plan.topology = options.topology.value_or(fits ? TopologyPlace::kMemory : TopologyPlace::kDirect);
  if (plan.topology == TopologyPlace::kMemory) {
    plan.resident_bytes += topology.lists;
  } else {
    const std::uint64_t full = BlockCache::FullBytes(topology.blocks, kSectionBlockBytes);
    wishes.push_back({"", full});
    least += std::min(full, kMinCacheBytes);
  }
  if (plan.total_bytes() + least > options.memory_budget_bytes)
    return Fail(TooSmall(store, options, plan, least));
  ShareOut(wishes, options.memory_budget_bytes - plan.total_bytes(), plan);
  return plan;
} catch (...) {
  return Fail(StatusOfException());
}

/// Compacts a graph in the background until it is destroyed.
class BackgroundCompaction {
 public:
  explicit BackgroundCompaction(Graph& graph) : graph_(graph) {}
  ~BackgroundCompaction() {
    if (!process_.here()) {
      static_cast<void>(worker_.release());  // the thread does not exist in a forked child
      return;
    }
    control_.Cancel();
    static_cast<void>(worker_->Join());
  }
  BackgroundCompaction(const BackgroundCompaction&) = delete;
  BackgroundCompaction& operator=(const BackgroundCompaction&) = delete;

  /// Errors: kOutOfMemory, the system grants no more threads.
  Status Start(const CompactOptions& options, const Logger& logger) {
    return worker_->Start([this, options, &logger] {
      Status ended = WatchCompaction(graph_, options, std::chrono::seconds(1), control_,
                                     [](const CompactResult&) {});
      if (ended.code() != StatusCode::kInterrupted)
        logger.Log(LogLevel::kError, "service", "no longer compacts in the background",
                   {{"error", ended.ToString()}});
      return ended;
    });
  }

 private:
  Graph& graph_;
  const OwnerProcess process_;
  JobControl control_;
  std::unique_ptr<Thread> worker_ = std::make_unique<Thread>();
};

class GraphService::Impl {
 public:
  ServiceMemoryPlan plan;
  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  std::unique_ptr<Store> store;
  std::unique_ptr<Graph> graph;
  std::map<std::string, std::unique_ptr<RowLookup>, std::less<>> rows;
  std::unique_ptr<BackgroundCompaction> compaction;
  std::unique_ptr<MetricsReporter> reporter;  // declared last, so that it is destroyed first
};

GraphService::GraphService(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GraphService::~GraphService() = default;

Graph& GraphService::graph() { return *impl_->graph; }
const Graph& GraphService::graph() const { return *impl_->graph; }
Store& GraphService::store() { return *impl_->store; }
const ServiceMemoryPlan& GraphService::memory() const { return impl_->plan; }
MetricsSnapshot GraphService::metrics() const { return impl_->metrics->Snapshot(); }

Result<std::unique_ptr<GraphService>> GraphService::Open(FileSystem& fs, const Path& path,
                                                         const ServiceOptions& options) try {
  RHIZOME_RETURN_IF_ERROR(CheckShares(options));
  std::unique_ptr<GraphService> opened(new GraphService(std::make_unique<Impl>()));
  Impl* const service = opened->impl_.get();
  const CatalogShare catalog = CatalogShareOf(options);
  RHIZOME_ASSIGN_OR_RETURN(service->store, Store::Open(fs, path, options.mode,
                                                       {.catalog_cache_bytes = catalog.cache_bytes,
                                                        .catalog_write_bytes = catalog.write_bytes,
                                                        .wait = options.wait,
                                                        .log = options.log,
                                                        .log_level = options.log_level,
                                                        .at = options.at,
                                                        .metrics = service->metrics}));
  RHIZOME_ASSIGN_OR_RETURN(service->plan, PlanMemory(*service->store, options));
  const ServiceMemoryPlan& plan = service->plan;
  RHIZOME_ASSIGN_OR_RETURN(
      service->graph, Graph::Open(*service->store, {.topology = plan.topology,
                                                    .list_cache_bytes = plan.list_cache_bytes}));
  for (const auto& [array, bytes] : plan.row_caches) {
    RHIZOME_ASSIGN_OR_RETURN(service->rows[array],
                             RowLookup::Open(*service->graph, array, {.memory_bytes = bytes}));
  }
  if (options.warm) {
    const Status warmed = opened->Warm(options.warm_limits);
    const bool cancelled =
        options.warm_limits.control != nullptr && options.warm_limits.control->cancelled();
    if (!warmed.ok() && (warmed.code() != StatusCode::kInterrupted || cancelled))
      return Fail(warmed);
  }
  if (options.compact_when) {
    service->compaction = std::make_unique<BackgroundCompaction>(*service->graph);
    RHIZOME_RETURN_IF_ERROR(
        service->compaction->Start(*options.compact_when, service->store->logger()));
  }
  if (options.metrics) {
    service->reporter = std::make_unique<MetricsReporter>(service->metrics, options.metrics,
                                                          options.metrics_period);
    RHIZOME_RETURN_IF_ERROR(service->reporter->status());
  }
  return opened;
} catch (...) {
  return Fail(StatusOfException());
}

Result<const RowLookup*> GraphService::Rows(std::string_view array) const try {
  if (const auto at = impl_->rows.find(array); at != impl_->rows.end()) return at->second.get();
  return Fail(Status::NotFound(
      fmt::format("array '{}' is not among ServiceOptions::arrays of this service", array)));
} catch (...) {
  return Fail(StatusOfException());
}

Status GraphService::Warm(const LookupOptions& options) const try {
  const Stopwatch watch;
  Status status = WarmNeighbors(*impl_->graph, Direction::kBoth, options);
  for (auto at = impl_->rows.begin(); status.ok() && at != impl_->rows.end(); ++at)
    status = at->second->Warm(options);
  const double seconds = watch.seconds();
  impl_->store->logger().Log(
      status.ok() || status.code() == StatusCode::kInterrupted ? LogLevel::kInfo : LogLevel::kError,
      "service", status.ok() ? "warmed up" : "the warm-up stopped",
      {{"cache_bytes", impl_->metrics->Snapshot().of(Gauge::kCacheBytes)},
       {"seconds", seconds},
       {"status", status.ToString()}});
  return status;
} catch (...) {
  return StatusOfException();
}

std::string GraphService::MetricsAsText() const {
  const std::pair<std::string, std::string> label{"store", impl_->store->path().string()};
  return MetricsText(metrics(), std::span(&label, 1));
}

}  // namespace rhizome
