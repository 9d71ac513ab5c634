#include "cache/feed/lists_on_disk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "index/sample/joined_neighbors.h"
#include "index/sample/sampled_directions.h"
#include "index/sample/sampler_sweep.h"
#include "index/topology/adjacency.h"
#include "storage/base/stopwatch.h"
#include "storage/section/section_file.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Bytes per entry that a window looks up: the entry and its row, the miss and its read, and the
/// request.
constexpr std::uint64_t kBytesPerEntry = 160;

/// Read buffers of a window. The reads of a window are close together, so they are few and long.
constexpr std::uint64_t kStagingBytes = std::uint64_t{4} << 20;

/// Returns the share of a cache of `bytes` bytes that one side gets, in proportion to the size of
/// its lists.
std::uint64_t BytesOfSide(const GraphSnapshot& graph, const WalkedSides& sides, std::size_t side,
                          std::uint64_t bytes) {
  if (sides.count() == 1) return bytes;
  const auto full = [&](std::size_t of) {
    return static_cast<double>(NeighborCache::NeedsOf(graph, sides.direction(of)).full_bytes);
  };
  const double first = full(0);
  const auto of_first = static_cast<std::uint64_t>(
      std::round(static_cast<double>(bytes) * first / (first + full(1))));
  return side == 0 ? of_first : bytes - of_first;
}

/// A sink without sync: the file is worthless after a crash.
struct ScratchSink final : ByteSink {
  Status Append(std::span<const std::byte> bytes) override { return file->Append(bytes); }
  std::unique_ptr<WritableFile> file;
};

}  // namespace

std::uint64_t ListsOnDisk::WorkingBytes(const SamplerOptions& sampling, std::uint64_t edges) {
  const std::uint64_t windows = std::min(sampling.threads, kSweepWindows);
  const std::uint64_t draws = std::min(edges, kSweepDraws);
  // With all neighbours, a window may be the list of a hub.
  const auto has_all = [](const std::vector<std::int64_t>& fanouts) {
    return std::find(fanouts.begin(), fanouts.end(), kAllNeighbors) != fanouts.end();
  };
  const bool all = has_all(sampling.fanouts) || std::any_of(sampling.typed_fanouts.begin(),
                                                            sampling.typed_fanouts.end(), has_all);
  return windows * kStagingBytes + (windows * draws + (all ? edges - draws : 0)) * kBytesPerEntry;
}

std::uint64_t ListsOnDisk::SweptBytes(const Minibatch& minibatch) {
  const auto if_any = [](const auto& values) {
    return values.empty() ? 0 : sizeof(values.front());
  };
  const std::uint64_t expanded =
      minibatch.hop_lists.empty() ? minibatch.hop_offsets.rbegin()[1] : minibatch.hop_lists.back();
  return minibatch.rows.size() * sizeof(Row) +
         minibatch.neighbors.size() * (sizeof(Row) + if_any(minibatch.types) +
                                       if_any(minibatch.weights) + if_any(minibatch.edges)) +
         expanded * (sizeof(SweptVertex) + sizeof(SweptDraws::List) + sizeof(std::uint64_t));
}

NeighborCache::Needs ListsOnDisk::CacheNeeds(const GraphSnapshot& graph, Direction direction) {
  const WalkedSides sides(graph, direction);
  NeighborCache::Needs sum;
  for (std::size_t side = 0; side < sides.count(); ++side) {
    const NeighborCache::Needs needs = NeighborCache::NeedsOf(graph, sides.direction(side));
    sum.table_bytes += needs.table_bytes;
    sum.full_bytes += needs.full_bytes;
    sum.build_bytes = std::max(sum.build_bytes, needs.build_bytes);
  }
  return sum;
}

Result<std::unique_ptr<ListsOnDisk>> ListsOnDisk::Open(const GraphSnapshot& graph,
                                                       Direction direction,
                                                       std::uint64_t cache_bytes, const Path& dump,
                                                       IoMaker io, const JobControl& control) {
  if (graph.partition_count() == 0 || graph.partition(0).resident())
    return std::unique_ptr<ListsOnDisk>();
  std::unique_ptr<ListsOnDisk> made(new ListsOnDisk(graph));
  DirectNeighborsOptions options;
  options.io.maker = io;
  options.staging_bytes = kStagingBytes;
  const WalkedSides sides(graph, direction);
  for (std::size_t i = 0; i < sides.count(); ++i) {
    Side side{.direction = sides.direction(i)};
    std::shared_ptr<const NeighborCache> cache;
    if (cache_bytes > 0) {
      if (!dump.empty()) side.dump = i == 0 ? dump : Path(dump.string() + "-in");
      RHIZOME_ASSIGN_OR_RETURN(
          cache, made->BuildCache(BytesOfSide(graph, sides, i, cache_bytes), side, control));
    }
    RHIZOME_ASSIGN_OR_RETURN(
        side.neighbors, DirectNeighbors::Open(graph, side.direction, std::move(cache), options));
    made->sides_.push_back(std::move(side));
  }
  made->source_ = made->sides_[0].neighbors;
  if (sides.count() == 2) {
    made->source_ = std::make_shared<JoinedNeighbors>(graph, made->sides_[0].neighbors,
                                                      made->sides_[1].neighbors);
  }
  return made;
}

/// Builds the cache of one side. If the side has a dump file, writes the cache to it and returns
/// null.
Result<std::shared_ptr<const NeighborCache>> ListsOnDisk::BuildCache(std::uint64_t bytes,
                                                                     Side& side,
                                                                     const JobControl& control) {
  const Stopwatch watch;
  RHIZOME_ASSIGN_OR_RETURN(
      std::shared_ptr<const NeighborCache> cache,
      NeighborCache::Build(graph_, {.direction = side.direction, .budget_bytes = bytes}, control));
  cache_bytes_ += cache->memory_bytes();
  cached_lists_ += cache->list_count();
  if (!side.dump.empty()) {
    ScratchSink sink;
    RHIZOME_ASSIGN_OR_RETURN(sink.file, graph_.store().fs().CreateFile(side.dump));
    RHIZOME_RETURN_IF_ERROR(cache->Dump(sink, graph_));
    RHIZOME_RETURN_IF_ERROR(sink.file->Close());
    cache = nullptr;
  }
  cache_seconds_ += watch.seconds();
  return cache;
}

Status ListsOnDisk::Lend() {
  bool loaded = false;
  for (const Side& side : sides_) {
    if (side.dump.empty()) continue;
    RHIZOME_ASSIGN_OR_RETURN(
        auto cache, NeighborCache::Load(graph_.store().fs(), side.dump, graph_, side.direction));
    loaded = true;
    RHIZOME_RETURN_IF_ERROR(side.neighbors->SetCache(std::move(cache)));
  }
  loads_ += loaded ? 1 : 0;
  return Status::Ok();
}

void ListsOnDisk::TakeBack() {
  for (const Side& side : sides_)
    if (!side.dump.empty()) static_cast<void>(side.neighbors->SetCache(nullptr));
}

ListReadsReport ListsOnDisk::report() const {
  ListReads sum;
  for (const Side& side : sides_) {
    const ListReads reads = side.neighbors->stats();
    sum.mean_depth = sum.mean_depth * static_cast<double>(sum.reads) +
                     reads.mean_depth * static_cast<double>(reads.reads);
    ListReads::Each([](const char*, auto& total, auto figure) { total += figure; }, sum, reads);
    if (sum.reads > 0) sum.mean_depth /= static_cast<double>(sum.reads);
    sum.maker = reads.maker;
    sum.direct = reads.direct;
  }
  return {sum, cache_bytes_, cached_lists_, cache_seconds_, loads_};
}

}  // namespace internal
}  // namespace rhizome
