#include "rhizome/index/graph_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "rhizome/index/adjacency.h"
#include "rhizome/index/delta.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/array_rules.h"
#include "rhizome/storage/chunk_array.h"
#include "rhizome/storage/mutex.h"

namespace rhizome {
namespace {

// The clock is looked at once for so many vertices.
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
  NeighborLookup(const Graph& graph, Direction direction, NeighborLists& lists)
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
  // Lists that the delta changes, both directions at once, and ids that are refused.
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

  const Graph& graph_;  // fixed
  const std::shared_ptr<const GraphParts> parts_;
  const std::shared_ptr<const Delta> delta_;
  const Direction direction_;
  const bool typed_;
  const bool weighted_;
  const bool plain_;
  NeighborLists& lists_;
  std::vector<LocalId> scratch_;
};

/// An array of one generation, with the chunks that were read so far. Chunks are never let go while
/// it lives, so that reading a row takes no lock.
class CachedArray {
 public:
  CachedArray(std::unique_ptr<ChunkArray> array, std::uint64_t memory_bytes)
      : array_(std::move(array)),
        left_bytes_(memory_bytes),
        chunks_(array_->entry().chunk_count()) {}

  const ArrayEntry& entry() const { return array_->entry(); }

  Status Read(std::uint64_t row, std::span<std::byte> out) const {
    const std::uint64_t chunk = row / entry().chunk_rows;
    const std::byte* bytes = chunks_[chunk].ready.load(std::memory_order_acquire);
    if (bytes == nullptr) {
      RHIZOME_ASSIGN_OR_RETURN(bytes, Keep(chunk));
    }
    // Beyond the budget.
    if (bytes == nullptr) return array_->ReadRows(row, 1, out);
    std::memcpy(out.data(), bytes + row % entry().chunk_rows * out.size(), out.size());
    return Status::Ok();
  }

 private:
  struct Chunk {
    std::atomic<const std::byte*> ready{nullptr};
    std::vector<std::byte> bytes;
  };

  // Reads a chunk into memory; null where there is no room for it.
  Result<const std::byte*> Keep(std::uint64_t number) const RHIZOME_EXCLUDES(mutex_) {
    const std::uint64_t size = array_->RowsInChunk(number) * entry().row_bytes();
    const MutexLock lock(mutex_);
    Chunk& chunk = chunks_[number];
    if (const std::byte* there = chunk.ready.load(std::memory_order_relaxed)) return there;
    if (size > left_bytes_) return static_cast<const std::byte*>(nullptr);
    std::vector<std::byte> bytes(size);
    RHIZOME_RETURN_IF_ERROR(array_->ReadChunk(number, bytes));
    left_bytes_ -= size;
    chunk.bytes = std::move(bytes);
    const std::byte* const ready = chunk.bytes.data();
    chunk.ready.store(ready, std::memory_order_release);
    return ready;
  }

  const std::unique_ptr<const ChunkArray> array_;
  mutable Mutex mutex_;
  mutable std::uint64_t left_bytes_ RHIZOME_GUARDED_BY(mutex_);
  mutable std::vector<Chunk> chunks_;  // `bytes` are written once, before `ready`
};

}  // namespace

Status LookUpNeighbors(const Graph& graph, std::span<const VertexId> vertices, Direction direction,
                       NeighborLists& lists, const LookupOptions& options) {
  const auto fixed = graph.Snapshot();
  lists.offsets.assign(1, 0);
  lists.vertices.clear();
  lists.types.clear();
  lists.weights.clear();
  NeighborLookup lookup(*fixed, direction, lists);
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(CheckTime(options, i));
    RHIZOME_RETURN_IF_ERROR(lookup.Append(vertices[i]));
    lists.offsets.push_back(lists.vertices.size());
  }
  return Status::Ok();
}

class RowLookup::Impl {
 public:
  Impl(const Graph& graph, std::string_view name, const Options& options)
      : graph_(graph), name_(name), options_(options) {}

  // The array as `store` knows it; opened anew where that is another than before.
  Result<std::shared_ptr<const CachedArray>> ArrayOf(const Store& store) RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const Manifest& manifest = store.manifest();
    if (array_ != nullptr && generation_ == manifest.generation && version_ == manifest.version)
      return array_;
    RHIZOME_ASSIGN_OR_RETURN(auto array, store.OpenArray(name_));
    const ArrayEntry& entry = array->entry();
    if (FirstDimension(entry) != "row" || entry.rows != manifest.info.vertices)
      return Fail(Status::InvalidArgument(
          fmt::format("array '{}' does not have a row for each vertex", name_)));
    const bool same = array_ != nullptr && generation_ == manifest.generation &&
                      array_->entry().array_id == entry.array_id;
    if (!same) array_ = std::make_shared<CachedArray>(std::move(array), options_.memory_bytes);
    generation_ = manifest.generation;
    version_ = manifest.version;
    return array_;
  }

  Status Read(std::span<const VertexId> vertices, std::span<std::byte> out,
              const LookupOptions& options) {
    const auto fixed = graph_.Snapshot();
    RHIZOME_ASSIGN_OR_RETURN(const auto array, ArrayOf(fixed->store()));
    const auto parts = fixed->parts();
    const auto delta = fixed->delta();
    const std::uint64_t row_bytes = array->entry().row_bytes();
    const std::uint64_t array_id = array->entry().array_id;
    if (out.size() != vertices.size() * row_bytes)
      return Status::InvalidArgument(
          fmt::format("{} bytes for {} rows of {} bytes", out.size(), vertices.size(), row_bytes));
    for (std::size_t i = 0; i < vertices.size(); ++i) {
      RHIZOME_RETURN_IF_ERROR(CheckTime(options, i));
      const VertexId vertex = vertices[i];
      if (vertex < 0 || static_cast<std::uint64_t>(vertex) >= delta->vertices())
        return Status::InvalidArgument(
            fmt::format("no vertex {}: the graph has {} vertices", vertex, delta->vertices()));
      const auto to = out.subspan(i * row_bytes, row_bytes);
      if (const auto commit = delta->RowCommit(array_id, vertex)) {
        RHIZOME_RETURN_IF_ERROR(fixed->store().ReadDeltaRow(*commit, array_id, vertex, to));
      } else if (static_cast<std::uint64_t>(vertex) < parts->order.size()) {
        RHIZOME_RETURN_IF_ERROR(
            array->Read(static_cast<std::uint64_t>(parts->order.RowOf(vertex)), to));
      } else {
        FillMissingRows(array->entry(), to);
      }
    }
    return Status::Ok();
  }

  std::uint64_t row_bytes() RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return array_->entry().row_bytes();
  }

 private:
  const Graph& graph_;
  const std::string name_;
  const Options options_;
  Mutex mutex_;
  std::shared_ptr<const CachedArray> array_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t generation_ RHIZOME_GUARDED_BY(mutex_) = 0;
  std::uint64_t version_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

RowLookup::RowLookup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowLookup::~RowLookup() = default;

Result<std::unique_ptr<RowLookup>> RowLookup::Open(const Graph& graph, std::string_view array,
                                                   const Options& options) {
  auto impl = std::make_unique<Impl>(graph, array, options);
  RHIZOME_RETURN_IF_ERROR(impl->ArrayOf(graph.Snapshot()->store()));
  return std::unique_ptr<RowLookup>(new RowLookup(std::move(impl)));
}

std::uint64_t RowLookup::row_bytes() const { return impl_->row_bytes(); }

Status RowLookup::Read(std::span<const VertexId> vertices, std::span<std::byte> out,
                       const LookupOptions& options) const {
  return impl_->Read(vertices, out, options);
}

}  // namespace rhizome
