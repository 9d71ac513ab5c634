#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "gnn/models/model.h"
#include "gnn/ops/compute_device.h"
#include "gnn/ops/torch.h"
#include "rhizome/infer_options.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

/// Runs the dense products of layerwise inference on a device: prepares source rows, and turns
/// reduced rows into outputs and scores. Rows travel through pinned memory, in batches. The
/// reduction, including attention and its queries, remains on the CPU.
///
/// Every batch of a job has batch_rows() rows; the last one is padded with zeros. So the bits of a
/// row's product depend only on that row and on batch_rows(). They are close to the CPU's bits, but
/// not equal. Where attention needs several windows, the CPU computes the products of the targets'
/// own rows.
/// Threads: one at a time. Ownership: `device` must outlive this object. Errors of the device are
/// thrown (DeviceFailure), like errors of libtorch.
class DeviceTiles {
 public:
  /// Copies the model's weights to the device. `device_bytes`: estimated limit for weights and rows
  /// on the device; absent: half of the free memory. Errors: kOutOfMemory, the limit is too low for
  /// the weights and one tile of rows.
  static Result<std::unique_ptr<DeviceTiles>> Open(const ComputeDevice& device, const Model& model,
                                                   std::optional<std::uint64_t> device_bytes);
  ~DeviceTiles();
  DeviceTiles(const DeviceTiles&) = delete;
  DeviceTiles& operator=(const DeviceTiles&) = delete;

  /// Number of rows of a batch, a multiple of kDenseRows.
  std::size_t batch_rows() const { return batch_rows_; }

  /// Returns the bytes of pinned host memory that this object holds.
  std::uint64_t host_bytes() const { return (in_numbers_ + out_numbers_) * sizeof(float); }

  /// Prepares rows like PrepareWindow: raw [count, raw] -> out [count, prepared_columns()].
  void Prepare(std::uint32_t layer, const float* raw, std::size_t count, float* out);

  /// Input buffers of the batch that Finish computes: the targets' tiles as Layer::Finish expects
  /// them, [batch_rows(), own_columns() + width], followed by the targets' raw rows, [batch_rows(),
  /// raw], if the layer needs these separately (WantsRaw).
  float* tiles() { return in_; }
  float* raw_rows(std::uint32_t layer) { return in_ + batch_rows_ * TileColumns(layer); }
  std::size_t TileColumns(std::uint32_t layer) const;
  bool WantsRaw(std::uint32_t layer) const;

  /// Outputs of a batch, [batch_rows(), raw_out], and its scores, if requested. They are in host
  /// memory and valid until the next call.
  struct Finished {
    torch::Tensor rows, scores;
  };
  /// Computes the outputs of the first `count` rows in the input buffers.
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
  std::size_t in_numbers_ = 0;   // capacity of `in_`, in floats
  std::size_t out_numbers_ = 0;  // capacity of `out_`, in floats
  float* in_ = nullptr;          // pinned, like `out_`
  float* out_ = nullptr;
  std::uint64_t upload_bytes_ = 0;
  std::uint64_t download_bytes_ = 0;
};

}  // namespace internal
}  // namespace rhizome
