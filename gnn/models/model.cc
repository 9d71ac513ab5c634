#include "gnn/models/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "gnn/models/registry.h"
#include "gnn/models/shape_types.h"
#include "gnn/ops/typed_graph.h"
#include "rhizome/loader.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

// Build creates the input layer, if there are inputs by type, and the layers one after the other:
// it derives a layer's widths from the previous layer, creates the convolution, and adds an input
// layer before the first one if the kind of layer or the style needs it. Create and FromFile then
// set all tensors, which VisitWeights enumerates in a fixed order. Embed runs all layers on a
// minibatch, Scores also the head.

namespace rhizome {
inline namespace internal {
namespace {

/// Draws weights uniformly from [-limit, limit), from the generator's upper bits: std distributions
/// differ between standard libraries, and a seed must give the same model everywhere.
/// The last two dimensions of `shape` are [out, in]; there may be several such matrices.
torch::Tensor GlorotUniform(const std::vector<std::int64_t>& shape, std::mt19937_64& random) {
  torch::Tensor weight = torch::empty(shape);
  const std::int64_t out = shape[shape.size() - 2], in = shape.back();
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

torch::Tensor Filled(const WeightSpec& spec, std::mt19937_64& random) {
  if (spec.fill == WeightSpec::Fill::kZeros) return torch::zeros(spec.shape);
  if (spec.fill == WeightSpec::Fill::kOnes) return torch::ones(spec.shape);
  if (spec.shape.size() == 1) return GlorotUniform({1, spec.shape[0]}, random).view(spec.shape);
  return GlorotUniform(spec.shape, random);
}

/// Adds the rows and groups by class to a layer's graph.
void AddTypes(const ModelShape& shape, std::size_t sources, std::span<const TypeId> types,
              LayerGraph& graph) {
  graph.typed = MakeTypedGraph(graph.groups, graph.lists.csr(), sources, types,
                               {.vertex_types = static_cast<std::size_t>(shape.vertex_type_count()),
                                .relations = static_cast<std::size_t>(shape.relation_count())});
}

/// Dropout draw of the features. layer.cc numbers the draws of layers.
constexpr std::uint64_t kInputDraw = std::uint64_t{1} << 32;

/// Returns the mode for rows on the device where the graphs' lists are.
RunMode Beside(const std::vector<LayerGraph>& graphs, RunMode mode) {
  const DeviceUploads* const uploads = graphs.front().lists.uploads();
  if (uploads != nullptr) mode.device = &uploads->device();
  return mode;
}

}  // namespace

Result<Model> Model::Build(const ModelShape& shape) {
  RHIZOME_ASSIGN_OR_RETURN(const ModelOptions options, CheckShape(shape));
  RHIZOME_ASSIGN_OR_RETURN(const ConvKind* const kind, FindConvKind(shape.spec.kind));
  const LayerStyle style = LayerStyle::Of(options, shape.spec.dropout);
  Model model;
  model.shape_ = shape;
  model.head_ = HeadOf(options);
  model.head_drops_ = !style.feed_forward;
  model.input_dropout_ = options.Number("input-dropout");
  if (!shape.typed_inputs.empty()) model.inputs_.emplace(shape, options);
  const std::int64_t hidden = shape.spec.hidden;
  std::int64_t raw = shape.inputs;
  std::int64_t jump = 0;
  for (std::uint32_t k = 0; k < shape.spec.layers; ++k) {
    LayerShape layer{.number = k, .raw = raw, .in = k == 0 ? raw : hidden, .out = hidden};
    layer.last = k + 1 == shape.spec.layers;
    layer.is_output = layer.last && model.head_ == HeadKind::kNone;
    if (layer.is_output) layer.out = shape.classes;
    ConvShape conv{.number = k,
                   .in = layer.in,
                   .out = layer.out,
                   .first = hidden,
                   .is_output = layer.is_output,
                   .relations = shape.relation_count(),
                   .vertex_types = shape.vertex_type_count()};
    RHIZOME_ASSIGN_OR_RETURN(std::shared_ptr<Conv> made, kind->make(conv, options));
    layer.first = made->pieces().reads_first ? hidden : 0;
    if (k == 0 && (layer.first > 0 || style.feed_forward)) {
      // An input layer computes the first hidden rows.
      layer.in = conv.in = hidden;
      RHIZOME_ASSIGN_OR_RETURN(made, kind->make(conv, options));
    }
    layer.jump_from = jump;
    model.layers_.emplace_back(layer, style, std::move(made));
    raw = model.layers_.back().raw_out();
    jump = raw - hidden - layer.first;
  }
  return model;
}

void Model::VisitWeights(const WeightVisitor& visit) const {
  if (inputs_) inputs_->VisitWeights(visit);
  for (const Layer& layer : layers_) layer.VisitWeights(visit);
  VisitHead(visit);
  for (auto& [name, tensor] : *decoder_)
    visit({.name = name, .shape = tensor.sizes().vec()}, tensor);
}

void Model::SetDecoder(const std::map<std::string, torch::Tensor>& weights) {
  for (const auto& [name, tensor] : weights) {
    torch::Tensor& weight = (*decoder_)[std::string(kDecoderPrefix) + name];
    weight = tensor.detach().clone();
    weight.set_requires_grad(true);
  }
}

const torch::Tensor& Model::DecoderWeight(const std::string& name) const {
  const auto found = decoder_->find(std::string(kDecoderPrefix) + name);
  RHIZOME_CHECK(found != decoder_->end());
  return found->second;
}

void Model::VisitHead(const WeightVisitor& visit) const {
  if (head_ == HeadKind::kNone) return;
  const std::int64_t width = embedding_width();
  HeadWeights& w = *head_weights_;
  if (head_ == HeadKind::kMlp) w.hidden.Visit("head.hidden", width, width, visit);
  w.scores.Visit("head", width, shape_.classes, visit);
}

Result<Model> Model::Create(const ModelShape& shape, std::uint64_t seed) {
  RHIZOME_ASSIGN_OR_RETURN(Model model, Build(shape));
  std::mt19937_64 random(seed);
  model.VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    tensor = Filled(spec, random);
    tensor.set_requires_grad(spec.trained);
  });
  return model;
}

Result<std::uint64_t> CountWeights(const ModelShape& shape) {
  RHIZOME_ASSIGN_OR_RETURN(const Model model, Model::Build(shape));
  std::uint64_t count = 0;
  model.VisitWeights([&](const WeightSpec& spec, torch::Tensor&) {
    std::uint64_t of_weight = 1;
    for (const std::int64_t size : spec.shape) of_weight *= static_cast<std::uint64_t>(size);
    count += of_weight;
  });
  return count;
}

Result<Model> Model::FromFile(const TensorFile& file) {
  const auto found = file.metadata.find(std::string(kModelMetadataKey));
  if (found == file.metadata.end()) {
    return Fail(Status::Corruption(
        "model file: its metadata has no entry \"rhizome\"; it was not written by train"));
  }
  RHIZOME_ASSIGN_OR_RETURN(const ModelShape shape, DecodeModelShape(found->second));
  Result<Model> built = Build(shape);
  if (!built) return Fail(Status::Corruption("model file: " + built.error().message()));
  for (const auto& [name, stored] : file.tensors)
    if (name.starts_with(kDecoderPrefix)) (*built->decoder_)[name] = torch::empty(stored.shape);
  Status status;
  std::size_t used = 0;
  built->VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    const auto stored = file.tensors.find(spec.name);
    if (stored == file.tensors.end()) {
      status = WrongModelTensor(spec.name, "is missing");
    } else if (stored->second.shape != spec.shape) {
      status = WrongModelTensor(spec.name, "does not have the shape in the description");
    } else {
      ++used;
      tensor = torch::tensor(at::ArrayRef<float>(stored->second.values)).view(spec.shape);
      tensor.set_requires_grad(spec.trained);
    }
  });
  RHIZOME_RETURN_IF_ERROR(status);
  if (used != file.tensors.size()) {
    return Fail(Status::Corruption("model file: has tensors that do not belong to the model"));
  }
  return built;
}

TensorFile Model::ToFile() const {
  TensorFile file;
  file.metadata[std::string(kModelMetadataKey)] = EncodeModelShape(shape_);
  VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    const torch::Tensor values = tensor.detach().to(torch::kCPU).contiguous();
    const float* data = values.data_ptr<float>();
    file.tensors[spec.name] = {.shape = spec.shape, .values = {data, data + values.numel()}};
  });
  return file;
}

ModelSpec Model::FullSpec() const {
  ModelSpec spec = shape_.spec;
  spec.options = OptionsOf(shape_);
  return spec;
}

Status Model::SetTypes(const std::vector<std::string>& vertex_types) {
  if (inputs_) RHIZOME_RETURN_IF_ERROR(inputs_->SetTypes(vertex_types));
  if (by_vertex_type()) {
    RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> types,
                             NumbersOfTypes("vertex type", vertex_types, shape_.vertex_types));
    type_of_.assign(types.begin(), types.end());
  }
  return Status::Ok();
}

void Model::FitSampling(MinibatchSamplerOptions& sampling) const {
  const ReducePiece& reduce = layers_.front().pieces().reduce;
  sampling.no_edges = shape_.spec.no_edges;
  sampling.vertex_types = sampling.vertex_types || inputs_.has_value() || by_vertex_type();
  sampling.degrees = reduce.needs_degrees();
  sampling.edge_weights = sampling.edge_weights && reduce.weighs();
  sampling.weighted_degrees = sampling.edge_weights && reduce.symmetric;
  if (!typed()) return;
  sampling.edge_types = true;
  sampling.sampler.types_by_side = true;
  if (sampling.valid_sampler) sampling.valid_sampler->types_by_side = true;
}

Status Model::FitRelations(const std::vector<std::string>& edge_types, bool by_side,
                           const std::vector<std::vector<std::int64_t>>& fanouts) {
  if (!typed() || shape_.spec.no_edges) return Status::Ok();
  if (by_side && !shape_.by_side) {
    return Status::Unsupported(
        "the model has weights for edges of one direction only; follow that direction, for example "
        "by `direction=in`, or train a model with `direction=both`");
  }
  std::vector<std::string> followed;
  std::vector<TypeId> relations(std::max<std::size_t>(edge_types.size(), 1), 0);
  std::vector<std::size_t> of_followed;
  for (std::size_t type = 0; type < edge_types.size(); ++type) {
    const bool follows =
        fanouts.empty() || std::any_of(fanouts.begin(), fanouts.end(),
                                       [&](const auto& hop) { return hop[type] != 0; });
    if (!follows) continue;
    followed.push_back(edge_types[type]);
    of_followed.push_back(type);
  }
  RHIZOME_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> numbers,
                           NumbersOfTypes("edge type", followed, shape_.relations));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    relations[of_followed[i]] = static_cast<TypeId>(numbers[i]);
  const auto shift = static_cast<TypeId>(std::max<std::size_t>(shape_.relations.size(), 1));
  const std::size_t count = relations.size();
  for (std::size_t i = 0; i < count && by_side; ++i)
    relations.push_back(static_cast<TypeId>(relations[i] + shift));
  if (RHIZOME_MUTANT("relations are of the other side") && by_side)
    std::rotate(relations.begin(), relations.begin() + static_cast<std::ptrdiff_t>(count),
                relations.end());
  relation_of_ = std::move(relations);
  return Status::Ok();
}

std::uint32_t Model::hops() const {
  // A symmetric sum depends on the degrees of neighbours, which change one edge further.
  return layers() + (layers_.front().pieces().reduce.symmetric ? 1 : 0);
}

torch::Tensor Model::Head(const torch::Tensor& embeddings) const {
  const auto& [hidden, scores] = *head_weights_;
  if (head_ == HeadKind::kNone) return embeddings;
  torch::Tensor rows = embeddings;
  if (head_ == HeadKind::kMlp) rows = at::relu(hidden.Of({rows}));
  return scores.Of({rows});
}

torch::Tensor Model::HeadOfTile(const torch::Tensor& embeddings) const {
  const auto& [hidden, scores] = *head_weights_;
  if (head_ == HeadKind::kNone) return embeddings;
  torch::Tensor rows = embeddings;
  if (head_ == HeadKind::kMlp)
    rows = at::relu(Multiply(rows, PackedWeight(hidden.weight), hidden.bias));
  return Multiply(rows, PackedWeight(scores.weight), scores.bias);
}

std::shared_ptr<const GroupedCsr> Model::Grouped(const Minibatch& minibatch) const {
  const CsrView csr{.offsets = minibatch.offsets, .neighbors = minibatch.neighbors};
  if (relation_of_.empty()) {
    return std::make_shared<const GroupedCsr>(
        GroupByRelation(csr, minibatch.types, minibatch.weights));
  }
  // Without types, all edges have the graph's only type.
  std::vector<TypeId> relations;
  relations.reserve(minibatch.neighbors.size());
  if (minibatch.types.empty()) relations.assign(minibatch.neighbors.size(), relation_of_.front());
  for (const TypeId type : minibatch.types) relations.push_back(relation_of_[type]);
  return std::make_shared<const GroupedCsr>(GroupByRelation(csr, relations, minibatch.weights));
}

std::vector<TypeId> Model::TypesOf(const Minibatch& minibatch) const {
  std::vector<TypeId> types = minibatch.vertex_types;
  if (type_of_.empty()) return types;
  // Without types, all vertices have the graph's only type.
  if (types.empty()) types.assign(minibatch.rows.size(), 0);
  for (TypeId& type : types) type = type_of_[type];
  return types;
}

std::vector<LayerGraph> Model::MakeGraphs(const Minibatch& minibatch) const {
  std::vector<LayerGraph> graphs;
  const std::shared_ptr<const GroupedCsr> grouped = typed() ? Grouped(minibatch) : nullptr;
  const std::vector<TypeId> types = by_vertex_type() ? TypesOf(minibatch) : std::vector<TypeId>();
  const auto last_hop = static_cast<std::uint32_t>(minibatch.hop_offsets.size()) - 2;
  for (std::uint32_t k = 0; k < layers(); ++k) {
    // Without edges there is one hop, the seeds, and every layer has the same targets and sources.
    const std::uint32_t hop = std::min(layers() - 1 - k, last_hop);
    const std::uint64_t targets = minibatch.hop_offsets[hop + 1];
    const std::uint64_t sources = minibatch.hop_offsets[std::min(hop + 1, last_hop) + 1];
    const std::span<const std::uint32_t> offsets = std::span(minibatch.offsets);
    if (grouped != nullptr) {
      graphs.push_back(MakeGroupedGraph(layers_[k].pieces().reduce, grouped, targets,
                                        static_cast<std::int64_t>(sources)));
      if (by_vertex_type()) AddTypes(shape_, sources, types, graphs.back());
      continue;
    }
    const CsrView csr{.offsets = offsets.subspan(0, targets + 1),
                      .neighbors = std::span(minibatch.neighbors).subspan(0, offsets[targets])};
    // A minibatch has weights only if the job uses them.
    const auto weights = minibatch.weights.empty()
                             ? std::span<const float>()
                             : std::span(minibatch.weights).first(offsets[targets]);
    graphs.push_back(MakeLayerGraph(layers_[k].pieces().reduce, csr,
                                    {.degrees = minibatch.degrees,
                                     .weights = weights,
                                     .weighted_degrees = minibatch.weighted_degrees},
                                    static_cast<std::int64_t>(sources)));
  }
  return graphs;
}

LayerRows Model::FirstRows(const Minibatch& minibatch, const LayerRows& features,
                           const RunMode& mode, std::vector<LearnedTable>* learned) const {
  if (!inputs_) return features;
  return {inputs_->Forward(inputs_->RowsOf(minibatch, learned), input_dropout_, mode)};
}

LayerRows Model::Features(const Minibatch& minibatch) const {
  if (inputs_) return {};
  const FeatureRows& features = minibatch.features;
  const auto type = features.type() == DataType::kFloat16 ? torch::kHalf : torch::kFloat32;
  const std::span<const std::byte> table = features.table();
  const auto table_rows = static_cast<std::int64_t>(table.size() / features.row_bytes());
  return {torch::from_blob(const_cast<std::byte*>(table.data()),  // only read
                           {table_rows, shape_.inputs}, type),
          features.place()};
}

torch::Tensor Model::Embed(const LayerRows& first, const std::vector<LayerGraph>& graphs,
                           const RunMode& given) const {
  const RunMode mode = Beside(graphs, given);
  LayerRows rows = first;
  if (mode.training() && input_dropout_ > 0 && !inputs_) {  // the input layer drops features itself
    rows = {Activate(
        first.Floats(),
        {.dropout = input_dropout_, .seed = mode.Seed(kInputDraw), .device = mode.device})};
  }
  for (std::uint32_t k = 0; k < layers(); ++k) {
    // Usually all rows: a layer has as many sources as the layer below has targets.
    rows = {layers_[k].Forward(rows.First(graphs[k].sources()), graphs[k], mode)};
  }
  return rows.table;
}

torch::Tensor Model::Scores(const LayerRows& first, const std::vector<LayerGraph>& graphs,
                            const RunMode& mode) const {
  return ScoresOf(Embed(first, graphs, mode), Beside(graphs, mode));
}

torch::Tensor Model::ScoresOf(const torch::Tensor& embeddings, const RunMode& mode) const {
  if (!mode.training() || head_ == HeadKind::kNone || !head_drops_) return Head(embeddings);
  return Head(Activate(embeddings, {.relu = false,
                                    .dropout = shape_.spec.dropout,
                                    .seed = mode.Seed(0),
                                    .first_row = mode.first_row,
                                    .device = mode.device}));
}

std::vector<torch::Tensor> Model::HeadParameters() const {
  std::vector<torch::Tensor> parameters;
  VisitHead([&](const WeightSpec&, torch::Tensor& tensor) { parameters.push_back(tensor); });
  return parameters;
}

std::vector<torch::Tensor> Model::LayerParameters(std::uint32_t number) const {
  std::vector<torch::Tensor> parameters;
  layers_[number].VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    if (spec.trained) parameters.push_back(tensor);
  });
  return parameters;
}

std::vector<torch::Tensor> Model::Parameters() const {
  std::vector<torch::Tensor> parameters;
  VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    if (spec.trained) parameters.push_back(tensor);
  });
  return parameters;
}

std::vector<torch::Tensor> Model::Statistics() const {
  std::vector<torch::Tensor> statistics;
  VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    if (!spec.trained) statistics.push_back(tensor);
  });
  return statistics;
}

std::vector<std::string> Model::ParameterNames() const {
  std::vector<std::string> names;
  VisitWeights([&](const WeightSpec& spec, torch::Tensor&) {
    if (spec.trained) names.push_back(spec.name);
  });
  return names;
}

void Model::MoveTo(const torch::Device& place) {
  VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    tensor = tensor.detach().to(place);
    tensor.set_requires_grad(spec.trained);
  });
}

std::vector<torch::Tensor> Model::CopyWeights() const {
  std::vector<torch::Tensor> weights;
  VisitWeights([&](const WeightSpec&, torch::Tensor& tensor) {
    weights.push_back(tensor.detach().to(torch::kCPU, torch::kFloat32, /*non_blocking=*/false,
                                         /*copy=*/true));
  });
  return weights;
}

void Model::RestoreWeights(const std::vector<torch::Tensor>& weights) {
  const torch::NoGradGuard guard;
  std::size_t next = 0;
  VisitWeights([&](const WeightSpec&, torch::Tensor& tensor) { tensor.copy_(weights[next++]); });
}

std::uint64_t Model::StepNumbers(const Minibatch& minibatch) const {
  const std::vector<std::uint64_t>& offsets = minibatch.hop_offsets;
  const std::uint64_t last = offsets.size() - 2;
  std::uint64_t numbers = 0;
  if (inputs_) {
    // The first layer's rows and their gradient, its targets' rows as in later layers (Layer), and
    // the numbers of rows by type.
    const auto width = static_cast<std::uint64_t>(inputs_->width());
    const std::uint64_t hop = std::min<std::uint64_t>(layers() - 1, last);
    numbers += minibatch.rows.size() * (2 * width + 2) + offsets[hop + 1] * 2 * width;
  }
  const std::shared_ptr<const GroupedCsr> grouped = typed() ? Grouped(minibatch) : nullptr;
  if (grouped != nullptr) {  // lists of groups, their relations and factors
    numbers += 2 * grouped->lists.neighbors.size() + 3 * grouped->relation.size() +
               layers() * grouped->relation.size();
    // Rows, groups and lists by class (TypedGraph); most of them belong to the first layer.
    if (by_vertex_type()) {
      numbers += 2 * grouped->lists.neighbors.size() + 3 * minibatch.rows.size() +
                 4 * grouped->relation.size();
    }
  }
  for (std::uint32_t k = 0; k < layers(); ++k) {
    const std::uint64_t hop = std::min<std::uint64_t>(layers() - 1 - k, last);
    const std::uint64_t targets = offsets[hop + 1];
    const std::uint64_t groups = grouped != nullptr ? grouped->group_begin[targets] : 0;
    numbers += layers_[k].StepNumbers(targets, offsets[std::min(hop + 1, last) + 1], groups);
  }
  return numbers;
}

}  // namespace internal
}  // namespace rhizome
