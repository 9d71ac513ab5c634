#include "rhizome/gnn/tile_layer.h"

#include <algorithm>
#include <cstring>

#include "rhizome/gnn/activation.h"
#include "rhizome/gnn/aggregate_kernels.h"
#include "rhizome/gnn/simd.h"

namespace rhizome {

TileLayer::TileLayer(const BlockLists& lists, const TileWeights& weights,
                     const torch::Tensor& stage, std::span<const float> stage_scale,
                     std::span<const float> row_scale, std::vector<std::uint32_t> degrees)
    : lists_(lists),
      weights_(weights),
      dim_(static_cast<std::size_t>(stage.size(1))),
      stage_(stage.data_ptr<float>()),
      stage_scale_(stage_scale),
      row_scale_(row_scale),
      degrees_(std::move(degrees)) {
  if (lists.windows() <= 1) return;
  const auto targets = static_cast<std::int64_t>(lists.targets.size());
  sums_ = at::empty({targets, stage.size(1)});
  own_ = at::empty({targets, stage.size(1)});
}

TileLayer::Range TileLayer::RangeOf(std::size_t tile) const {
  const std::size_t first = tile * static_cast<std::size_t>(kDenseRows);
  return {first, std::min<std::size_t>(kDenseRows, lists_.targets.size() - first)};
}

/// Of the targets of a tile; `out` is the row of its first.
void TileLayer::Sum(std::size_t window, const Range& range, bool keep, float* out,
                    std::size_t stride, const float* target_scale, const float* own,
                    const float* own_scale) const {
  SumArgs args;
  args.x = stage_;
  args.x_stride = dim_;
  args.dim = dim_;
  args.begins = lists_.BeginsOf(window) + range.first;
  args.ends = lists_.EndsOf(window) + range.first;
  args.index = lists_.neighbors.data();
  // Lists follow one another where they are not cut.
  args.index_end = lists_.windows() == 1 ? lists_.offsets[range.first + range.count] : 0;
  args.source_scale = stage_scale_.empty() ? nullptr : stage_scale_.data();
  args.target_scale = target_scale;
  args.initial = own;
  args.initial_stride = dim_;
  args.initial_rows = own == nullptr ? 0 : range.count;
  args.initial_scale = own_scale;
  args.keep = keep;
  args.out = out;
  args.out_stride = stride;
  Kernels().sum(args, 0, range.count);
}

/// The targets' own rows: those that the window has, and with the last window those before too.
void TileLayer::CopyOwn(std::size_t window, const Range& range, float* out,
                        std::size_t stride) const {
  const bool last = window + 1 == lists_.windows();
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    const std::uint32_t number = lists_.numbers[t];
    if (number / lists_.stage_rows == window) {
      std::memcpy(out + i * stride, stage_ + number % lists_.stage_rows * dim_,
                  dim_ * sizeof(float));
    } else if (last) {
      std::memcpy(out + i * stride, own_.data_ptr<float>() + t * dim_, dim_ * sizeof(float));
    }
  }
}

void TileLayer::AddWindow(std::size_t window, std::size_t tile) {
  const Range range = RangeOf(tile);
  Sum(window, range, window > 0, sums_.data_ptr<float>() + range.first * dim_, dim_, nullptr,
      nullptr, nullptr);
  CopyOwn(window, range, own_.data_ptr<float>() + range.first * dim_, dim_);
}

torch::Tensor TileLayer::Finish(std::size_t tile) {
  const Range range = RangeOf(tile);
  const std::size_t window = lists_.windows() - 1;
  const std::size_t width = sage() ? 2 * dim_ : dim_;
  torch::Tensor input = at::empty({kDenseRows, static_cast<std::int64_t>(width)});
  float* const out = input.data_ptr<float>();
  float* const sums = sage() ? out + dim_ : out;
  torch::Tensor gcn_own;
  std::vector<float> target_scale(range.count);
  std::vector<float> own_scale;
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    const std::uint32_t listed = lists_.offsets[t + 1] - lists_.offsets[t];
    float scale = listed == 0 ? 0 : 1 / static_cast<float>(listed);
    if (!sage()) {
      const float own = row_scale_[static_cast<std::size_t>(lists_.targets[t])];
      own_scale.push_back(own * own);
      scale *= own * static_cast<float>(degrees_[t]);
    }
    target_scale[i] = scale;
  }
  if (sage()) {
    CopyOwn(window, range, out, width);
  } else {
    gcn_own = at::empty({kDenseRows, static_cast<std::int64_t>(dim_)});
    CopyOwn(window, range, gcn_own.data_ptr<float>(), dim_);
  }
  if (window > 0) {
    for (std::size_t i = 0; i < range.count; ++i) {
      std::memcpy(sums + i * width, sums_.data_ptr<float>() + (range.first + i) * dim_,
                  dim_ * sizeof(float));
    }
  }
  Sum(window, range, window > 0, sums, width, target_scale.data(),
      sage() ? nullptr : gcn_own.data_ptr<float>(), sage() ? nullptr : own_scale.data());
  std::memset(out + range.count * width, 0,
              (static_cast<std::size_t>(kDenseRows) - range.count) * width * sizeof(float));
  torch::Tensor product = Multiply(input, weights_.weight, weights_.bias);
  ActivateRows({.relu = true}, product.data_ptr<float>(), kDenseRows, product.size(1), 0,
               product.data_ptr<float>());
  return product;
}

}  // namespace rhizome
