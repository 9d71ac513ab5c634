#include "rhizome/cache/lists_on_disk.h"

#include "rhizome/cache/neighbor_cache.h"
#include "rhizome/index/adjacency.h"
#include "rhizome/storage/section_file.h"
#include "rhizome/storage/stopwatch.h"

namespace rhizome::inline internal {
namespace {

/// Bytes for each entry that a hop looks up: the entry and its row, the miss and its read, and the
/// request.
constexpr std::uint64_t kBytesPerEntry = 160;

/// No sync: the file is worth nothing after a crash.
struct ScratchSink final : ByteSink {
  Status Append(std::span<const std::byte> bytes) override { return file->Append(bytes); }
  std::unique_ptr<WritableFile> file;
};

}  // namespace

std::uint64_t ListsOnDisk::WorkingBytes(std::uint64_t edges) {
  return DirectNeighborsOptions().staging_bytes + edges * kBytesPerEntry;
}

Result<std::unique_ptr<ListsOnDisk>> ListsOnDisk::Open(const GraphSnapshot& graph,
                                                       Direction direction,
                                                       std::uint64_t cache_bytes, const Path& dump,
                                                       IoMaker io, const JobControl& control) {
  if (graph.partition_count() == 0 || graph.partition(0).resident())
    return std::unique_ptr<ListsOnDisk>();
  std::unique_ptr<ListsOnDisk> made(new ListsOnDisk(graph, direction));
  std::shared_ptr<const NeighborCache> cache;
  if (cache_bytes > 0) {
    const Stopwatch watch;
    RHIZOME_ASSIGN_OR_RETURN(
        cache, NeighborCache::Build(graph, {.direction = direction, .budget_bytes = cache_bytes},
                                    control));
    made->cache_bytes_ = cache->memory_bytes();
    made->cached_lists_ = cache->list_count();
    if (!dump.empty()) {
      ScratchSink sink;
      RHIZOME_ASSIGN_OR_RETURN(sink.file, graph.store().fs().CreateFile(dump));
      RHIZOME_RETURN_IF_ERROR(cache->Dump(sink, graph));
      RHIZOME_RETURN_IF_ERROR(sink.file->Close());
      cache = nullptr;
      made->dump_ = dump;
    }
    made->cache_seconds_ = watch.seconds();
  }
  DirectNeighborsOptions options;
  options.io.maker = io;
  RHIZOME_ASSIGN_OR_RETURN(made->neighbors_,
                           DirectNeighbors::Open(graph, direction, std::move(cache), options));
  return made;
}

Status ListsOnDisk::Lend() {
  if (dump_.empty()) return Status::Ok();
  RHIZOME_ASSIGN_OR_RETURN(auto cache,
                           NeighborCache::Load(graph_.store().fs(), dump_, graph_, direction_));
  ++loads_;
  return neighbors_->SetCache(std::move(cache));
}

void ListsOnDisk::TakeBack() {
  if (!dump_.empty()) static_cast<void>(neighbors_->SetCache(nullptr));
}

ListReadsReport ListsOnDisk::report() const {
  return {neighbors_->stats(), cache_bytes_, cached_lists_, cache_seconds_, loads_};
}

}  // namespace rhizome::inline internal
