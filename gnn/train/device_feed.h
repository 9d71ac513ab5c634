#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/cache/minibatch.h"
#include "rhizome/cuda/device_frames.h"
#include "rhizome/cuda/device_pool.h"
#include "rhizome/gnn/device_uploads.h"
#include "rhizome/gnn/learner.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/gnn/train_options.h"
#include "rhizome/storage/dtype.h"

namespace rhizome::inline internal {

struct DeviceFeedOptions {
  PolicyKind policy = PolicyKind::kBelady;
  std::uint64_t frame_bytes = 0;  ///< of the device, for rows that stay there
  DataType type = DataType::kFloat32;
  std::size_t dim = 0;
  std::uint64_t row_count = 0;  ///< rows are [0, row_count)

  /// Whether the device reaches memory of the host: rows need not be packed to go up.
  bool reaches = false;

  /// The bytes of the table of the host's cache, from its front, that the device is to read rows
  /// in. Its pages must stay where they are (Overlap::kChangeset gives them back). 0: none.
  std::uint64_t reach_bytes = 0;

  std::size_t row_bytes() const { return dim * DataTypeBytes(type); }
  std::uint32_t frame_count() const;
};

/// Brings minibatches to a device: rows of features through a DevicePool, whose frames follow the
/// schedule of each superbatch as the host's do; lists and factors as one packed copy.
/// Threads: one at a time, but for Announce. Ownership: `device` must outlive it.
class DeviceFeed {
 public:
  static Result<std::unique_ptr<DeviceFeed>> Open(const ComputeDevice& device,
                                                  const DeviceFeedOptions& options);

  /// Announces the rows of the next superbatch (FeedPipelineOptions::on_superbatch).
  Status Announce(const Trace& trace) { return frames_.Announce(trace); }

  /// Queues the copies of the next minibatch, whose graphs `graphs` are on the host: the inputs are
  /// on the device for what libtorch does from now on. The features are taken out of `minibatch`,
  /// and given back when they are up, at the latest by the next call; all else must outlive the
  /// inputs. Two may be held at once. Errors of this, also of Release: kOutOfMemory; kIoError, the
  /// device failed.
  Result<LearnerInputs> Bring(Minibatch& minibatch, std::vector<LayerGraph> graphs);

  /// Gives back the features that were brought first, of those that are held: libtorch was told all
  /// that reads them.
  Status Release();

  /// Reads nothing in the host's cache any more, and gives all features back. To be called before
  /// the cache goes.
  void Leave();

  /// Returns the memory of the host that it takes now: pinned, and what is known of frames.
  std::uint64_t host_bytes() const;

  /// Tells whether rows went up from where they were: all but those that lay further back in the
  /// cache's table than it reaches.
  bool reaches() const { return reaches_; }

  /// Adds what was done since the last call to an epoch's report.
  void AddTo(EpochReport& epoch);

 private:
  DeviceFeed(const ComputeDevice& device, const DeviceFeedOptions& options)
      : options_(options),
        device_(device),
        frames_(options.policy, options.frame_count(), options.row_count),
        uploads_(device) {}
  /// Features that are read until an event.
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
  bool asked_ = false;  // whether the cache's table can be reached
  bool reaches_ = false;
  StepPlan plan_;
  double seconds_ = 0;
  std::uint64_t told_hits_ = 0;
  std::uint64_t told_bytes_ = 0;
};

}  // namespace rhizome::inline internal
