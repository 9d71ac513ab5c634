#include "gnn/ops/block_products.h"

#include "cache/kernels/simd.h"

namespace rhizome {
inline namespace internal {

RowsByClass RowsByClass::Of(std::span<const std::uint16_t> class_of, std::size_t classes) {
  RowsByClass sorted;
  sorted.begin.assign(classes + 1, 0);
  for (const std::uint16_t c : class_of) ++sorted.begin[c + std::size_t{1}];
  for (std::size_t c = 0; c < classes; ++c) sorted.begin[c + 1] += sorted.begin[c];
  sorted.rows.resize(class_of.size());
  std::vector<std::uint32_t> next(sorted.begin.begin(), sorted.begin.end() - 1);
  for (std::size_t i = 0; i < class_of.size(); ++i)
    sorted.rows[next[class_of[i]]++] = static_cast<std::uint32_t>(i);
  return sorted;
}

PackedBlocks PackBlocks(const torch::Tensor& weight, bool turned) {
  PackedBlocks blocks;
  for (std::int64_t b = 0; b < weight.size(0); ++b) {
    const torch::Tensor block = weight.detach().select(0, b);
    blocks.emplace_back(turned ? block.t() : block);
  }
  return blocks;
}

PackedClasses::PackedClasses(const torch::Tensor& weight, const torch::Tensor& bias)
    : out_(weight.size(1) * weight.size(2)) {
  if (bias.defined() && bias.numel() > 0) bias_ = bias.detach().contiguous();
  for (std::int64_t c = 0; c < weight.size(0); ++c)
    matrices_.push_back(PackBlocks(weight.select(0, c)));
}

PackedClasses::PackedClasses(const torch::Tensor& weight, const RowsByClass& classes, bool turned)
    : matrices_(static_cast<std::size_t>(weight.size(0))),
      out_(weight.size(1) * weight.size(turned ? 3 : 2)) {
  for (std::size_t c = 0; c < matrices_.size(); ++c) {
    if (classes.begin[c] != classes.begin[c + 1])
      matrices_[c] = PackBlocks(weight.select(0, static_cast<std::int64_t>(c)), turned);
  }
}

const float* PackedClasses::BiasOf(std::size_t of_class) const {
  return bias_.defined() ? bias_.data_ptr<float>() + of_class * static_cast<std::size_t>(out())
                         : nullptr;
}

void MultiplyBlocks(const ProductRows& rows, std::size_t count,
                    std::span<const PackedWeight> blocks, const float* bias, float* out) {
  const auto outputs = static_cast<std::size_t>(blocks.front().out());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    ProductRows of_block = rows;
    of_block.columns = static_cast<std::size_t>(blocks[b].in());
    of_block.x += b * of_block.columns;
    Products().multiply({.rows = of_block,
                         .panels = blocks[b].panels(),
                         .bias = bias == nullptr ? nullptr : bias + b * outputs,
                         .outputs = outputs,
                         .out = out + b * outputs,
                         .out_stride = outputs * blocks.size()},
                        0, count);
  }
}

}  // namespace internal
}  // namespace rhizome
