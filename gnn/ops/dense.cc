#include "rhizome/gnn/dense.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "rhizome/cache/compute_threads.h"
#include "rhizome/cache/simd.h"
#include "rhizome/gnn/aggregate_ops.h"
#include "rhizome/storage/io_queue.h"

namespace rhizome::inline internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The signature of mkldnn::_linear_pointwise(x, weight, bias, attribute, scalars, algorithm), which
// libtorch's own compiler calls for a linear layer. It is not a function of ATen, so it is looked
// up by name.
using LinearPointwise = at::Tensor(const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, c10::string_view,
                                   c10::List<std::optional<at::Scalar>>,
                                   std::optional<c10::string_view>);

std::optional<c10::TypedOperatorHandle<LinearPointwise>> FindLinearPointwise() {
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (!found || !found->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return std::nullopt;
  return found->typed<LinearPointwise>();
}

/// More than oneDNN takes for a primitive with its code.
constexpr std::size_t kPrimitiveBytes = std::size_t{16} << 20;

/// oneDNN does not look whether there was memory for a primitive, and crashes if there was none. So
/// there has to be some before a thread's first product of its shape. Throws std::bad_alloc.
void ExpectMemoryForPrimitive(const torch::Tensor& x, const torch::Tensor& weight, bool biased) {
  using Shape = std::array<std::int64_t, 4>;
  constexpr std::size_t kMostShapes = 64;
  thread_local std::vector<Shape> known;
  const Shape shape = {x.size(0), x.size(1), weight.size(0), std::int64_t{biased}};
  if (std::find(known.begin(), known.end(), shape) != known.end()) return;
  if (!AlignedBuffer::Reserve(kPrimitiveBytes, kPrimitiveBytes)) throw std::bad_alloc();
  if (known.size() == kMostShapes) known.clear();
  known.push_back(shape);
}

// Rows that are on their way from memory while one is copied.
constexpr std::int64_t kCopiedAhead = 4;
constexpr std::size_t kLineBytes = 64;

void Prefetch(const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(from + at);
}

}  // namespace

torch::Tensor Multiply(const torch::Tensor& x, const torch::Tensor& weight,
                       const torch::Tensor& bias) {
  static const auto linear = FindLinearPointwise();
  const at::AutoDispatchBelowADInplaceOrView guard;
  if (!linear || !x.is_cpu()) {
    return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
  }
  ExpectMemoryForPrimitive(x, weight, bias.defined());
  return linear->call(x, weight, bias.defined() ? std::optional(bias) : std::nullopt, "none",
                      c10::List<std::optional<at::Scalar>>(), std::nullopt);
}

LayerRows LayerRows::First(std::int64_t count) const {
  if (!place.empty()) return {table, place.first(static_cast<std::size_t>(count))};
  return {table.size(0) == count ? table : table.narrow(0, 0, count)};
}

torch::Tensor LayerRows::Floats() const {
  if (place.empty()) return table.to(torch::kFloat32);
  torch::Tensor floats = at::empty({size(), table.size(1)});
  const std::int64_t dim = table.size(1);
  constexpr std::int64_t kRowsOfTask = 1024;
  const std::int64_t tasks = (size() + kRowsOfTask - 1) / kRowsOfTask;
  ComputeFor(static_cast<std::size_t>(tasks), [&](std::size_t task) {
    const std::int64_t first = static_cast<std::int64_t>(task) * kRowsOfTask;
    Copy(first, std::min(kRowsOfTask, size() - first), floats.data_ptr<float>() + first * dim,
         static_cast<std::size_t>(dim));
  });
  return floats;
}

void LayerRows::Copy(std::int64_t first, std::int64_t count, float* out, std::size_t stride) const {
  const RowsView rows = RowsOf(table);
  const std::size_t row_bytes = rows.stride * BytesOf(rows.type);
  const auto row_at = [&](std::int64_t i) {
    const std::size_t at =
        place.empty() ? static_cast<std::size_t>(i) : place[static_cast<std::size_t>(i)];
    return static_cast<const std::byte*>(rows.x) + at * row_bytes;
  };
  for (std::int64_t i = first; i < first + count; ++i, out += stride) {
    // Places lie in no order, so the processor cannot predict which comes next.
    if (!place.empty() && i + kCopiedAhead < first + count)
      Prefetch(row_at(i + kCopiedAhead), rows.dim * BytesOf(rows.type));
    const std::byte* const from = row_at(i);
    if (rows.type == RowType::kFloat32) {
      std::memcpy(out, from, rows.dim * sizeof(float));
    } else {
      Kernels().widen(rows.type, from, rows.dim, out);
    }
  }
}

torch::Tensor AnyTile(std::int64_t dim) {
  constexpr std::size_t kMostKept = 4;
  constexpr std::int64_t kWidestKept = 1024;
  thread_local std::vector<torch::Tensor> kept;
  if (dim > kWidestKept) return at::empty({kDenseRows, dim});
  for (const torch::Tensor& tile : kept)
    if (tile.size(1) == dim && tile.use_count() == 1 && tile.storage().use_count() == 1)
      return tile;
  if (kept.size() == kMostKept) kept.erase(kept.begin());
  const c10::InferenceMode off(false);  // whose tensors a training could not take over
  return kept.emplace_back(at::empty({kDenseRows, dim}));
}

torch::Tensor PaddedTile(const LayerRows& x, std::int64_t tile) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const std::int64_t first = tile * kDenseRows;
  const std::int64_t count = std::min(kDenseRows, x.size() - first);
  if (count == kDenseRows && x.place.empty() && x.table.scalar_type() == torch::kFloat32)
    return x.table.narrow(0, first, count);
  torch::Tensor padded = AnyTile(x.table.size(1));
  float* const out = padded.data_ptr<float>();
  x.Copy(first, count, out, static_cast<std::size_t>(padded.size(1)));
  std::fill(out + count * padded.size(1), out + padded.numel(), 0.0F);
  return padded;
}

torch::Tensor SumOfGroups(const torch::Tensor& groups) {
  torch::Tensor sum = groups.select(0, 0).clone();
  for (std::int64_t g = 1; g < groups.size(0); ++g) sum.add_(groups.select(0, g));
  return sum;
}

WeightGradient::WeightGradient(std::int64_t rows, std::int64_t out, std::int64_t in)
    : tiles_(DenseTiles(rows)),
      groups_(std::clamp<std::int64_t>((tiles_ + 1) / 2, 1, kMost)),
      weight_(at::zeros({groups_, out, in})),
      bias_(at::zeros({groups_, out})) {}

std::int64_t WeightGradient::FirstTile(std::size_t group) const {
  return tiles_ * static_cast<std::int64_t>(group) / groups_;
}

void WeightGradient::Add(std::size_t group, const torch::Tensor& gradient, const torch::Tensor& x) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const auto g = static_cast<std::int64_t>(group);
  weight_.select(0, g).add_(Multiply(gradient.t(), x.t(), {}));
  float* const sum = bias_.data_ptr<float>() + g * bias_.size(1);
  const float* row = gradient.data_ptr<float>();
  for (std::int64_t i = 0; i < gradient.size(0); ++i, row += gradient.size(1)) {
    for (std::int64_t c = 0; c < gradient.size(1); ++c) sum[c] += row[c];
  }
}

torch::Tensor WeightGradient::Weight() const { return SumOfGroups(weight_); }

torch::Tensor WeightGradient::Bias() const { return SumOfGroups(bias_); }

namespace {

void CopyTile(const torch::Tensor& tile, std::int64_t number, torch::Tensor& out) {
  const std::int64_t first = number * kDenseRows;
  const std::int64_t count = std::min(kDenseRows, out.size(0) - first);
  out.narrow(0, first, count).copy_(tile.narrow(0, 0, count));
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& weight, const LayerRows* x) {
    const LayerRows rows{table.contiguous(), x->place};
    context->save_for_backward({rows.table, weight});
    context->saved_data["place"] = reinterpret_cast<std::int64_t>(x->place.data());
    context->saved_data["places"] = static_cast<std::int64_t>(x->place.size());
    torch::Tensor out = at::empty({rows.size(), weight.size(0)});
    ComputeFor(static_cast<std::size_t>(DenseTiles(rows.size())), [&](std::size_t i) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const auto tile = static_cast<std::int64_t>(i);
      CopyTile(Multiply(PaddedTile(rows, tile), weight, {}), tile, out);
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const LayerRows x{saved[0], PlaceOf(context)};
    const torch::Tensor turned = saved[1].t().contiguous();
    const LayerRows gradient{gradients[0].contiguous()};
    torch::Tensor x_gradient;
    // Rows at other places are features, which need no gradient.
    if (context->needs_input_grad(0) && x.place.empty()) x_gradient = at::empty(x.table.sizes());
    WeightGradient weight(x.size(), gradient.table.size(1), x.table.size(1));
    ComputeFor(weight.groups(), [&](std::size_t group) {
      const at::AutoDispatchBelowADInplaceOrView guard;
      const std::int64_t end = weight.FirstTile(group + 1);
      for (std::int64_t tile = weight.FirstTile(group); tile < end; ++tile) {
        const torch::Tensor part = PaddedTile(gradient, tile);
        weight.Add(group, part, PaddedTile(x, tile));
        if (x_gradient.defined()) CopyTile(Multiply(part, turned, {}), tile, x_gradient);
      }
    });
    return {x_gradient, weight.Weight(), {}};
  }

 private:
  static std::span<const std::uint32_t> PlaceOf(AutogradContext* context) {
    const auto& data = context->saved_data;
    return {reinterpret_cast<const std::uint32_t*>(data.at("place").toInt()),
            static_cast<std::size_t>(data.at("places").toInt())};
  }
};

}  // namespace

torch::Tensor Linear(const LayerRows& x, const torch::Tensor& weight) {
  if (!x.table.is_cpu()) return at::mm(x.Floats(), weight.t());
  return LinearFunction::apply(x.table, weight, &x);
}

}  // namespace rhizome::inline internal
