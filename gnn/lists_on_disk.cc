#include "rhizome/gnn/lists_on_disk.h"

#include <chrono>

namespace rhizome {
namespace {

/// Of one entry that a hop looks up: the entry and its row, the miss and its read, the request.
constexpr std::uint64_t kBytesPerEntry = 160;

}  // namespace

std::uint64_t ListsOnDisk::WorkingBytes(std::uint64_t edges) {
  return DirectNeighborsOptions().staging_bytes + edges * kBytesPerEntry;
}

Result<std::unique_ptr<ListsOnDisk>> ListsOnDisk::Open(const Graph& graph,
                                                       std::uint64_t cache_bytes, IoMaker io,
                                                       const JobControl& control) {
  std::unique_ptr<ListsOnDisk> made(new ListsOnDisk());
  if (cache_bytes > 0) {
    const auto start = std::chrono::steady_clock::now();
    RHIZOME_ASSIGN_OR_RETURN(
        made->cache_,
        NeighborCache::Build(graph, {.direction = Direction::kIn, .budget_bytes = cache_bytes},
                             control));
    made->cache_seconds_ =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  DirectNeighborsOptions options;
  options.io.maker = io;
  RHIZOME_ASSIGN_OR_RETURN(made->neighbors_,
                           DirectNeighbors::Open(graph, Direction::kIn, made->cache_, options));
  return made;
}

ListReadsReport ListsOnDisk::report() const {
  const DirectNeighborsStats stats = neighbors_->stats();
  ListReadsReport report{.cache_bytes = 0,
                         .cached_lists = 0,
                         .cache_seconds = cache_seconds_,
                         .entries = stats.entries,
                         .lists = stats.lists,
                         .hits = stats.cached_lists,
                         .reads = stats.reads,
                         .bytes_read = stats.read_bytes,
                         .mean_depth = stats.mean_depth,
                         .maker = stats.maker,
                         .direct = stats.direct};
  if (cache_ == nullptr) return report;
  report.cache_bytes = cache_->memory_bytes();
  report.cached_lists = cache_->list_count();
  return report;
}

}  // namespace rhizome
