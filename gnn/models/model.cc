#include "rhizome/gnn/model.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "rhizome/cache/minibatch.h"
#include "rhizome/storage/mix.h"

namespace rhizome::inline internal {
namespace {

/// Draws weights uniformly from [-limit, limit), from the generator's upper bits: std distributions
/// differ between standard libraries, and a seed must give the same model everywhere.
torch::Tensor GlorotUniform(std::int64_t out, std::int64_t in, std::mt19937_64& random) {
  torch::Tensor weight = torch::empty({out, in});
  const double limit = std::sqrt(6.0 / static_cast<double>(in + out));
  float* values = weight.data_ptr<float>();
  for (std::int64_t i = 0; i < weight.numel(); ++i) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    values[i] = static_cast<float>((2 * unit - 1) * limit);
  }
  return weight;
}

Status WrongModelTensor(const std::string& name, std::string_view what) {
  return Status::Corruption(fmt::format("model file: tensor {} {}", name, what));
}

}  // namespace

template <typename Visit>
void Model::VisitWeights(Visit visit) {
  const std::int64_t hidden = shape_.spec.hidden;
  for (std::uint32_t k = 0; k < shape_.spec.layers; ++k) {
    ConvLayer& layer = layers_[k];
    const std::string prefix = fmt::format("layers.{}.", k);
    const std::int64_t in = shape_.LayerInputs(k);
    visit(prefix + "neighbor.weight", layer.neighbor_weight, std::vector{hidden, in});
    if (layer.kind == ModelKind::kSage) {
      visit(prefix + "self.weight", layer.self_weight, std::vector{hidden, in});
    }
    visit(prefix + "bias", layer.bias, std::vector{hidden});
  }
  visit(std::string("head.weight"), head_weight_, std::vector{shape_.classes, hidden});
  visit(std::string("head.bias"), head_bias_, std::vector{shape_.classes});
}

Result<Model> Model::Create(const ModelShape& shape, std::uint64_t seed) {
  RHIZOME_RETURN_IF_ERROR(CheckShape(shape));
  Model model;
  model.shape_ = shape;
  model.layers_.resize(shape.spec.layers);
  for (ConvLayer& layer : model.layers_) layer.kind = shape.spec.kind;
  std::mt19937_64 random(seed);
  model.VisitWeights(
      [&](const std::string&, torch::Tensor& tensor, const std::vector<std::int64_t>& extents) {
        tensor = extents.size() == 2 ? GlorotUniform(extents[0], extents[1], random)
                                     : torch::zeros(extents);
        tensor.set_requires_grad(true);
      });
  return model;
}

Result<Model> Model::FromFile(const TensorFile& file) {
  const auto found = file.metadata.find(std::string(kModelMetadataKey));
  if (found == file.metadata.end()) {
    return Fail(Status::Corruption(
        "model file: its metadata lack the entry \"rhizome\"; it was not written by train"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ModelShape shape, DecodeModelShape(found->second));
  Model model;
  model.shape_ = shape;
  model.layers_.resize(shape.spec.layers);
  for (ConvLayer& layer : model.layers_) layer.kind = shape.spec.kind;
  Status status;
  std::size_t used = 0;
  model.VisitWeights([&](const std::string& name, torch::Tensor& tensor,
                         const std::vector<std::int64_t>& extents) {
    const auto stored = file.tensors.find(name);
    if (stored == file.tensors.end()) {
      status = WrongModelTensor(name, "is missing");
    } else if (stored->second.shape != extents) {
      status = WrongModelTensor(name, "does not have the shape that the description says");
    } else {
      ++used;
      tensor = torch::tensor(at::ArrayRef<float>(stored->second.values)).view(extents);
      tensor.set_requires_grad(true);
    }
  });
  RHIZOME_RETURN_IF_ERROR(status);
  if (used != file.tensors.size()) {
    return Fail(Status::Corruption("model file: holds tensors that are no part of the model"));
  }
  return model;
}

TensorFile Model::ToFile() const {
  TensorFile file;
  file.metadata[std::string(kModelMetadataKey)] = EncodeModelShape(shape_);
  Model view = *this;  // tensors are handles: this copies no weight
  view.VisitWeights([&](const std::string& name, torch::Tensor& tensor,
                        const std::vector<std::int64_t>& extents) {
    const torch::Tensor values = tensor.detach().contiguous();
    const float* data = values.data_ptr<float>();
    file.tensors[name] = {.shape = extents, .values = {data, data + values.numel()}};
  });
  return file;
}

torch::Tensor Model::Head(const torch::Tensor& embeddings) const {
  return torch::addmm(head_bias_, embeddings, head_weight_.t());
}

torch::Tensor Model::HeadOfTile(const torch::Tensor& embeddings) const {
  return Multiply(embeddings, head_weight_, head_bias_);
}

torch::Tensor Model::HeadWithDropout(const torch::Tensor& embeddings,
                                     std::uint64_t dropout_seed) const {
  return Head(Activate(
      embeddings,
      {.relu = false, .dropout = shape_.spec.dropout, .seed = SplitMix64(dropout_seed, 0)}));
}

std::vector<LayerGraph> Model::MakeGraphs(const Minibatch& minibatch) const {
  std::vector<LayerGraph> graphs;
  const std::uint32_t layers = shape_.spec.layers;
  const auto last_hop = static_cast<std::uint32_t>(minibatch.hop_offsets.size()) - 2;
  for (std::uint32_t k = 0; k < layers; ++k) {
    // Without edges there is one hop, the seeds, and every layer has the same targets and sources.
    const std::uint32_t hop = std::min(layers - 1 - k, last_hop);
    const std::uint64_t targets = minibatch.hop_offsets[hop + 1];
    const std::uint64_t sources = minibatch.hop_offsets[std::min(hop + 1, last_hop) + 1];
    const std::span<const std::uint32_t> offsets = std::span(minibatch.offsets);
    const CsrView csr{.offsets = offsets.subspan(0, targets + 1),
                      .neighbors = std::span(minibatch.neighbors).subspan(0, offsets[targets])};
    graphs.push_back(MakeLayerGraph(shape_.spec.kind, csr, minibatch.degrees,
                                    static_cast<std::int64_t>(sources)));
  }
  return graphs;
}

torch::Tensor Model::Embed(const Minibatch& minibatch, const std::vector<LayerGraph>& graphs,
                           const std::uint64_t* dropout_seed) const {
  const FeatureRows& features = minibatch.features;
  const auto type = features.type() == DataType::kFloat16 ? torch::kHalf : torch::kFloat32;
  const std::span<const std::byte> table = features.table();
  const auto table_rows = static_cast<std::int64_t>(table.size() / features.row_bytes());
  LayerRows rows{torch::from_blob(const_cast<std::byte*>(table.data()),  // it is only read
                                  {table_rows, shape_.inputs}, type),
                 features.place()};
  for (std::uint32_t k = 0; k < shape_.spec.layers; ++k) {
    Activation activation{.relu = true, .dropout = 0, .seed = 0};
    if (dropout_seed != nullptr && k + 1 < shape_.spec.layers) {  // the inputs of layer k + 1
      activation.dropout = shape_.spec.dropout;
      activation.seed = SplitMix64(*dropout_seed, k + 1);
    }
    // Usually all rows: a layer has as many sources as the layer below has targets.
    rows = {layers_[k].Forward(rows.First(graphs[k].sources()), graphs[k], activation)};
  }
  return rows.table;
}

std::vector<torch::Tensor> Model::Parameters() const {
  std::vector<torch::Tensor> parameters;
  Model view = *this;
  view.VisitWeights([&](const std::string&, torch::Tensor& tensor,
                        const std::vector<std::int64_t>&) { parameters.push_back(tensor); });
  return parameters;
}

std::vector<std::string> Model::ParameterNames() const {
  std::vector<std::string> names;
  Model view = *this;
  view.VisitWeights([&](const std::string& name, torch::Tensor&, const std::vector<std::int64_t>&) {
    names.push_back(name);
  });
  return names;
}

std::vector<torch::Tensor> Model::CopyWeights() const {
  std::vector<torch::Tensor> weights;
  for (const torch::Tensor& parameter : Parameters()) weights.push_back(parameter.detach().clone());
  return weights;
}

void Model::RestoreWeights(const std::vector<torch::Tensor>& weights) {
  const torch::NoGradGuard guard;
  const std::vector<torch::Tensor> parameters = Parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    torch::Tensor parameter = parameters[i];
    parameter.copy_(weights[i]);
  }
}

}  // namespace rhizome::inline internal
