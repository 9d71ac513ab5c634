#include "cache/feed/array_feed.h"

#include <algorithm>
#include <utility>

namespace rhizome {
inline namespace internal {
namespace {

/// Holding more than this multiple of the planned rows is an error.
constexpr std::uint64_t kHeldMargin = 16;
constexpr std::uint64_t kMaxSlots = std::uint64_t{1} << 31;

/// Returns the number of slots for rows that are held outside the cache. A minibatch holds at most
/// all rows of the graph.
HoldLimits HoldLimitsOf(std::uint64_t held_rows, std::uint64_t row_count) {
  const std::uint64_t most = std::min(kMaxSlots, kMinibatchesAlive * row_count);
  if (held_rows == 0) return {.slots = most, .most = most};
  return {.slots = std::min(held_rows, most), .most = std::min(held_rows * kHeldMargin, most)};
}

}  // namespace

ArrayFeed::ArrayFeed(const FeedPipelineOptions& options, std::string array,
                     std::unique_ptr<FeatureCache> cache, const FeatureDecoder& decoder)
    : array_(std::move(array)),
      policy_(options.policy),
      decoder_(decoder),
      cache_(std::move(cache)) {
  if (KeepsHistory(options)) history_.emplace(cache_->row_count());
  if (options.over_ranks && options.policy == PolicyKind::kBelady)
    over_ranks_.emplace(*options.over_ranks, cache_->frame_count());
}

Result<std::unique_ptr<ArrayFeed>> ArrayFeed::Open(const GraphSnapshot& graph,
                                                   const FeedPipelineOptions& options,
                                                   const std::string& array,
                                                   const InputShare& share,
                                                   std::size_t staging_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(const auto opened, graph.store().OpenArray(array));
  RHIZOME_ASSIGN_OR_RETURN(const FeatureDecoder decoder,
                           FeatureDecoder::Create(opened->entry(), options.normalize));
  FeatureCacheOptions cache_options;
  cache_options.capacity_bytes = share.cache_bytes;
  cache_options.held = HoldLimitsOf(share.held_rows, graph.vertex_count());
  cache_options.kept_row_bytes = decoder.row_bytes();
  if (!decoder.takes_as_stored()) {
    cache_options.on_arrival = [decoder](std::span<std::byte> row) { decoder.DecodeRow(row); };
  }
  cache_options.read_cost = share.read_cost;
  cache_options.fetcher = options.fetcher;
  cache_options.reader.io.maker = options.io;
  cache_options.reader.io.depth = options.depth;
  cache_options.reader.staging_bytes = staging_bytes;
  RHIZOME_ASSIGN_OR_RETURN(auto cache, FeatureCache::Open(graph, array, cache_options));
  return std::unique_ptr<ArrayFeed>(new ArrayFeed(options, array, std::move(cache), decoder));
}

Result<std::unique_ptr<Policy>> ArrayFeed::MakeSchedule(const Trace& trace, bool in_turns) {
  ScheduleHistory* const history = history_ ? &*history_ : nullptr;
  if (over_ranks_) {
    if (in_turns) over_ranks_->Empty();
    return over_ranks_->Make(trace, history);
  }
  return MakePolicy({.kind = policy_,
                     .frame_count = cache_->frame_count(),
                     .key_count = cache_->row_count(),
                     .unit_bytes = cache_->array().row_bytes(),
                     .cost = cache_->read_cost(),
                     .history = history},
                    trace);
}

Result<FeatureRows> ArrayFeed::Hold(std::span<const Row> rows,
                                    std::optional<std::vector<std::uint32_t>> row_of) {
  HeldRows held;
  RHIZOME_RETURN_IF_ERROR(cache_->Hold(rows, held));
  if (!row_of) return FeatureRows(std::move(held), decoder_.type(), decoder_.dim());
  return FeatureRows(std::move(held), decoder_.type(), decoder_.dim(), *std::move(row_of));
}

RowReads ArrayFeed::TakeReads() {
  const RowReads now = cache_->stats();
  RowReads reads = now;
  reads -= taken_;
  taken_ = now;
  return reads;
}

}  // namespace internal
}  // namespace rhizome
