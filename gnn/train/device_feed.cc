#include "gnn/train/device_feed.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gnn/ops/device_failure.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {
namespace {

/// The distinct rows of a minibatch in the order of first use, as in its superbatch's trace. Parts
/// of a disjoint sample share rows.
struct RowsToBring {
  std::span<const Row> keys;
  std::vector<Row> distinct;             // only for a disjoint sample; others are distinct
  std::vector<std::uint32_t> row_of;     // row by vertex, for a disjoint sample
  std::vector<std::uint32_t> vertex_of;  // by row: a vertex that has it, for a disjoint sample

  explicit RowsToBring(const Minibatch& minibatch) : keys(minibatch.rows) {
    if (minibatch.seed_of.empty()) return;
    std::unordered_map<Row, std::uint32_t> known;
    for (std::uint32_t v = 0; v < minibatch.rows.size(); ++v) {
      const auto [at, is_new] = known.try_emplace(minibatch.rows[v], distinct.size());
      row_of.push_back(at->second);
      if (!is_new) continue;
      distinct.push_back(minibatch.rows[v]);
      vertex_of.push_back(v);
    }
    keys = distinct;
  }
};

}  // namespace

std::uint32_t DeviceFeedOptions::frame_count() const {
  if (policy == PolicyKind::kNone) return 0;
  constexpr std::uint64_t kMaxFrames = std::uint64_t{1} << 30;
  return static_cast<std::uint32_t>(std::min({frame_bytes / row_bytes(), row_count, kMaxFrames}));
}

Result<std::unique_ptr<DeviceFeed>> DeviceFeed::Open(const ComputeDevice& device,
                                                     const DeviceFeedOptions& options) {
  std::unique_ptr<DeviceFeed> feed(new DeviceFeed(device, options));
  RHIZOME_ASSIGN_OR_RETURN(
      feed->pool_, DevicePool::Create(*device.kernels, {.frame_count = options.frame_count(),
                                                        .row_bytes = options.row_bytes(),
                                                        .max_requests = 1,
                                                        .grows = true}));
  return feed;
}

std::uint64_t DeviceFeed::host_bytes() const {
  return pool_->pinned_bytes() + uploads_.pinned_bytes() +
         DeviceFrames::HostBytes(options_.policy, options_.frame_count(), options_.row_count);
}

/// Lets the device read rows in the front of the cache's table, if it can.
Status DeviceFeed::Reach(const FeatureRows& features) {
  // Features without a place are in separate memory, which does not persist.
  if (options_.reach_bytes == 0 || features.place().empty() || std::exchange(asked_, true))
    return Status::Ok();
  const std::uint64_t bytes =
      std::min<std::uint64_t>(options_.reach_bytes, features.table().size());
  const Status status = pool_->Reach(features.table().first(bytes));
  reaches_ = status.ok();
  return status.code() == StatusCode::kUnsupported ? Status::Ok() : status;
}

Result<torch::Tensor> DeviceFeed::BringRows(Minibatch& minibatch) {
  RHIZOME_RETURN_IF_ERROR(Reach(minibatch.features));
  const RowsToBring rows(minibatch);
  RHIZOME_RETURN_IF_ERROR(frames_.Step(rows.keys, plan_));
  std::vector<const std::byte*> misses;
  misses.reserve(plan_.misses.size());
  for (const std::uint32_t miss : plan_.misses) {
    const std::size_t vertex = rows.vertex_of.empty() ? miss : rows.vertex_of[miss];
    misses.push_back(minibatch.features.row(vertex).data());
  }
  RHIZOME_ASSIGN_OR_RETURN(
      const DevicePool::Rows brought,
      pool_->Step(plan_, static_cast<std::uint32_t>(rows.keys.size()), misses));
  held_.push_back(brought);
  going_up_ = {.read = brought.read, .features = std::move(minibatch.features)};
  RHIZOME_RETURN_IF_ERROR(device_.kernels->Wait(kDefaultStream, brought.ready));
  torch::Tensor features = TensorOnDevice(
      brought.data,
      {static_cast<std::int64_t>(rows.keys.size()), static_cast<std::int64_t>(options_.dim)},
      options_.type == DataType::kFloat16 ? torch::kHalf : torch::kFloat32, device_.place);
  if (minibatch.seed_of.empty()) return features;
  const std::span<const std::uint32_t> row_of(rows.row_of);
  const std::span<const std::byte> arrays[] = {std::as_bytes(row_of)};
  const DeviceUploads::Sent sent = uploads_.Send(arrays);
  return features.index_select(
      0, TensorOnDevice(sent.arrays[0], {static_cast<std::int64_t>(row_of.size())}, torch::kInt32,
                        device_.place));
}

Result<LearnerInputs> DeviceFeed::Bring(Minibatch& minibatch, std::vector<LayerGraph> graphs) {
  const Stopwatch watch;
  // These rows are most likely uploaded: the device has begun to compute with them.
  const std::optional<GoingUp> before = std::exchange(going_up_, std::nullopt);
  LearnerInputs inputs{.features = {}, .graphs = std::move(graphs)};
  try {
    RHIZOME_ASSIGN_OR_RETURN(inputs.features.table, BringRows(minibatch));
    PlaceOnDevice(inputs.graphs, uploads_);
  } catch (const DeviceFailure& failure) {
    return Fail(failure.status());
  }
  seconds_ += watch.seconds();
  if (before) RHIZOME_RETURN_IF_ERROR(device_.kernels->Synchronize(before->read));
  return inputs;
}

void DeviceFeed::Leave() {
  pool_->Leave();
  going_up_.reset();
}

Status DeviceFeed::Release() {
  RHIZOME_RETURN_IF_ERROR(pool_->Release(held_.front(), kDefaultStream));
  held_.pop_front();
  return Status::Ok();
}

void DeviceFeed::AddTo(EpochReport& epoch) {
  const DevicePoolCounts& counts = pool_->counts();
  const std::uint64_t bytes = counts.row_bytes + counts.index_bytes + uploads_.sent_bytes();
  epoch.upload_bytes += bytes - std::exchange(told_bytes_, bytes);
  epoch.device_hits += counts.hits - std::exchange(told_hits_, counts.hits);
  epoch.upload_seconds += std::exchange(seconds_, 0);
}

}  // namespace internal
}  // namespace rhizome
