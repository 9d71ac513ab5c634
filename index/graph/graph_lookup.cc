// Batched look-ups for services. LookUpNeighbors appends the lists of many vertices
// (NeighborLookup); WarmNeighbors fills the graph's list cache (ListWarmer). RowLookup splits a
// request into rows of the delta and rows of the generation (RowOverlay), and reads the latter
// through CachedRows.

#include "rhizome/graph_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/delta/row_overlay.h"
#include "index/graph/cached_rows.h"
#include "index/graph/hot_blocks.h"
#include "index/topology/adjacency.h"
#include "index/topology/block_cache.h"
#include "index/topology/vertex_order.h"
#include "rhizome/chunk_array.h"
#include "storage/array/array_files.h"
#include "storage/array/row_sums.h"
#include "storage/base/call_metrics.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/section/section_format.h"

namespace rhizome {
namespace {

// The clock is read once every kCheckEvery vertices.
constexpr std::size_t kCheckEvery = 32;

Status CheckTime(const LookupOptions& options, std::size_t done) {
  if (done % kCheckEvery != 0) return Status::Ok();
  if (options.control != nullptr && options.control->cancelled())
    return Status::Interrupted("the look-up was cancelled");
  if (options.deadline != std::chrono::steady_clock::time_point::max() &&
      std::chrono::steady_clock::now() >= options.deadline)
    return Status::Interrupted(fmt::format("the deadline passed after {} vertices", done));
  return Status::Ok();
}

/// One call of LookUpNeighbors.
class NeighborLookup {
 public:
  NeighborLookup(const GraphSnapshot& graph, Direction direction, NeighborLists& lists)
      : graph_(graph),
        parts_(graph.parts()),
        delta_(graph.delta()),
        direction_(direction == Direction::kBoth && parts_->info().symmetric ? Direction::kOut
                                                                             : direction),
        typed_(delta_->edge_types().size() > 1),
        weighted_(parts_->info().weighted),
        plain_(direction_ != Direction::kBoth && parts_->partitions.front().has(direction_)),
        lists_(lists) {}

  Status Append(VertexId vertex) {
    const bool known = vertex >= 0 && static_cast<std::uint64_t>(vertex) < parts_->order.size();
    if (!plain_ || !known || delta_->Touches(vertex, direction_)) return AppendMerged(vertex);
    return parts_->ForEachPart(parts_->order.RowOf(vertex), [&](PartitionId p, LocalId local) {
      return AppendPart(parts_->partitions[p], local);
    });
  }

 private:
  // Handles lists that the delta changes, requests for both directions, and ids out of range, which
  // Neighbors refuses.
  Status AppendMerged(VertexId vertex) {
    RHIZOME_ASSIGN_OR_RETURN(const auto list, graph_.Neighbors(vertex, direction_));
    for (const Neighbor& neighbor : list) {
      lists_.vertices.push_back(neighbor.vertex);
      if (typed_) lists_.types.push_back(neighbor.type);
      if (weighted_) lists_.weights.push_back(neighbor.weight);
    }
    return Status::Ok();
  }

  Status AppendPart(const Adjacency& adjacency, LocalId local) {
    RHIZOME_ASSIGN_OR_RETURN(const auto list, adjacency.FetchList(local, direction_, scratch_));
    for (const LocalId neighbor : list)
      lists_.vertices.push_back(parts_->order.VertexAt(adjacency.RowOf(neighbor)));
    for (std::uint64_t i = 0; typed_ && i < list.size();) {
      const TypeId type = adjacency.TypeOfEntry(local, direction_, i);
      const std::uint64_t count = adjacency.EntriesOfType(local, direction_, type).count;
      lists_.types.insert(lists_.types.end(), count, type);
      i += count;
    }
    const std::uint64_t first = weighted_ ? adjacency.Entries(local, direction_).first : 0;
    for (std::uint64_t i = 0; weighted_ && i < list.size(); ++i)
      lists_.weights.push_back(adjacency.Weight(direction_, first + i));
    return Status::Ok();
  }

  const GraphSnapshot& graph_;  // a snapshot
  const std::shared_ptr<const GraphParts> parts_;
  const std::shared_ptr<const Delta> delta_;
  const Direction direction_;
  const bool typed_;
  const bool weighted_;
  const bool plain_;
  NeighborLists& lists_;
  std::vector<LocalId> scratch_;
};

/// Returns the progress function of Warm. It also stops Warm at its limits.
std::function<Status(std::uint64_t, std::uint64_t)> TickOf(std::string_view phase,
                                                           const LookupOptions& options) {
  return [phase, &options](std::uint64_t done, std::uint64_t total) -> Status {
    if (options.control != nullptr)
      RHIZOME_RETURN_IF_ERROR(
          options.control->Report({.phase = phase, .done = done, .total = total}));
    return CheckTime(options, 0);
  };
}

/// Reads lists that are on disk into the graph's cache.
class ListWarmer {
 public:
  ListWarmer(const GraphParts& parts, std::vector<Direction> directions,
             const LookupOptions& options)
      : parts_(parts),
        directions_(std::move(directions)),
        cache_(*parts.list_cache),
        tick_(TickOf("warming neighbour lists", options)) {}

  Status Run() {
    if (!cache_.holds_all()) {
      RHIZOME_RETURN_IF_ERROR(ForEachBlock([&](auto&, std::uint64_t, std::uint32_t degree_class) {
        hot_.Count(degree_class);
        return Status::Ok();
      }));
    }
    hot_.Choose(cache_.free_frames());
    RHIZOME_RETURN_IF_ERROR(ForEachBlock(
        [&](const Adjacency& partition, std::uint64_t block, std::uint32_t degree_class) {
          if (cache_.holds_all() || hot_.Take(degree_class)) return Add(partition, block);
          return Status::Ok();
        }));
    return Load();
  }

 private:
  template <typename Visit>
  Status ForEachBlock(Visit&& visit) {
    for (const Adjacency& partition : parts_.partitions)
      for (const Direction direction : directions_)
        RHIZOME_RETURN_IF_ERROR(ForEachBlock(partition, direction, visit));
    return Status::Ok();
  }

  // Calls visit(partition, block, class) for each block with lists of a direction, in file order.
  // The class of a block is the class of its vertex with the highest degree.
  template <typename Visit>
  Status ForEachBlock(const Adjacency& partition, Direction direction, Visit& visit) {
    std::uint64_t block = 0;
    std::uint32_t highest = 0;
    bool any = false;
    for (std::uint64_t v = 0; v < partition.vertex_count(); ++v) {
      if (v % 65536 == 0) RHIZOME_RETURN_IF_ERROR(Tick());
      const auto local = static_cast<LocalId>(v);
      const Adjacency::Extent extent = partition.ExtentOf(local, direction);
      if (extent.size_bytes == 0) continue;
      const std::uint32_t own = HotBlocks::ClassOf(partition.GlobalDegree(local, direction));
      const std::uint64_t last = (extent.offset_bytes + extent.size_bytes - 1) / kSectionBlockBytes;
      for (std::uint64_t b = extent.offset_bytes / kSectionBlockBytes; b <= last; ++b) {
        if (any && b != block) {
          RHIZOME_RETURN_IF_ERROR(visit(partition, block, highest));
          highest = 0;
        }
        any = true;
        block = b;
        highest = std::max(highest, own);
      }
    }
    return any ? visit(partition, block, highest) : Status::Ok();
  }

  // Adds a block to the current run; consecutive blocks are read together.
  Status Add(const Adjacency& partition, std::uint64_t block) {
    constexpr std::uint64_t kMaxRun = 256;  // blocks of 4 KiB: a read of 1 MiB
    const bool next = run_of_ == &partition && block == run_first_ + run_count_;
    if (!next || run_count_ == kMaxRun) {
      RHIZOME_RETURN_IF_ERROR(Load());
      run_of_ = &partition;
      run_first_ = block;
    }
    ++run_count_;
    return Status::Ok();
  }

  Status Load() {
    if (run_count_ == 0) return Status::Ok();
    loaded_ += run_count_;
    RHIZOME_RETURN_IF_ERROR(run_of_->LoadBlocks(run_first_, run_count_));
    run_count_ = 0;
    return Tick();
  }

  Status Tick() const {
    return tick_(loaded_ * kSectionBlockBytes, cache_.frame_count() * kSectionBlockBytes);
  }

  const GraphParts& parts_;
  const std::vector<Direction> directions_;
  BlockCache& cache_;
  const std::function<Status(std::uint64_t, std::uint64_t)> tick_;
  HotBlocks hot_;
  const Adjacency* run_of_ = nullptr;
  std::uint64_t run_first_ = 0;
  std::uint64_t run_count_ = 0;
  std::uint64_t loaded_ = 0;
};

// Returns the degree of a row; 0 if its partition is not loaded.
std::uint64_t DegreeOfRow(const GraphParts& parts, std::uint64_t row) {
  const Adjacency& home = parts.partitions[parts.order.OwnerOf(static_cast<Row>(row))];
  const auto local = home.Find(static_cast<Row>(row));
  if (!local) return 0;
  std::uint64_t degree = 0;
  for (const Direction direction : {Direction::kOut, Direction::kIn})
    if (home.has(direction)) degree += home.GlobalDegree(*local, direction);
  return degree;
}

}  // namespace

// Takes a snapshot and appends the list of one vertex after another, checking the limits in
// between.
Status LookUpNeighbors(const Graph& graph, std::span<const VertexId> vertices, Direction direction,
                       NeighborLists& lists, const LookupOptions& options) try {
  const auto fixed = graph.Snapshot();
  Metrics* const metrics = fixed->store().metrics();
  const CallMetrics call(metrics, Timer::kNeighborLookup, Counter::kNeighborLookups);
  if (metrics != nullptr) metrics->Add(Counter::kNeighborVertices, vertices.size());
  lists.offsets.assign(1, 0);
  lists.vertices.clear();
  lists.types.clear();
  lists.weights.clear();
  NeighborLookup lookup(*fixed, direction, lists);
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    Status status = CheckTime(options, i);
    if (status.ok()) status = lookup.Append(vertices[i]);
    if (!status.ok()) return call.Done(std::move(status));
    lists.offsets.push_back(lists.vertices.size());
  }
  return Status::Ok();
} catch (...) {
  return StatusOfException();
}

Status WarmNeighbors(const Graph& graph, Direction direction, const LookupOptions& options) try {
  const auto parts = graph.Snapshot()->parts();
  if (parts->list_cache == nullptr || parts->list_cache->frame_count() == 0) return Status::Ok();
  std::vector<Direction> directions;
  for (const Direction list : {Direction::kOut, Direction::kIn}) {
    const bool wanted = direction == Direction::kBoth || direction == list;
    const bool same = parts->info().symmetric && !directions.empty();
    if (wanted && !same && parts->partitions.front().has(list)) directions.push_back(list);
  }
  return ListWarmer(*parts, std::move(directions), options).Run();
} catch (...) {
  return StatusOfException();
}

class RowLookup::Impl {
 public:
  Impl(const Graph& graph, std::string_view name, const Options& options)
      : graph_(graph), name_(name), options_(options) {}

  // Returns the array that `store` has under the name; opens it again if it differs from the array
  // opened before.
  Result<std::shared_ptr<const CachedRows>> ArrayOf(const Store& store) RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const Manifest& manifest = store.manifest();
    if (array_ != nullptr && generation_ == manifest.generation && version_ == manifest.version)
      return array_;
    RHIZOME_ASSIGN_OR_RETURN(auto array, store.OpenArray(name_));
    const ArrayEntry& entry = array->entry();
    RHIZOME_RETURN_IF_ERROR(CheckRowRequest(entry, manifest.info, 0, 0));
    const bool same = array_ != nullptr && generation_ == manifest.generation &&
                      array_->entry().array_id == entry.array_id;
    if (!same) {
      array_ = nullptr;  // frees its memory first
      RHIZOME_ASSIGN_OR_RETURN(array_,
                               CachedRows::Open(store, std::move(array), options_.memory_bytes));
    }
    generation_ = manifest.generation;
    version_ = manifest.version;
    row_bytes_ = array_->entry().row_bytes();
    return array_;
  }

  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out,
              const LookupOptions& options) {
    const auto fixed = graph_.Snapshot();
    Metrics* const metrics = fixed->store().metrics();
    const CallMetrics call(metrics, Timer::kRowLookup, Counter::kRowLookups);
    Hits hits;
    Status status = Read(*fixed, vertices, out, options, hits);
    if (metrics != nullptr) {
      metrics->Add(Counter::kRowVertices, vertices.size());
      if (hits.in_memory > 0) metrics->Add(Counter::kRowCacheHits, hits.in_memory);
      if (hits.from_disk > 0) metrics->Add(Counter::kRowCacheMisses, hits.from_disk);
    }
    return call.Done(std::move(status));
  }

  Status Warm(const LookupOptions& options) {
    const auto fixed = graph_.Snapshot();
    RHIZOME_ASSIGN_OR_RETURN(const auto array, ArrayOf(fixed->store()));
    const auto parts = fixed->parts();
    return array->Warm([&](std::uint64_t row) { return DegreeOfRow(*parts, row); },
                       TickOf("warming rows", options));
  }

  std::uint64_t row_bytes() RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return row_bytes_;
  }

 private:
  struct Hits {
    std::uint64_t in_memory = 0;
    std::uint64_t from_disk = 0;
  };

  Status Read(const GraphSnapshot& fixed, std::span<const VertexId> vertices,
              std::span<std::byte> out, const LookupOptions& options, Hits& hits) {
    RHIZOME_ASSIGN_OR_RETURN(const auto array, ArrayOf(fixed.store()));
    const auto parts = fixed.parts();
    const auto delta = fixed.delta();
    const ArrayEntry& entry = array->entry();
    RHIZOME_RETURN_IF_ERROR(CheckRowRequest(entry, fixed.info(), vertices.size(), out.size()));
    const RowOverlay overlay{fixed.store(), *parts, *delta, entry};
    // All misses of a call form one batch. With a deadline or control, the batches are smaller, so
    // that the limits are checked between them.
    const bool hurried = options.control != nullptr ||
                         options.deadline != std::chrono::steady_clock::time_point::max();
    const std::size_t turn =
        hurried ? CachedRows::kRowsPerTurn : std::max<std::size_t>(vertices.size(), 1);
    // A look-up of a few rows allocates no memory for the targets.
    std::array<RowTarget, 4> few;
    std::vector<RowTarget> many;
    if (std::min(turn, vertices.size()) > few.size()) many.resize(std::min(turn, vertices.size()));
    const std::span<RowTarget> room = many.empty() ? std::span<RowTarget>(few) : many;
    for (std::size_t first = 0; first < vertices.size(); first += turn) {
      RHIZOME_RETURN_IF_ERROR(CheckTime(options, first));
      const std::size_t count = std::min(turn, vertices.size() - first);
      RHIZOME_ASSIGN_OR_RETURN(
          const std::size_t from_files,
          overlay.Split(vertices.subspan(first, count),
                        out.subspan(first * entry.row_bytes(), count * entry.row_bytes()), room));
      const auto targets = room.first(from_files);
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t in_memory, array->Read(targets));
      hits.in_memory += in_memory;
      hits.from_disk += targets.size() - in_memory;
    }
    return Status::Ok();
  }

  const Graph& graph_;
  const std::string name_;
  const Options options_;
  Mutex mutex_;
  std::shared_ptr<const CachedRows> array_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t generation_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::uint64_t version_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::uint64_t row_bytes_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

RowLookup::RowLookup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowLookup::~RowLookup() = default;

Result<std::unique_ptr<RowLookup>> RowLookup::Open(const Graph& graph, std::string_view array,
                                                   const Options& options) try {
  auto impl = std::make_unique<Impl>(graph, array, options);
  RHIZOME_RETURN_IF_ERROR(impl->ArrayOf(graph.Snapshot()->store()));
  return std::unique_ptr<RowLookup>(new RowLookup(std::move(impl)));
} catch (...) {
  return Fail(StatusOfException());
}

std::uint64_t RowLookup::row_bytes() const { return impl_->row_bytes(); }

Status RowLookup::Warm(const LookupOptions& options) const {
  return Guarded([&] { return impl_->Warm(options); });
}

Status RowLookup::Read(std::span<const VertexId> vertices, std::span<std::byte> out,
                       const LookupOptions& options) const try {
  return impl_->Read(vertices, out, options);
} catch (...) {
  return StatusOfException();
}

}  // namespace rhizome
