#include "rhizome/gnn/tile_layer.h"

#include <algorithm>
#include <cstring>

#include "rhizome/cache/aggregate_kernels.h"
#include "rhizome/cache/simd.h"
#include "rhizome/gnn/activation.h"
#include "rhizome/storage/check.h"

namespace rhizome::inline internal {

TileLayer::TileLayer(const BlockLists& lists, const TileWeights& weights, std::size_t dim,
                     std::span<const float> row_scale, std::vector<std::uint32_t> degrees,
                     std::span<float> sums)
    : lists_(lists),
      weights_(weights),
      dim_(dim),
      row_scale_(row_scale),
      degrees_(std::move(degrees)),
      sums_(sums) {
  if (one_window()) return;
  RHIZOME_CHECK(sums_.size() >= lists.targets.size() * dim);
  if (lists.sum_windows() == 0) std::fill_n(sums_.begin(), lists.targets.size() * dim, 0.0F);
  added_.assign(lists.offsets.begin(), lists.offsets.end() - 1);
}

SumArgs TileLayer::RowArgs(const StagedRows& staged) const {
  SumArgs args;
  args.x = staged.rows;
  args.x_stride = dim_;
  args.dim = dim_;
  args.source_scale = staged.scale.empty() ? nullptr : staged.scale.data();
  return args;
}

void TileLayer::AddWindow(std::size_t window, const StagedRows& staged, const TargetRange& range) {
  // The parts of the lists that are in the window, as slots of the stage.
  thread_local std::vector<std::uint32_t> offsets;
  thread_local std::vector<std::uint32_t> slots;
  const auto first = static_cast<std::uint32_t>(window * lists_.stage_rows);
  const std::uint64_t end = (window + 1) * lists_.stage_rows;
  offsets.assign(1, 0);
  slots.clear();
  for (std::size_t t = range.first; t < range.first + range.count; ++t) {
    std::uint32_t e = added_[t];
    for (; e < lists_.offsets[t + 1] && lists_.neighbors[e] < end; ++e) {
      slots.push_back(lists_.neighbors[e] - first);
    }
    added_[t] = e;
    offsets.push_back(static_cast<std::uint32_t>(slots.size()));
  }
  SumArgs args = RowArgs(staged);
  args.begins = offsets.data();
  args.ends = offsets.data() + 1;
  args.index = slots.data();
  args.index_end = offsets.back();
  args.keep = window > 0;
  args.out = sums_.data() + range.first * dim_;
  args.out_stride = dim_;
  Kernels().sum(args, 0, range.count);
}

void TileLayer::CopyOwn(const StagedRows& staged, const TargetRange& range, std::size_t own_first,
                        float* out, std::size_t stride) const {
  for (std::size_t i = 0; i < range.count; ++i) {
    const std::size_t t = range.first + i;
    const std::size_t slot = one_window() ? lists_.numbers[t] : t - own_first;
    std::memcpy(out + i * stride, staged.rows + slot * dim_, dim_ * sizeof(float));
  }
}

torch::Tensor TileLayer::Finish(const StagedRows& staged, const TargetRange& range,
                                std::size_t own_first) {
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
  SumArgs args = RowArgs(staged);
  args.begins = lists_.offsets.data() + range.first;
  // over several windows the sums are complete by now
  args.ends = args.begins + (one_window() ? 1 : 0);
  args.index = lists_.neighbors.data();
  // Lists are contiguous, so rows of later targets may be prefetched.
  args.index_end = lists_.offsets[range.first + range.count];
  args.target_scale = target_scale.data();
  args.keep = !one_window();
  args.out = sums;
  args.out_stride = width;
  if (sage()) {
    CopyOwn(staged, range, own_first, out, width);
  } else {
    gcn_own = at::empty({kDenseRows, static_cast<std::int64_t>(dim_)});
    CopyOwn(staged, range, own_first, gcn_own.data_ptr<float>(), dim_);
    args.initial = gcn_own.data_ptr<float>();
    args.initial_stride = dim_;
    args.initial_rows = range.count;
    args.initial_scale = own_scale.data();
  }
  for (std::size_t i = 0; i < range.count && !one_window(); ++i) {
    std::memcpy(sums + i * width, sums_.data() + (range.first + i) * dim_, dim_ * sizeof(float));
  }
  Kernels().sum(args, 0, range.count);
  std::memset(out + range.count * width, 0,
              (static_cast<std::size_t>(kDenseRows) - range.count) * width * sizeof(float));
  torch::Tensor product = Multiply(input, weights_.weight, weights_.bias);
  ActivateRows({.relu = true}, product.data_ptr<float>(), kDenseRows, product.size(1), 0,
               product.data_ptr<float>());
  return product;
}

}  // namespace rhizome::inline internal
