#include "gnn/ops/dense.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "cache/job/compute_threads.h"
#include "cache/kernels/simd.h"
#include "gnn/ops/aggregate_ops.h"

// Dense products in tiles of kDenseRows rows:
// 1. PackedWeight reorders weights into panels, and LayerRows and ProductTile provide the rows.
// 2. MultiplyRows multiplies one tile; Multiply and Linear do so for all tiles.
// 3. In the backward pass WeightGradient sums the gradient of weights by groups of tiles, and the
//    gradient of rows is a product with the transposed weights.

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Number of rows that are prefetched while one is copied.
constexpr std::int64_t kCopiedAhead = 4;
constexpr std::size_t kLineBytes = 64;

void Prefetch(const std::byte* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(from + at);
}

}  // namespace

PackedWeight::PackedWeight(const torch::Tensor& weight) : weight_(weight) {
  if (!weight.is_cpu()) return;
  const at::AutoDispatchBelowADInplaceOrView guard;
  const auto columns = static_cast<std::size_t>(in());
  const auto outputs = static_cast<std::size_t>(out());
  const std::size_t panels = PanelsOf(outputs);
  panels_ = at::empty({static_cast<std::int64_t>(panels), in(), std::int64_t{kPanel}});
  const torch::Tensor floats = weight.detach();
  const float* const from = floats.data_ptr<float>();
  const auto of_row = static_cast<std::size_t>(floats.stride(0));
  const auto of_column = static_cast<std::size_t>(floats.stride(1));
  float* to = panels_.data_ptr<float>();
  for (std::size_t first = 0; first < panels * kPanel; first += kPanel) {
    const std::size_t count = std::min(kPanel, outputs - first);
    for (std::size_t k = 0; k < columns; ++k, to += kPanel) {
      const float* const column = from + first * of_row + k * of_column;
      for (std::size_t o = 0; o < count; ++o) to[o] = column[o * of_row];
      std::fill(to + count, to + kPanel, 0.0F);
    }
  }
}

void MultiplyRows(const ProductRows& rows, std::int64_t count, const PackedWeight& weight,
                  const torch::Tensor& bias, float* out) {
  const auto outputs = static_cast<std::size_t>(weight.out());
  Products().multiply({.rows = rows,
                       .panels = weight.panels(),
                       .bias = bias.defined() ? bias.data_ptr<float>() : nullptr,
                       .outputs = outputs,
                       .out = out,
                       .out_stride = outputs},
                      0, static_cast<std::size_t>(count));
}

torch::Tensor Multiply(const torch::Tensor& x, const PackedWeight& weight,
                       const torch::Tensor& bias) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  if (!x.is_cpu()) {
    return bias.defined() ? at::addmm(bias, x, weight.weight().t())
                          : at::mm(x, weight.weight().t());
  }
  torch::Tensor out = at::empty({x.size(0), weight.out()});
  const LayerRows rows{x.contiguous()};
  for (std::int64_t i = 0; i < DenseTiles(x.size(0)); ++i) {
    const ProductTile tile(rows, i);
    MultiplyRows(tile.rows(), tile.count(), weight, bias,
                 out.data_ptr<float>() + tile.first() * weight.out());
  }
  return out;
}

LayerRows LayerRows::First(std::int64_t count) const {
  const auto some = static_cast<std::size_t>(count);
  const auto types_of = types.empty() ? types : types.first(some);
  if (!place.empty()) return {table, place.first(some), types_of};
  return {table.size(0) == count ? table : table.narrow(0, 0, count), {}, types_of};
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
    // Places are in no order, so the CPU cannot predict the next one.
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
  constexpr std::size_t kMaxKept = 4;
  constexpr std::int64_t kWidestKept = 1024;
  thread_local std::vector<torch::Tensor> kept;
  if (dim > kWidestKept) return at::empty({kDenseRows, dim});
  for (const torch::Tensor& tile : kept)
    if (tile.size(1) == dim && tile.use_count() == 1 && tile.storage().use_count() == 1)
      return tile;
  if (kept.size() == kMaxKept) kept.erase(kept.begin());
  const c10::InferenceMode off(false);  // training could not use inference tensors
  return kept.emplace_back(at::empty({kDenseRows, dim}));
}

ProductTile::ProductTile(const LayerRows& x, std::int64_t number)
    : first_(number * kDenseRows),
      count_(std::min(kDenseRows, x.size() - first_)),
      rows_{.stride = static_cast<std::size_t>(x.table.size(1)),
            .columns = static_cast<std::size_t>(x.table.size(1))} {
  if (x.table.scalar_type() != torch::kFloat32) {
    floats_ = AnyTile(x.table.size(1));
    x.Copy(first_, count_, floats_.data_ptr<float>(), rows_.stride);
    rows_.x = floats_.data_ptr<float>();
  } else if (x.place.empty()) {
    rows_.x = x.table.data_ptr<float>() + first_ * x.table.size(1);
  } else {
    rows_.x = x.table.data_ptr<float>();
    rows_.place = x.place.data() + first_;
  }
}

torch::Tensor SumOfGroups(const torch::Tensor& groups) {
  torch::Tensor sum = groups.select(0, 0).clone();
  for (std::int64_t g = 1; g < groups.size(0); ++g) sum.add_(groups.select(0, g));
  return sum;
}

WeightGradient::WeightGradient(std::int64_t rows, std::int64_t out, std::int64_t in)
    : tiles_(DenseTiles(rows)),
      groups_(std::clamp<std::int64_t>((tiles_ + 1) / 2, 1, kMost)),
      weight_(
          at::zeros({groups_, static_cast<std::int64_t>(PanelsOf(static_cast<std::size_t>(out))),
                     in, std::int64_t{kPanel}})),
      bias_(at::zeros({groups_, out})) {}

std::int64_t WeightGradient::FirstTile(std::size_t group) const {
  return tiles_ * static_cast<std::int64_t>(group) / groups_;
}

void WeightGradient::Add(std::size_t group, const float* gradient, const ProductRows& x,
                         std::int64_t count) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const auto g = static_cast<std::int64_t>(group);
  const std::int64_t outputs = bias_.size(1);
  const torch::Tensor of_group = weight_.select(0, g);
  // The sum of a tile is computed before it is added, which loses less precision than one long sum.
  thread_local torch::Tensor sum;
  if (!sum.defined() || sum.sizes() != of_group.sizes()) {
    const c10::InferenceMode off(false);
    sum = at::empty(of_group.sizes());
  }
  Products().gradient({.rows = x,
                       .gradient = gradient,
                       .outputs = static_cast<std::size_t>(outputs),
                       .sum = sum.data_ptr<float>()},
                      0, static_cast<std::size_t>(count));
  of_group.add_(sum);
  float* const of_bias = bias_.data_ptr<float>() + g * outputs;
  for (std::int64_t i = 0; i < count; ++i, gradient += outputs) {
    for (std::int64_t c = 0; c < outputs; ++c) of_bias[c] += gradient[c];
  }
}

torch::Tensor WeightGradient::Weight() const {
  const torch::Tensor sum = SumOfGroups(weight_);  // [panels, in, kPanel]
  return sum.permute({0, 2, 1})
      .reshape({sum.size(0) * sum.size(2), sum.size(1)})
      .narrow(0, 0, bias_.size(1))
      .contiguous();
}

torch::Tensor WeightGradient::Bias() const { return SumOfGroups(bias_); }

namespace {

float* RowOf(const torch::Tensor& tensor, std::int64_t row) {
  return tensor.data_ptr<float>() + row * tensor.size(1);
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& weight, const LayerRows* x) {
    const LayerRows rows{table.contiguous(), x->place};
    context->save_for_backward({rows.table, weight});
    context->saved_data["place"] = reinterpret_cast<std::int64_t>(x->place.data());
    context->saved_data["places"] = static_cast<std::int64_t>(x->place.size());
    const PackedWeight packed(weight);
    torch::Tensor out = at::empty({rows.size(), weight.size(0)});
    ComputeFor(static_cast<std::size_t>(DenseTiles(rows.size())), [&](std::size_t i) {
      const ProductTile tile(rows, static_cast<std::int64_t>(i));
      MultiplyRows(tile.rows(), tile.count(), packed, {}, RowOf(out, tile.first()));
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const LayerRows x{saved[0], PlaceOf(context)};
    const LayerRows gradient{gradients[0].contiguous()};
    torch::Tensor x_gradient;
    // Rows with `place` set are features, which need no gradient.
    PackedWeight turned;
    if (context->needs_input_grad(0) && x.place.empty()) {
      turned = PackedWeight(saved[1].t());
      x_gradient = at::empty(x.table.sizes());
    }
    WeightGradient weight(x.size(), gradient.table.size(1), x.table.size(1));
    ComputeFor(weight.groups(), [&](std::size_t group) {
      const std::int64_t end = weight.FirstTile(group + 1);
      for (std::int64_t number = weight.FirstTile(group); number < end; ++number) {
        const ProductTile part(gradient, number);
        weight.Add(group, part.rows().x, ProductTile(x, number).rows(), part.count());
        if (x_gradient.defined())
          MultiplyRows(part.rows(), part.count(), turned, {}, RowOf(x_gradient, part.first()));
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

}  // namespace internal
}  // namespace rhizome
