#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "gnn/links/decoder.h"
#include "gnn/ops/dense.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {
namespace {

struct MlpLayer {
  PackedWeight weight;
  torch::Tensor bias;  // [out]
};

class MlpDecoder final : public PairDecoder {
 public:
  MlpDecoder(std::size_t dim, std::vector<MlpLayer> layers)
      : dim_(dim), layers_(std::move(layers)) {}

  void Score(std::span<const PairRows> pairs, std::span<float> scores) const override;
  std::unique_ptr<QueryGroup> Group(std::span<const QueryRows> queries) const override;

 private:
  const std::size_t dim_;
  const std::vector<MlpLayer> layers_;
};

void MlpDecoder::Score(std::span<const PairRows> pairs, std::span<float> scores) const {
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

/// Scores each pair of a query and a row by itself.
class MlpGroup final : public QueryGroup {
 public:
  MlpGroup(const MlpDecoder& decoder, std::size_t dim, std::span<const QueryRows> queries)
      : decoder_(decoder), dim_(dim) {
    for (const QueryRows& query : queries) {
      given_.insert(given_.end(), query.given, query.given + dim);
      open_.push_back(query.open);
    }
  }

  void Score(const ProductRows& rows, std::size_t count, float* out,
             std::size_t stride) const override {
    std::vector<PairRows> pairs(count);
    std::vector<float> scores(count);
    for (std::size_t q = 0; q < open_.size(); ++q) {
      const float* const given = given_.data() + q * dim_;
      for (std::size_t i = 0; i < count; ++i) {
        const float* const row = rows.x + (rows.place == nullptr ? i : rows.place[i]) * rows.stride;
        pairs[i] = open_[q] == EdgeEnd::kDst ? PairRows{.src = given, .dst = row}
                                             : PairRows{.src = row, .dst = given};
      }
      decoder_.Score(pairs, scores);
      for (std::size_t i = 0; i < count; ++i) out[i * stride + q] = scores[i];
    }
  }

 private:
  const MlpDecoder& decoder_;
  const std::size_t dim_;
  std::vector<float> given_;  // [queries, dim]
  std::vector<EdgeEnd> open_;
};

std::unique_ptr<QueryGroup> MlpDecoder::Group(std::span<const QueryRows> queries) const {
  return std::make_unique<MlpGroup>(*this, dim_, queries);
}

Status WrongMlpTensor(const std::string& name, const NamedTensor& tensor,
                      const std::string& wanted) {
  return Status::InvalidArgument(fmt::format("tensor {} is [{}], but {} is expected", name,
                                             fmt::join(tensor.shape, ", "), wanted));
}

torch::Tensor ToTensor(const NamedTensor& tensor) {
  return torch::tensor(tensor.values).reshape(tensor.shape);
}

/// Returns layer `k`, whose input has `inputs` columns, or twice as many if it is the first.
Result<MlpLayer> TakeMlpLayer(const TensorFile& file, std::size_t k, std::int64_t inputs) {
  const std::string name = fmt::format("layers.{}", k);
  const auto weight = file.tensors.find(name + ".weight");
  const auto bias = file.tensors.find(name + ".bias");
  if (weight == file.tensors.end() || bias == file.tensors.end()) {
    return Fail(Status::InvalidArgument(
        fmt::format("an MLP decoder of {} tensors must have {name}.weight [out, in] and "
                    "{name}.bias [out], but one of them is missing",
                    file.tensors.size(), fmt::arg("name", name))));
  }
  const std::vector<std::int64_t>& shape = weight->second.shape;
  const bool joined = k == 0 && shape.size() == 2 && shape[1] == 2 * inputs;
  if (shape.size() != 2 || shape[0] == 0 || (shape[1] != inputs && !joined)) {
    return Fail(WrongMlpTensor(
        name + ".weight", weight->second,
        k == 0 ? fmt::format("[out, {}] or [out, {}], by the array's columns", inputs, 2 * inputs)
               : fmt::format("[out, {}]", inputs)));
  }
  if (bias->second.shape != std::vector<std::int64_t>{shape[0]})
    return Fail(WrongMlpTensor(name + ".bias", bias->second, fmt::format("[{}]", shape[0])));
  return MlpLayer{PackedWeight(ToTensor(weight->second)), ToTensor(bias->second)};
}

Result<std::unique_ptr<PairDecoder>> MakeMlpDecoder(const DecoderInput& input) {
  std::vector<MlpLayer> layers;
  auto inputs = static_cast<std::int64_t>(input.dim);
  for (std::size_t k = 0; 2 * k < input.file.tensors.size(); ++k) {
    RHIZOME_ASSIGN_OR_RETURN(MlpLayer layer, TakeMlpLayer(input.file, k, inputs));
    inputs = layer.weight.out();
    layers.push_back(std::move(layer));
  }
  if (layers.empty())
    return Fail(Status::InvalidArgument("an MLP decoder must have layers.0.weight"));
  if (inputs != 1) {
    return Fail(Status::InvalidArgument(
        fmt::format("the last layer of an MLP decoder must have one output, not {}", inputs)));
  }
  return std::make_unique<MlpDecoder>(input.dim, std::move(layers));
}

}  // namespace

/// A multilayer perceptron over the products a_i b_i or over both rows, pair by pair.
const DecoderKind& MlpDecoderKind() {
  static const DecoderKind kind{
      .name = "mlp",
      .title =
          "multilayer perceptron over the products a_i b_i, or over both rows; relations have "
          "no effect",
      .source = "the link predictors of OGB and DGL",
      .make = MakeMlpDecoder};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
