#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "rhizome/gnn/compute_device.h"
#include "rhizome/gnn/infer_options.h"
#include "rhizome/gnn/model.h"
#include "rhizome/gnn/torch.h"
#include "rhizome/storage/result.h"

namespace rhizome::inline internal {

/// The products of layerwise inference on a device: rows that are prepared, and reduced rows that
/// become outputs and scores. They go up and come down through pinned memory, in batches. What is
/// reduced, and what attention asks of it, stays on the processor.
///
/// On the device every batch of a job has batch_rows() rows, the last padded with zeros, so that
/// the bits of a row's product depend on that row and that number alone; they are near the
/// processor's, which makes those of targets' own rows where attention needs several windows.
/// Threads: one at a time. Ownership: `device` must outlive it. Errors of the device are thrown
/// (DeviceFailure), as those of libtorch.
class DeviceTiles {
 public:
  /// Copies the model's weights to the device. `device_bytes`: what weights and rows may take
  /// there, by an estimate; absent: half of what is free. Errors: kOutOfMemory, less than a tile of
  /// rows takes.
  static Result<std::unique_ptr<DeviceTiles>> Open(const ComputeDevice& device, const Model& model,
                                                   std::optional<std::uint64_t> device_bytes);
  ~DeviceTiles();
  DeviceTiles(const DeviceTiles&) = delete;
  DeviceTiles& operator=(const DeviceTiles&) = delete;

  /// Rows of a batch: a multiple of kDenseRows.
  std::size_t batch_rows() const { return batch_rows_; }

  /// Returns the pinned memory of the host that it takes.
  std::uint64_t host_bytes() const { return (in_numbers_ + out_numbers_) * sizeof(float); }

  /// Prepares rows as PrepareWindow does: raw [count, raw] -> out [count, prepared_columns()].
  void Prepare(std::uint32_t layer, const float* raw, std::size_t count, float* out);

  /// The places of the rows of a batch that is to be finished: targets' tiles as Layer::Finish
  /// takes them, [batch_rows(), own_columns() + width], and after them their raw rows,
  /// [batch_rows(), raw], if the layer wants them apart (WantsRaw).
  float* tiles() { return in_; }
  float* raw_rows(std::uint32_t layer) { return in_ + batch_rows_ * TileColumns(layer); }
  std::size_t TileColumns(std::uint32_t layer) const;
  bool WantsRaw(std::uint32_t layer) const;

  /// Computes the outputs of the first `count` rows that were put there, [batch_rows(), raw_out],
  /// and if wanted their scores. On the host, until the next call.
  struct Finished {
    torch::Tensor rows, scores;
  };
  Finished Finish(std::uint32_t layer, std::size_t count, bool with_scores);

  InferDeviceReport report() const;

 private:
  DeviceTiles(const ComputeDevice& device, Model model)
      : device_(device), model_(std::move(model)) {}
  Status Allocate(std::optional<std::uint64_t> device_bytes);
  torch::Tensor Up(const float* from, std::size_t columns);
  torch::Tensor Down(const torch::Tensor& made, float* to);

  const ComputeDevice& device_;
  const Model model_;  // a copy, whose tensors are on the device
  std::size_t batch_rows_ = 0;
  std::size_t in_numbers_ = 0;  // of `in_`, and of `out_`
  std::size_t out_numbers_ = 0;
  float* in_ = nullptr;  // pinned, as `out_`
  float* out_ = nullptr;
  std::uint64_t upload_bytes_ = 0;
  std::uint64_t download_bytes_ = 0;
};

}  // namespace rhizome::inline internal
