#include "gnn/infer/device_tiles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gnn/ops/device_failure.h"
#include "rhizome/infer_options.h"

// Prepare and Finish process a batch in these steps: (1) copy the rows into the pinned input buffer
// and pad them with zeros; (2) queue the upload; (3) queue the products; (4) queue the download
// into the pinned output buffer; (5) wait for the device's stream.

namespace rhizome {
inline namespace internal {
namespace {

/// Max rows of a batch: enough to use a device well, and few enough to keep pinned memory small.
constexpr std::uint64_t kMaxBatchRows = 8192;

std::uint64_t Columns(std::int64_t columns) { return static_cast<std::uint64_t>(columns); }

/// Floats per row that a layer reads from the host, writes to the host, and holds on the device.
struct RowNumbers {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  std::uint64_t on_device = 0;
};

/// Returns these numbers for the widest layer. The result of each step of a row is kept until the
/// next step is done.
RowNumbers WidestRow(const Model& model) {
  RowNumbers widest;
  for (std::uint32_t k = 0; k < model.layers(); ++k) {
    const Layer& layer = model.layer(k);
    const std::uint64_t raw = Columns(layer.shape().raw);
    const std::uint64_t tile = Columns(layer.own_columns() + layer.pieces().width);
    const std::uint64_t prepared = Columns(layer.prepared_columns());
    const std::uint64_t scores = k + 1 == model.layers() ? Columns(model.shape().classes) : 0;
    const std::uint64_t made = Columns(layer.raw_out()) + scores;
    const std::uint64_t step = std::max(Columns(layer.shape().in), Columns(layer.shape().out));
    widest.in = std::max(widest.in, raw + tile);
    widest.out = std::max({widest.out, made, prepared});
    widest.on_device =
        std::max(widest.on_device, raw + tile + 2 * std::max(made, prepared) + 4 * step);
  }
  return widest;
}

std::uint64_t WeightBytes(const Model& model) {
  std::uint64_t bytes = 0;
  for (const torch::Tensor& weight : model.Parameters()) bytes += weight.nbytes();
  return bytes;
}

}  // namespace

Result<std::unique_ptr<DeviceTiles>> DeviceTiles::Open(const ComputeDevice& device,
                                                       const Model& model,
                                                       std::optional<std::uint64_t> device_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(Model copy, Model::FromFile(model.ToFile()));
  copy.MoveTo(device.place);
  std::unique_ptr<DeviceTiles> tiles(new DeviceTiles(device, std::move(copy)));
  RHIZOME_RETURN_IF_ERROR(tiles->Allocate(device_bytes));
  // Freeze creates tensors from the weights, on the device where these are.
  const torch::NoGradGuard guard;
  for (std::uint32_t k = 0; k < tiles->model_.layers(); ++k) tiles->model_.layer(k).Freeze();
  return tiles;
}

Status DeviceTiles::Allocate(std::optional<std::uint64_t> device_bytes) {
  RHIZOME_ASSIGN_OR_RETURN(const DeviceProperties now, device_.kernels->Facts());
  const std::uint64_t bytes = device_bytes.value_or(now.free_bytes / 2);
  const RowNumbers row = WidestRow(model_);
  const std::uint64_t weights = WeightBytes(model_);
  const std::uint64_t row_bytes = row.on_device * sizeof(float);
  constexpr std::uint64_t kTile = kDenseRows;
  if (bytes < weights + kTile * row_bytes) {
    return Status::OutOfMemory(
        fmt::format("{} KiB of device memory are too few for this model: weights need {} KiB and "
                    "{} rows need {} KiB; raise `device_memory_bytes`, or use `device=cpu`",
                    bytes >> 10, weights >> 10, kTile, (kTile * row_bytes >> 10) + 1));
  }
  const std::uint64_t fit = (bytes - weights) / row_bytes / kTile * kTile;
  batch_rows_ = std::min(fit, kMaxBatchRows);
  const auto pinned = [&](std::size_t numbers) {
    return device_.kernels->AllocatePinned(numbers * sizeof(float));
  };
  RHIZOME_ASSIGN_OR_RETURN(void* const in, pinned(batch_rows_ * row.in));
  in_ = static_cast<float*>(in);
  in_numbers_ = batch_rows_ * row.in;
  RHIZOME_ASSIGN_OR_RETURN(void* const out, pinned(batch_rows_ * row.out));
  out_ = static_cast<float*>(out);
  out_numbers_ = batch_rows_ * row.out;
  return Status::Ok();
}

DeviceTiles::~DeviceTiles() {
  // A lost device has nothing left to wait for, so errors are ignored.
  static_cast<void>(device_.kernels->Drain(kDefaultStream));
  for (float* const memory : {in_, out_})
    if (memory != nullptr) device_.kernels->FreePinned(memory);
}

/// Queues the copy of a batch to the device.
torch::Tensor DeviceTiles::Up(const float* from, std::size_t columns) {
  torch::Tensor made =
      at::empty({static_cast<std::int64_t>(batch_rows_), static_cast<std::int64_t>(columns)},
                torch::TensorOptions(torch::kFloat32).device(device_.place));
  const std::size_t bytes = batch_rows_ * columns * sizeof(float);
  ThrowIfError(device_.kernels->CopyToDevice(kDefaultStream, made.data_ptr(), from, bytes));
  upload_bytes_ += bytes;
  return made;
}

/// Queues the copy of a batch to pinned memory. The returned tensor is valid once the stream is
/// drained.
torch::Tensor DeviceTiles::Down(const torch::Tensor& made, float* to) {
  ThrowIfError(device_.kernels->CopyToHost(kDefaultStream, to, made.data_ptr(), made.nbytes()));
  download_bytes_ += made.nbytes();
  return at::from_blob(to, made.sizes(), torch::kFloat32);
}

std::size_t DeviceTiles::TileColumns(std::uint32_t layer) const {
  const Layer& of = model_.layer(layer);
  return static_cast<std::size_t>(of.own_columns() + of.pieces().width);
}

bool DeviceTiles::WantsRaw(std::uint32_t layer) const {
  const Layer& of = model_.layer(layer);
  return of.finish_reads_own() && !(of.own_columns() > 0 && of.own_is_raw());
}

void DeviceTiles::Prepare(std::uint32_t number, const float* raw, std::size_t count, float* out) {
  const Layer& layer = model_.layer(number);
  const auto columns = static_cast<std::size_t>(layer.shape().raw);
  const auto made_columns = static_cast<std::size_t>(layer.prepared_columns());
  for (std::size_t first = 0; first < count; first += batch_rows_) {
    const std::size_t rows = std::min(batch_rows_, count - first);
    std::memcpy(in_, raw + first * columns, rows * columns * sizeof(float));
    std::fill(in_ + rows * columns, in_ + batch_rows_ * columns, 0.0F);
    Device* const device = device_.kernels.get();
    torch::Tensor made = layer.Prepare(layer.Enter({Up(in_, columns)}, device), device);
    if (layer.pieces().score_columns() > 0) made = at::cat({made, layer.SourceScores(made)}, 1);
    made = made.contiguous();
    Down(made, out_);
    ThrowIfError(device->Drain(kDefaultStream));
    std::memcpy(out + first * made_columns, out_, rows * made_columns * sizeof(float));
  }
}

DeviceTiles::Finished DeviceTiles::Finish(std::uint32_t number, std::size_t count,
                                          bool with_scores) {
  const Layer& layer = model_.layer(number);
  Device* const device = device_.kernels.get();
  const std::size_t columns = TileColumns(number);
  const auto pad = [&](float* rows, std::size_t width) {
    std::fill(rows + count * width, rows + batch_rows_ * width, 0.0F);
  };
  pad(in_, columns);
  torch::Tensor tile = Up(in_, columns);
  torch::Tensor raw;
  if (WantsRaw(number)) {
    const auto raw_columns = static_cast<std::size_t>(layer.shape().raw);
    pad(raw_rows(number), raw_columns);
    raw = Up(raw_rows(number), raw_columns);
  } else if (layer.own_columns() > 0 && layer.own_is_raw()) {
    raw = tile.narrow(1, 0, layer.own_columns());
  }
  Layer::Entered entered;
  if (raw.defined()) entered = layer.Enter({raw}, device);
  const torch::Tensor made = layer.Finish(raw, entered, tile, device).contiguous();
  torch::Tensor scores;
  if (with_scores) scores = model_.HeadOfTile(made).contiguous();
  Finished finished{.rows = Down(made, out_), .scores = {}};
  if (with_scores) finished.scores = Down(scores, out_ + made.numel());
  ThrowIfError(device->Drain(kDefaultStream));
  return finished;
}

InferDeviceReport DeviceTiles::report() const {
  return {.name = device_.facts.name,
          .sm = device_.facts.compute_capability,
          .memory_bytes = device_.facts.memory_bytes,
          .batch_rows = batch_rows_,
          .upload_bytes = upload_bytes_,
          .download_bytes = download_bytes_};
}

}  // namespace internal
}  // namespace rhizome
