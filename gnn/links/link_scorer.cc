#include "gnn/links/link_scorer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>
#include <string>

namespace rhizome {
inline namespace internal {
namespace {

/// Number of partial sums of a dot product. Column d is added to sum d % kLanes, and the sums are
/// added as a fixed tree, so that the compiler may use vectors of any width and the bits are the
/// same.
constexpr std::size_t kLanes = 16;

float AddLanes(std::array<float, kLanes> lanes) {
  for (std::size_t half = kLanes / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

template <typename Product>
float SumOf(std::size_t dim, Product product) {
  std::array<float, kLanes> lanes{};
  std::size_t d = 0;
  for (; d + kLanes <= dim; d += kLanes)
    for (std::size_t i = 0; i < kLanes; ++i) lanes[i] += product(d + i);
  for (std::size_t i = 0; d + i < dim; ++i) lanes[i] += product(d + i);
  return AddLanes(lanes);
}

std::string ShapeOf(const NamedTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

Status WrongTensor(const std::string& name, const NamedTensor& tensor, const std::string& wanted) {
  return Status::InvalidArgument(
      fmt::format("tensor {} is {}, but {} is expected", name, ShapeOf(tensor), wanted));
}

torch::Tensor ToTensor(const NamedTensor& tensor) {
  return torch::tensor(tensor.values).reshape(tensor.shape);
}

}  // namespace

Result<LinkScorer> LinkScorer::Create(LinkScorerKind kind, std::uint64_t dim,
                                      const TensorFile& decoder) {
  LinkScorer scorer;
  scorer.kind_ = kind;
  scorer.dim_ = dim;
  if (kind == LinkScorerKind::kDistMult) RHIZOME_RETURN_IF_ERROR(scorer.TakeRelations(decoder));
  if (kind == LinkScorerKind::kMlp) RHIZOME_RETURN_IF_ERROR(scorer.TakeLayers(decoder));
  return scorer;
}

std::optional<std::uint64_t> LinkScorer::types() const {
  if (kind_ != LinkScorerKind::kDistMult || relations_.size() == dim_) return std::nullopt;
  return relations_.size() / dim_;
}

Status LinkScorer::TakeRelations(const TensorFile& decoder) {
  const auto found = decoder.tensors.find("relations");
  if (found == decoder.tensors.end() || decoder.tensors.size() != 1) {
    return Status::InvalidArgument(
        "a DistMult decoder must have one tensor, 'relations' [types, columns of the array]");
  }
  const NamedTensor& tensor = found->second;
  if (tensor.shape.size() != 2 || tensor.shape[0] == 0 ||
      tensor.shape[1] != static_cast<std::int64_t>(dim_)) {
    return WrongTensor("relations", tensor, fmt::format("[types, {}]", dim_));
  }
  relations_ = tensor.values;
  return Status::Ok();
}

Status LinkScorer::TakeLayers(const TensorFile& decoder) {
  auto inputs = static_cast<std::int64_t>(dim_);
  for (std::size_t k = 0; 2 * k < decoder.tensors.size(); ++k) {
    const std::string name = fmt::format("layers.{}", k);
    const auto weight = decoder.tensors.find(name + ".weight");
    const auto bias = decoder.tensors.find(name + ".bias");
    if (weight == decoder.tensors.end() || bias == decoder.tensors.end()) {
      return Status::InvalidArgument(
          fmt::format("an MLP decoder of {} tensors must have {name}.weight [out, in] and "
                      "{name}.bias [out], but one of them is missing",
                      decoder.tensors.size(), fmt::arg("name", name)));
    }
    const std::vector<std::int64_t>& shape = weight->second.shape;
    const bool joined = k == 0 && shape.size() == 2 && shape[1] == 2 * inputs;
    if (shape.size() != 2 || shape[0] == 0 || (shape[1] != inputs && !joined)) {
      return WrongTensor(
          name + ".weight", weight->second,
          k == 0 ? fmt::format("[out, {}] or [out, {}], by the array's columns", dim_, 2 * dim_)
                 : fmt::format("[out, {}]", inputs));
    }
    if (bias->second.shape != std::vector<std::int64_t>{shape[0]})
      return WrongTensor(name + ".bias", bias->second, fmt::format("[{}]", shape[0]));
    layers_.push_back({PackedWeight(ToTensor(weight->second)), ToTensor(bias->second)});
    inputs = shape[0];
  }
  if (layers_.empty()) return Status::InvalidArgument("an MLP decoder must have layers.0.weight");
  if (inputs != 1) {
    return Status::InvalidArgument(
        fmt::format("the last layer of an MLP decoder must have one output, not {}", inputs));
  }
  return Status::Ok();
}

void LinkScorer::Score(std::span<const PairRows> pairs, std::span<float> scores) const {
  if (kind_ == LinkScorerKind::kMlp) return ScoreByLayers(pairs, scores);
  const bool one_relation = relations_.size() == dim_;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const float* a = pairs[i].src;
    const float* b = pairs[i].dst;
    if (kind_ == LinkScorerKind::kDot) {
      scores[i] = SumOf(dim_, [&](std::size_t d) { return a[d] * b[d]; });
      continue;
    }
    const float* r = relations_.data() + (one_relation ? 0 : pairs[i].type * dim_);
    scores[i] = SumOf(dim_, [&](std::size_t d) { return a[d] * r[d] * b[d]; });
  }
}

void LinkScorer::ScoreByLayers(std::span<const PairRows> pairs, std::span<float> scores) const {
  const c10::InferenceMode guard;
  const std::int64_t width = layers_.front().weight.in();
  const bool joined = static_cast<std::size_t>(width) == 2 * dim_;
  torch::Tensor hidden = torch::empty({static_cast<std::int64_t>(pairs.size()), width});
  float* row = hidden.data_ptr<float>();
  for (const PairRows& pair : pairs) {
    if (joined) {
      std::memcpy(row, pair.src, dim_ * sizeof(float));
      std::memcpy(row + dim_, pair.dst, dim_ * sizeof(float));
    } else {
      for (std::size_t d = 0; d < dim_; ++d) row[d] = pair.src[d] * pair.dst[d];
    }
    row += width;
  }
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    hidden = Multiply(hidden, layers_[k].weight, layers_[k].bias);
    if (k + 1 < layers_.size()) hidden.relu_();
  }
  std::memcpy(scores.data(), hidden.data_ptr<float>(), scores.size_bytes());
}

}  // namespace internal
}  // namespace rhizome
