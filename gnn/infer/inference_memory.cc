#include "gnn/infer/inference_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "cache/blocks/block_plan.h"
#include "cache/blocks/layer_output.h"
#include "cache/feed/lists_on_disk.h"
#include "cache/feed/resolve_sampling.h"
#include "cache/job/memory_plan.h"
#include "cache/job/process_memory.h"
#include "gnn/infer/input_arrays.h"
#include "gnn/infer/layer_sizes.h"
#include "storage/base/bytes_left.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Memory that libtorch and the allocator need on first use. With two threads, up to 50 MiB were
/// measured, and 9 MiB of difference between runs of the same job.
constexpr std::uint64_t kInferSlackBytes = std::uint64_t{56} << 20;

/// Shares of the --memory budget for the stage and for chunks that are read ahead, with their
/// limits. Without --memory they use the defaults, which are also the max sizes. A stage that fits
/// into the CPU's cache is no slower than a larger one. kDefaultBlockBytes is the size of a block
/// without --memory.
constexpr std::uint64_t kStageShare = 16;
constexpr std::uint64_t kDefaultStageBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMinStageBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kAheadShare = 32;
constexpr std::uint64_t kDefaultAheadBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMinAheadBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kDefaultBlockBytes = std::uint64_t{512} << 20;
constexpr std::uint64_t kMinCacheShare = 4;
constexpr std::uint64_t kSamplewiseBlockRows = 1024;

/// Max number of threads that encode and write, and the share of memory for all of them but the
/// first.
constexpr std::uint32_t kMaxWriters = 4;
constexpr std::uint64_t kWriterShare = 6;

/// Returns the largest number below `limit` for which fits(number) holds, to within 1 MiB, or 0.
/// All smaller numbers must fit, too.
template <typename Fits>
std::uint64_t MostThatFits(std::uint64_t limit, const Fits& fits) {
  std::uint64_t most = 0;
  while (limit - most > (std::uint64_t{1} << 20)) {
    const std::uint64_t middle = most + (limit - most) / 2;
    (fits(middle) ? most : limit) = middle;
  }
  return most;
}

/// Divides the memory in steps: (1) start with the defaults; (2) with a limit, size the stage, the
/// chunks read ahead, the writers and the block (ShareOut); (3) plan the cache from the memory that
/// remains; (4) drop a cache that is too small to help. `tried_` holds the decisions so far, and
/// `sizes_` the memory that they need.
class Division {
 public:
  Division(const InferMemoryInput& input, const ArrayEntry& first)
      : input_(input),
        features_(first),
        tried_(input.layerwise),
        sizes_(input.graph, input.model, tried_) {}

  Result<InferMemory> Run() {
    const InferTuning& tuning = input_.options.tuning;
    const std::uint64_t limit = input_.options.resources.memory_bytes;
    LayerMemory& memory = tried_.memory;
    memory = {.cache_bytes = tuning.cache_bytes.value_or(0),
              .block_bytes = kDefaultBlockBytes,
              .stage_bytes = kDefaultStageBytes,
              .ahead_bytes = kDefaultAheadBytes,
              .writers = input_.one_writer
                             ? 1
                             : std::clamp<std::uint32_t>(tried_.threads, 1, kMaxWriters)};
    if (tuning.block_rows == 0 && input_.options.mode == InferMode::kSamplewise) {
      tried_.tuning.block_rows = kSamplewiseBlockRows;
    }
    MemoryNeeds needs;
    needs.held_bytes = HeldBytes(input_.base_bytes);
    if (limit != 0) ShareOut(BytesLeft(limit, needs.held_bytes));
    needs.working_bytes = WorkingBytes();
    needs.cacheable_bytes = sizes_.CacheableBytes(features_);
    if (input_.lists_are_read) {
      const NeighborCache::Needs cache =
          ListsOnDisk::CacheNeeds(input_.graph, tried_.sampling.sampler.direction);
      needs.neighbor_full_bytes = cache.full_bytes;
      needs.neighbor_table_bytes = cache.table_bytes;
      needs.neighbor_build_bytes = cache.build_bytes;
    }
    // Each list is read only a few times, in order, so lists are not cached unless requested.
    RHIZOME_ASSIGN_OR_RETURN(
        const JobMemoryPlan plan,
        PlanMemory(limit,
                   {.cache_bytes = tuning.cache_bytes,
                    .superbatch = 1,
                    .neighbor_cache_bytes = tuning.neighbor_cache_bytes.value_or(0),
                    .in_turn = false},
                   needs));
    // With a cache, the working memory is larger: chunks read ahead occupy frames while others
    // wait.
    memory.cache_bytes = plan.cache_bytes;
    memory.cache_bytes = BytesLeft(plan.cache_bytes, WorkingBytes() - needs.working_bytes);
    // In a sequential scan, a cache saves only the reads of the part that it holds, so a small
    // cache is not worth its planning.
    if (!tuning.cache_bytes && memory.cache_bytes < needs.cacheable_bytes / kMinCacheShare)
      memory.cache_bytes = 0;
    // The memory for choosing row orders is released before blocks and cache are allocated.
    if (limit != 0) memory.layout_bytes = plan.cache_bytes + memory.block_bytes;
    return InferMemory{.layers = memory,
                       .block_rows = tried_.tuning.block_rows,
                       .neighbor_cache_bytes = plan.neighbor_cache_bytes};
  }

 private:
  /// Gives all remaining memory to sums, because a cache saves fewer reads.
  void ShareOut(std::uint64_t left) {
    LayerMemory& memory = tried_.memory;
    const InferTuning& tuning = input_.options.tuning;
    memory.stage_bytes = std::clamp(left / kStageShare, kMinStageBytes, kDefaultStageBytes);
    memory.ahead_bytes = std::clamp(left / kAheadShare, kMinAheadBytes, kDefaultAheadBytes);
    while (memory.writers > 1 && !WritersFit(left / kWriterShare)) --memory.writers;
    const std::uint64_t fixed =
        tuning.cache_bytes.value_or(0) + tuning.neighbor_cache_bytes.value_or(0);
    const auto fits = [&](std::uint64_t block_bytes) {
      memory.block_bytes = block_bytes;
      return WorkingBytes() + fixed <= left;
    };
    memory.block_bytes = MostThatFits(left, fits);
    if (WorkingBytes() + fixed <= left) return;
    // The shares are too much if memory is very scarce, so use the minimum sizes.
    memory.stage_bytes = kMinStageBytes;
    memory.ahead_bytes = kMinAheadBytes;
    memory.writers = 1;
    memory.block_bytes = MostThatFits(left, fits);
  }

  /// Returns whether all writers but the first need `bytes` or less.
  bool WritersFit(std::uint64_t bytes) const {
    for (std::uint32_t layer = 0; layer < sizes_.layers(); ++layer) {
      const ArrayEntry output = sizes_.Written(layer);
      const std::uint64_t all = LayerOutput::Bytes(output, tried_.memory.writers);
      if (all - LayerOutput::Bytes(output, 1) > bytes) return false;
    }
    return true;
  }

  std::uint64_t WorkingBytes() const {
    return kInferSlackBytes + input_.pinned_bytes + sizes_.WorkingBytes(features_) +
           SamplerTableBytes(input_.graph, tried_.sampling.sampler) +
           (input_.lists_are_read
                ? ListsOnDisk::WorkingBytes(tried_.sampling.sampler, kSampledEdges)
                : 0);
  }

  const InferMemoryInput& input_;
  const ArrayEntry& features_;  // the array that the first layer reads
  LayerwiseOptions tried_;
  const LayerSizes sizes_;
};

}  // namespace

Result<InferMemory> DivideMemory(const InferMemoryInput& input) {
  RHIZOME_ASSIGN_OR_RETURN(const ArrayEntry first,
                           FirstSource(input.graph, input.model, input.layerwise));
  return Division(input, first).Run();
}

Result<std::uint64_t> WorkerBytes(const InferOptions& options, std::uint64_t own_bytes,
                                  std::uint64_t base_bytes) {
  if (options.resources.memory_bytes == 0) return 0;
  const std::uint64_t held = HeldBytes(base_bytes) + kInferSlackBytes + own_bytes;
  const std::uint64_t share =
      BytesLeft(options.resources.memory_bytes, held) / options.workers.count;
  if (share >> 20 == 0) {
    return Fail(Status::OutOfMemory(
        fmt::format("a memory limit of {} MiB leaves nothing for {} workers, because this process "
                    "needs {} MiB; raise the limit, or use fewer workers",
                    options.resources.memory_bytes >> 20, options.workers.count, held >> 20)));
  }
  return share;
}

}  // namespace internal
}  // namespace rhizome
