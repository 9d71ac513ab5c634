#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "cuda/device_frames.h"
#include "cuda/device_pool.h"
#include "gnn/ops/device_uploads.h"
#include "gnn/ops/torch.h"
#include "gnn/train/learner.h"
#include "rhizome/loader.h"
#include "rhizome/train_options.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

struct DeviceFeedOptions {
  PolicyKind policy = PolicyKind::kBelady;
  std::uint64_t frame_bytes = 0;  ///< device memory for rows that are cached there
  DataType type = DataType::kFloat32;
  std::size_t dim = 0;
  std::uint64_t row_count = 0;  ///< rows are [0, row_count)

  /// Whether the device can read host memory, so that rows are uploaded without packing.
  bool reaches = false;

  /// Bytes at the front of the host cache's table in which the device reads rows in place. The
  /// pages must remain resident, so Overlap::kChangeset, which releases pages, excludes it. 0:
  /// none.
  std::uint64_t reach_bytes = 0;

  std::size_t row_bytes() const { return dim * DataTypeBytes(type); }
  std::uint32_t frame_count() const;
};

/// Uploads minibatches to a device. Feature rows go through a DevicePool, whose frames follow the
/// schedule of each superbatch as the host cache does; lists and factors are sent as one packed
/// copy.
/// Threads: one at a time, except Announce. Ownership: `device` must outlive this object.
class DeviceFeed {
 public:
  static Result<std::unique_ptr<DeviceFeed>> Open(const ComputeDevice& device,
                                                  const DeviceFeedOptions& options);

  /// Announces the rows of the next superbatch (FeedPipelineOptions::on_superbatch).
  Status Announce(const Trace& trace) { return frames_.Announce(trace); }

  /// Queues the copies of the next minibatch, whose graphs on the host are `graphs`. Work that
  /// libtorch queues from now on can use the inputs on the device. The features are moved out of
  /// `minibatch`, and released once they are uploaded, at the latest by the next call; everything
  /// else must outlive the inputs. Two minibatches may be held at once. Errors of this function and
  /// of Release: kOutOfMemory; kIoError, the device failed.
  Result<LearnerInputs> Bring(Minibatch& minibatch, std::vector<LayerGraph> graphs);

  /// Releases the oldest held features on the device. All work that reads them must already be
  /// queued with libtorch.
  Status Release();

  /// Stops reading from the host cache and releases all features. Must be called before the cache
  /// is destroyed.
  void Leave();

  /// Returns the current host memory: pinned memory, and the bookkeeping of frames.
  std::uint64_t host_bytes() const;

  /// Returns whether rows were read in place. Rows of the cache's table beyond `reach_bytes` are
  /// packed.
  bool reaches() const { return reaches_; }

  /// Adds the figures since the last call to an epoch's report.
  void AddTo(EpochReport& epoch);

 private:
  DeviceFeed(const ComputeDevice& device, const DeviceFeedOptions& options)
      : options_(options),
        device_(device),
        frames_(options.policy, options.frame_count(), options.row_count),
        uploads_(device) {}
  /// Host features that are being read until an event.
  struct GoingUp {
    DeviceEvent read = 0;
    FeatureRows features;
  };
  Status Reach(const FeatureRows& features);
  Result<torch::Tensor> BringRows(Minibatch& minibatch);

  const DeviceFeedOptions options_;
  const ComputeDevice& device_;
  DeviceFrames frames_;
  DeviceUploads uploads_;
  std::unique_ptr<DevicePool> pool_;
  std::deque<DevicePool::Rows> held_;
  std::optional<GoingUp> going_up_;
  bool asked_ = false;  // whether Reach has been tried
  bool reaches_ = false;
  StepPlan plan_;
  double seconds_ = 0;
  std::uint64_t told_hits_ = 0;
  std::uint64_t told_bytes_ = 0;
};

}  // namespace internal
}  // namespace rhizome
