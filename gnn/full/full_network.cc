#include "rhizome/gnn/full_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "rhizome/gnn/dense.h"
#include "rhizome/storage/check.h"
#include "rhizome/storage/mutant.h"

namespace rhizome::inline internal {
namespace {

constexpr const char* kPrepared = "prepared";
constexpr const char* kSums = "sums";
constexpr const char* kHidden = "hidden";
constexpr const char* kGradient = "gradient";
constexpr const char* kSumsGradient = "sums-gradient";
constexpr const char* kOwnGradient = "own-gradient";

std::string NameOf(const char* what, std::uint32_t layer) {
  return fmt::format("{}-{}", what, layer + 1);
}

/// Returns the number of an input of a pass, which has it from then on.
std::size_t InputOf(GraphPass& pass, const PassInput& input) {
  const auto found = std::find(pass.inputs.begin(), pass.inputs.end(), input);
  if (found == pass.inputs.end()) pass.inputs.push_back(input);
  return static_cast<std::size_t>(std::find(pass.inputs.begin(), pass.inputs.end(), input) -
                                  pass.inputs.begin());
}

/// Returns a tile's tensor as the beginning of a computation with gradients.
torch::Tensor Leaf(const torch::Tensor& tensor, bool wanted) {
  return tensor.detach().set_requires_grad(wanted);
}

std::vector<torch::Tensor> GradientsOf(const std::vector<torch::Tensor>& outputs,
                                       const std::vector<torch::Tensor>& gradients,
                                       const std::vector<torch::Tensor>& inputs) {
  return torch::autograd::grad(outputs, inputs, gradients, /*retain_graph=*/std::nullopt,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

void Give(std::span<const Row> rows, const torch::Tensor& scores, VertexScoreSink& sink) {
  const torch::Tensor values = scores.detach().contiguous();
  sink.Take(rows, {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())});
}

/// The rows of a set among `count` rows from `first` on.
std::vector<Row> MembersOf(const Labels& labels, Row first, std::int64_t count, Split set) {
  std::vector<Row> rows;
  for (Row row = first; row < first + count; ++row)
    if (labels.split[static_cast<std::size_t>(row)] == set) rows.push_back(row);
  return rows;
}

double WeightOf(const Labels& labels, const TaskLoss& loss, Split set) {
  double weight = 0;
  const auto rows = static_cast<std::int64_t>(labels.split.size());
  for (std::int64_t first = 0; first < rows; first += kDenseRows) {
    const std::vector<Row> members =
        MembersOf(labels, first, std::min(kDenseRows, rows - first), set);
    if (!members.empty()) weight += loss.WeightOf(members);
  }
  return weight > 0 ? weight : 1;  // without labels the loss is 0
}

void CopyTo(const torch::Tensor& values, torch::Tensor& output) {
  if (values.defined()) {
    output.copy_(values);
  } else {
    output.zero_();
  }
}

}  // namespace

/// A layer's rows of a tile, and what they were computed from.
struct FullNetwork::Work {
  torch::Tensor raw, sums, out;
  GraphNorms norms;
};

/// Tensors of a tile, and the gradients of the loss with respect to them.
struct FullNetwork::Objective {
  std::vector<torch::Tensor> of, gradients;
};

Status CheckFullGraph(const Model& model, std::uint64_t rows) {
  const ModelSpec spec = model.FullSpec();
  const auto option = [&](const char* name) {
    const auto found = spec.options.find(name);
    return found == spec.options.end() ? std::string() : found->second;
  };
  const Layer& first = model.layer(0);
  if (!first.pieces().reduce.weighs()) {
    const std::string aggregator = option("aggregator");
    return Status::InvalidArgument(fmt::format(
        "--full-graph trains layers that sum or average their neighbours: gcn, gin, commnet, and "
        "sage with --aggregator mean or gcn; not {}{}",
        spec.kind, aggregator.empty() ? "" : " --aggregator " + aggregator));
  }
  if (option("feed-forward") == "true" && option("norm") == "batch") {
    return Status::InvalidArgument(
        "--full-graph has no batch norm at the input of feed-forward blocks; give --norm layer");
  }
  if (!option("input-dropout").empty() && std::stod(option("input-dropout")) > 0)
    return Status::InvalidArgument(
        "--full-graph does not drop out features: leave --input-dropout");
  if (rows < 2 && first.batch_norms() > 0)
    return Status::InvalidArgument("a batch norm needs more than one vertex");
  return Status::Ok();
}

std::vector<ScratchShape> ArraysOf(const Model& model, std::uint64_t rows,
                                   std::uint64_t chunk_rows) {
  std::vector<ScratchShape> shapes;
  const auto add = [&](bool wanted, const char* what, std::uint32_t layer, std::int64_t columns) {
    if (!wanted) return;
    shapes.push_back({.name = NameOf(what, layer),
                      .rows = rows,
                      .dim = static_cast<std::uint64_t>(columns),
                      .chunk_rows = chunk_rows});
  };
  for (std::uint32_t k = 0; k < model.layers(); ++k) {
    const Layer& layer = model.layer(k);
    const bool last = k + 1 == model.layers();
    const bool norms = layer.batch_norms() > 0;
    add(layer.prepares_gathered(), kPrepared, k, layer.gathered_columns());
    add(!last || norms, kSums, k, layer.gathered_columns());
    add(!last, kHidden, k, layer.raw_out());
    add(!last && norms, kGradient, k, layer.raw_out());
    add(k > 0 || layer.prepares_gathered(), kSumsGradient, k, layer.gathered_columns());
    add(k > 0 && layer.finish_reads_raw(), kOwnGradient, k, layer.shape().raw);
  }
  return shapes;
}

RunMode FullNetwork::Mode::At(const PassTile& tile, GraphNorms* norms) const {
  RunMode mode{.dropout_seed = learns ? &seed : nullptr, .first_row = tile.first, .norms = norms};
  if (RHIZOME_MUTANT("dropout is drawn again by rows of the tile") && at::GradMode::is_enabled())
    mode.first_row = 0;
  return mode;
}

SetWeights WeightsOfSets(const Labels& labels, const TaskLoss& loss) {
  return {.train = WeightOf(labels, loss, Split::kTrain),
          .valid = WeightOf(labels, loss, Split::kValid)};
}

FullNetwork::FullNetwork(const Model& model, const Labels& labels, const TaskLoss& loss,
                         const SetWeights& weights, const FullArrays& arrays)
    : model_(model),
      labels_(labels),
      task_loss_(loss),
      arrays_(arrays),
      parameters_(model.Parameters()),
      weights_(weights),
      norms_(model.layers()) {
  std::size_t next = 0;
  for (std::uint32_t layer = 0; layer < model.layers(); ++layer) {
    first_parameter_.push_back(next);
    next += model.LayerParameters(layer).size();
  }
  first_parameter_.push_back(next);
}

// --- What passes are made of ---

ScratchArray* FullNetwork::Array(const char* what, std::uint32_t layer) const {
  return arrays_.at(NameOf(what, layer)).get();
}

/// The rows that a layer reads.
PassInput FullNetwork::RowsBefore(std::uint32_t layer) const {
  return {layer == 0 ? nullptr : Array(kHidden, layer - 1)};
}

/// The rows that a layer gathers.
PassInput FullNetwork::GatheredBy(std::uint32_t layer) const {
  return At(layer).prepares_gathered() ? PassInput{Array(kPrepared, layer)} : RowsBefore(layer);
}

FullNetwork::TileTensor FullNetwork::RawOf(std::uint32_t layer, GraphPass& pass) const {
  if (!At(layer).finish_reads_raw()) return nullptr;
  return [input = InputOf(pass, RowsBefore(layer))](const PassTile& tile) {
    return tile.inputs[input];
  };
}

/// A pass that gathers a layer's sums.
GraphPass FullNetwork::GatherPass(std::uint32_t layer, std::string name) const {
  const PassInput source = GatheredBy(layer);
  GraphPass pass{
      .name = std::move(name),
      .gather = PassGather{.source = source,
                           .width = static_cast<std::size_t>(At(layer).gathered_columns())}};
  if (At(layer).pieces().reduce.own_joins) InputOf(pass, source);
  return pass;
}

/// A pass that gathers the gradients of a layer's sums.
GraphPass FullNetwork::GradientPass(std::uint32_t layer, std::string name) const {
  ScratchArray* const source = Array(kSumsGradient, layer);
  GraphPass pass{
      .name = std::move(name),
      .gather = PassGather{.source = {source},
                           .width = static_cast<std::size_t>(At(layer).gathered_columns()),
                           .forward = RHIZOME_MUTANT("gradients go along the lists of layers")},
      .dropped = {source},
      .sums = parameters_.size() + 1};
  if (At(layer).prepares_gathered()) pass.summed_bytes = SummedBytes(layer);
  if (At(layer).pieces().reduce.own_joins) InputOf(pass, {source});
  return pass;
}

std::vector<torch::Tensor> FullNetwork::ParametersOf(std::uint32_t layer) const {
  const auto begin = parameters_.begin() + static_cast<std::ptrdiff_t>(first_parameter_[layer]);
  if (IsLast(layer)) return {begin, parameters_.end()};  // with those of the head
  return {begin, parameters_.begin() + static_cast<std::ptrdiff_t>(first_parameter_[layer + 1])};
}

std::vector<Row> FullNetwork::Members(const PassTile& tile, Split set) const {
  return MembersOf(labels_, tile.first, tile.count, set);
}

std::uint64_t FullNetwork::SummedBytes(std::uint32_t layer) const {
  std::int64_t numbers = 0;
  for (const torch::Tensor& parameter : ParametersOf(layer)) numbers += parameter.numel();
  return static_cast<std::uint64_t>(numbers) * sizeof(float);
}

/// Uses a pass, and adds the gradients that it sums to those of the weights.
Status FullNetwork::Use(const GraphPass& pass, const PassUser& use) {
  RHIZOME_ASSIGN_OR_RETURN(const TileSums sums, use(pass));
  if (sums.count() <= loss_sum()) return Status::Ok();
  const torch::NoGradGuard guard;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor sum = sums.Sum(i);
    if (!sum.defined()) continue;
    torch::Tensor& gradient = parameters_[i].mutable_grad();
    gradient = gradient.defined() ? gradient + sum : sum;
  }
  if (const torch::Tensor loss = sums.Sum(loss_sum()); loss.defined())
    loss_ += loss.item<double>() / weights_.train;
  return Status::Ok();
}

// --- Forward ---

Status FullNetwork::PrepareLayer(std::uint32_t layer, const Mode& mode, const PassUser& use) {
  if (!At(layer).prepares_gathered()) return Status::Ok();
  return Use({.name = fmt::format("prepare {}", layer + 1),
              .inputs = {RowsBefore(layer)},
              .outputs = {Array(kPrepared, layer)},
              .body =
                  [&](PassTile& tile, TileSums&) {
                    const torch::NoGradGuard guard;
                    tile.outputs[0].copy_(At(layer).PrepareGathered(tile.inputs[0], mode.At(tile)));
                  }},
             use);
}

Status FullNetwork::ForwardLayer(std::uint32_t layer, const Mode& mode, const PassUser& use) {
  RHIZOME_RETURN_IF_ERROR(PrepareLayer(layer, mode, use));
  const bool norms = mode.learns && At(layer).batch_norms() > 0;
  if (mode.learns && IsLast(layer) && !norms) return Status::Ok();  // the way back begins with it
  GraphPass pass = GatherPass(layer, fmt::format("forward {}", layer + 1));
  if (At(layer).prepares_gathered()) pass.dropped = {Array(kPrepared, layer)};
  TileTensor sums = [](const PassTile& tile) { return tile.gathered; };
  if (norms) {
    pass.outputs = {Array(kSums, layer)};
    pass.body = [](PassTile& tile, TileSums&) { tile.outputs[0].copy_(tile.gathered); };
    RHIZOME_RETURN_IF_ERROR(Use(pass, use));
    RHIZOME_RETURN_IF_ERROR(CollectStatistics(layer, mode, use));
    if (IsLast(layer)) return Status::Ok();
    pass = {.name = fmt::format("finish {}", layer + 1)};
    sums = [input = InputOf(pass, {Array(kSums, layer)})](const PassTile& tile) {
      return tile.inputs[input];
    };
  }
  if (!IsLast(layer)) pass.outputs = {Array(kHidden, layer)};
  const bool keeps_sums = mode.learns && !norms;
  if (keeps_sums) pass.outputs.push_back(Array(kSums, layer));
  if (!mode.learns && layer > 0) pass.dropped.push_back(Array(kHidden, layer - 1));
  const Incoming read{.pass = {}, .gradient = nullptr, .sums = sums, .raw = RawOf(layer, pass)};
  pass.body = [&, keeps_sums](PassTile& tile, TileSums&) {
    const torch::NoGradGuard guard;
    tile.outputs[0].copy_(Compute(layer, mode, tile, read).out);
    if (keeps_sums) tile.outputs[1].copy_(tile.gathered);
  };
  return Use(pass, use);
}

/// Finds the statistics of a layer's batch norms, one after another: a pass for the means, and one
/// for the variances.
Status FullNetwork::CollectStatistics(std::uint32_t layer, const Mode& mode, const PassUser& use) {
  std::vector<Norm>& norms = norms_[layer];
  const auto rows = static_cast<double>(labels_.split.size());
  norms.clear();
  const NormWeights* weights = nullptr;
  for (std::size_t i = 0; i < At(layer).batch_norms(); ++i) {
    Incoming read = FromArrays(layer, /*from_loss=*/true);
    read.pass.sums = 1;
    torch::Tensor mean;
    read.pass.body = [&](PassTile& tile, TileSums& sums) {
      const torch::NoGradGuard guard;
      const Work work = Compute(layer, mode, tile, read);
      if (tile.first == 0) weights = work.norms.norms[i];
      torch::Tensor given = work.norms.given[i];
      if (mean.defined()) given = (given - mean).square();
      sums.Add(tile.group, 0, given.sum(0, /*keepdim=*/false, torch::kFloat64));
    };
    const auto collect = [&](const char* what) -> Result<torch::Tensor> {
      read.pass.name = fmt::format("{} {}", what, layer + 1);
      RHIZOME_ASSIGN_OR_RETURN(const TileSums sums, use(read.pass));
      const torch::Tensor sum = sums.Sum(0);
      return sum.defined() ? (sum / rows).to(torch::kFloat32) : sum;
    };
    Norm norm;
    RHIZOME_ASSIGN_OR_RETURN(norm.known.mean, collect("means"));
    mean = norm.known.mean;
    RHIZOME_ASSIGN_OR_RETURN(norm.known.variance, collect("variances"));
    norm.weights = weights;
    norms.push_back(norm);
  }
  return Status::Ok();
}

// --- Tiles with gradients ---

FullNetwork::Work FullNetwork::Compute(std::uint32_t layer, const Mode& mode, const PassTile& tile,
                                       const Incoming& incoming) const {
  Work work;
  if (incoming.raw) work.raw = Leaf(incoming.raw(tile), WantsOwnGradient(layer));
  work.sums = Leaf(incoming.sums(tile), WantsSumsGradient(layer));
  const bool norms = mode.learns && At(layer).batch_norms() > 0;
  for (const Norm& norm : norms_[layer])
    work.norms.known.push_back({Leaf(norm.known.mean, true), Leaf(norm.known.variance, true)});
  work.out =
      At(layer).FinishGathered(work.raw, work.sums, mode.At(tile, norms ? &work.norms : nullptr));
  return work;
}

FullNetwork::Objective FullNetwork::Wanted(std::uint32_t layer, const Mode& mode,
                                           const PassTile& tile, const Incoming& incoming,
                                           const Work& work, TileSums& sums) const {
  Objective wanted;
  if (incoming.gradient) {
    wanted.of.push_back(work.out);
    wanted.gradients.push_back(incoming.gradient(tile, sums));
  } else if (const std::vector<Row> rows = Members(tile, Split::kTrain); !rows.empty()) {
    const torch::Tensor at = torch::tensor(at::ArrayRef<std::int64_t>(rows)) - tile.first;
    const torch::Tensor scores = model_.ScoresOf(work.out, mode.At(tile)).index_select(0, at);
    const torch::Tensor loss = task_loss_.SumOf(scores, rows);
    if (sums.count() > loss_sum()) {
      sums.Add(tile.group, loss_sum(), loss.to(torch::kFloat64));
      if (sink_ != nullptr) Give(rows, scores, *sink_);
    }
    wanted.of.push_back(loss);
    wanted.gradients.push_back(torch::full({}, 1 / weights_.train));
  }
  // Rows also act on each other by the statistics of batch norms, as far as their gradients are
  // known.
  const auto rows = static_cast<double>(labels_.split.size());
  for (std::size_t i = 0; i < norms_[layer].size(); ++i) {
    const Norm& norm = norms_[layer][i];
    if (!norm.gradient.mean.defined()) continue;
    const torch::Tensor given = work.norms.given[i];
    wanted.of.push_back(given);
    wanted.gradients.push_back(
        (norm.gradient.mean + 2 * norm.gradient.variance * (given.detach() - norm.known.mean)) /
        rows);
  }
  return wanted;
}

// --- Backward ---

/// The last layer, whose sums are gathered in the same pass.
FullNetwork::Incoming FullNetwork::FromLoss(std::uint32_t layer) const {
  Incoming incoming{.pass = GatherPass(layer, fmt::format("forward {}, loss", layer + 1)),
                    .gradient = nullptr,
                    .sums = [](const PassTile& tile) { return tile.gathered; },
                    .raw = nullptr};
  incoming.raw = RawOf(layer, incoming.pass);
  if (At(layer).prepares_gathered()) incoming.pass.dropped = {Array(kPrepared, layer)};
  return incoming;
}

/// A layer whose sums are in scratch, and so is the gradient of its rows, unless it is that of the
/// loss.
FullNetwork::Incoming FullNetwork::FromArrays(std::uint32_t layer, bool from_loss) const {
  Incoming incoming;
  const auto read = [&](ScratchArray* array) -> TileTensor {
    return [input = InputOf(incoming.pass, {array})](const PassTile& tile) {
      return tile.inputs[input];
    };
  };
  incoming.sums = read(Array(kSums, layer));
  incoming.raw = RawOf(layer, incoming.pass);
  if (from_loss) return incoming;
  const TileTensor gradient = read(Array(kGradient, layer));
  incoming.gradient = [gradient](const PassTile& tile, TileSums&) { return gradient(tile); };
  return incoming;
}

/// A layer below another one, whose gradients are gathered in the same pass.
FullNetwork::Incoming FullNetwork::FromAbove(std::uint32_t layer, const Mode& mode) const {
  const std::uint32_t above = layer + 1;
  Incoming incoming{.pass = GradientPass(above, fmt::format("backward {}", above + 1)),
                    .gradient = nullptr,
                    .sums = nullptr,
                    .raw = nullptr};
  GraphPass& pass = incoming.pass;
  TileTensor own, raw;
  if (WantsOwnGradient(above)) {
    ScratchArray* const array = Array(kOwnGradient, above);
    own = [input = InputOf(pass, {array})](const PassTile& tile) { return tile.inputs[input]; };
    pass.dropped.push_back(array);
  }
  if (At(above).prepares_gathered()) {
    raw = [input = InputOf(pass, RowsBefore(above))](const PassTile& tile) {
      return tile.inputs[input];
    };
  }
  incoming.gradient = [this, above, mode, own, raw](const PassTile& tile, TileSums& sums) {
    return GradientAbove(above, mode, tile, own, raw, sums);
  };
  if (At(layer).batch_norms() > 0) return incoming;  // what it computes is for later passes
  incoming.sums = [input = InputOf(pass, {Array(kSums, layer)})](const PassTile& tile) {
    return tile.inputs[input];
  };
  incoming.raw = RawOf(layer, pass);
  return incoming;
}

/// Computes the gradient of the rows that layer `above` reads: what comes by their own rows, and
/// what was gathered. `raw`: these rows, where they are prepared before they are gathered.
torch::Tensor FullNetwork::GradientAbove(std::uint32_t above, const Mode& mode,
                                         const PassTile& tile, const TileTensor& own,
                                         const TileTensor& raw, TileSums& sums) const {
  torch::Tensor gathered = tile.gathered;
  if (raw) {
    const torch::Tensor rows = Leaf(raw(tile), above > 0);
    const torch::Tensor prepared = At(above).PrepareGathered(rows, mode.At(tile));
    std::vector<torch::Tensor> wanted = ParametersOf(above);
    if (above > 0) wanted.push_back(rows);
    std::vector<torch::Tensor> gradients = GradientsOf({prepared}, {gathered}, wanted);
    if (above > 0) {
      gathered = gradients.back();
      gradients.pop_back();
    }
    for (std::size_t i = 0; i < gradients.size(); ++i)
      sums.Add(tile.group, first_parameter_[above] + i, gradients[i]);
    if (above == 0) return {};
  }
  const std::int64_t columns = At(above).shape().raw;
  torch::Tensor gradient = own ? own(tile).clone() : torch::zeros({tile.count, columns});
  gradient.narrow(1, 0, gathered.size(1)).add_(gathered);
  return gradient;
}

/// Finds the gradients of the statistics of a layer's batch norms, the last norm's first; the
/// gradient of the layer's rows is in scratch then.
Status FullNetwork::BackwardNorms(std::uint32_t layer, Incoming& incoming, const Mode& mode,
                                  const PassUser& use) {
  std::vector<Norm>& norms = norms_[layer];
  if (incoming.gradient) {
    incoming.pass.outputs = {Array(kGradient, layer)};
    incoming.pass.body = [&](PassTile& tile, TileSums& sums) {
      const torch::AutoGradMode with_gradients(true);
      tile.outputs[0].copy_(incoming.gradient(tile, sums));
    };
    RHIZOME_RETURN_IF_ERROR(Use(incoming.pass, use));
  }
  incoming = FromArrays(layer, /*from_loss=*/!incoming.gradient);
  for (std::size_t i = norms.size(); i-- > 0;) {
    GraphPass& pass = incoming.pass;
    pass.name = fmt::format("norms {}", layer + 1);
    pass.sums = 2;
    pass.body = [&](PassTile& tile, TileSums& sums) {
      const torch::AutoGradMode with_gradients(true);
      const Work work = Compute(layer, mode, tile, incoming);
      const Objective wanted = Wanted(layer, mode, tile, incoming, work, sums);
      if (wanted.of.empty()) return;
      const auto gradients = GradientsOf(wanted.of, wanted.gradients,
                                         {work.norms.known[i].mean, work.norms.known[i].variance});
      for (std::size_t s = 0; s < 2; ++s)
        if (gradients[s].defined()) sums.Add(tile.group, s, gradients[s].to(torch::kFloat64));
    };
    RHIZOME_ASSIGN_OR_RETURN(const TileSums sums, use(pass));
    if (!sums.Sum(0).defined()) continue;  // the passes are only counted
    norms[i].gradient = {sums.Sum(0).to(torch::kFloat32), sums.Sum(1).to(torch::kFloat32)};
  }
  incoming.pass.name = fmt::format("backward {}, rows", layer + 1);
  if (incoming.gradient) incoming.pass.dropped.push_back(Array(kGradient, layer));
  return Status::Ok();
}

Status FullNetwork::BackwardLayer(std::uint32_t layer, Incoming incoming, const Mode& mode,
                                  const PassUser& use) {
  if (At(layer).batch_norms() > 0)
    RHIZOME_RETURN_IF_ERROR(BackwardNorms(layer, incoming, mode, use));
  GraphPass& pass = incoming.pass;
  pass.sums = parameters_.size() + 1;
  pass.summed_bytes += SummedBytes(layer);
  if (WantsSumsGradient(layer)) pass.outputs.push_back(Array(kSumsGradient, layer));
  if (WantsOwnGradient(layer)) pass.outputs.push_back(Array(kOwnGradient, layer));
  if (arrays_.contains(NameOf(kSums, layer))) pass.dropped.push_back(Array(kSums, layer));
  // The layer above has no use for its input any more; this one's rows were read by that.
  if (!IsLast(layer)) pass.dropped.push_back(Array(kHidden, layer));
  pass.body = [&](PassTile& tile, TileSums& sums) {
    const torch::AutoGradMode with_gradients(true);
    const Work work = Compute(layer, mode, tile, incoming);
    const Objective wanted = Wanted(layer, mode, tile, incoming, work, sums);
    std::vector<torch::Tensor> of = ParametersOf(layer);
    const std::size_t parameters = of.size();
    if (WantsSumsGradient(layer)) of.push_back(work.sums);
    if (WantsOwnGradient(layer)) of.push_back(work.raw);
    std::vector<torch::Tensor> gradients(of.size());
    if (!wanted.of.empty()) gradients = GradientsOf(wanted.of, wanted.gradients, of);
    for (std::size_t i = 0; i < parameters; ++i)
      sums.Add(tile.group, first_parameter_[layer] + i, gradients[i]);
    for (std::size_t i = 0; i < tile.outputs.size(); ++i)
      CopyTo(gradients[parameters + i], tile.outputs[i]);
  };
  return Use(pass, use);
}

/// The gradients of the weights by which features are prepared.
Status FullNetwork::BackwardPrepared(const Mode& mode, const PassUser& use) {
  if (!At(0).prepares_gathered()) return Status::Ok();
  GraphPass pass = GradientPass(0, "backward 1");
  const TileTensor raw = [input = InputOf(pass, RowsBefore(0))](const PassTile& tile) {
    return tile.inputs[input];
  };
  pass.body = [&](PassTile& tile, TileSums& sums) {
    const torch::AutoGradMode with_gradients(true);
    GradientAbove(0, mode, tile, nullptr, raw, sums);
  };
  return Use(pass, use);
}

// --- Epochs ---

Result<double> FullNetwork::Learn(std::uint64_t seed, VertexScoreSink* sink, const PassUser& use) {
  sink_ = sink;
  const Mode mode{.learns = true, .seed = seed};
  for (const torch::Tensor& parameter : parameters_) parameter.mutable_grad() = torch::Tensor();
  for (std::vector<Norm>& norms : norms_) norms.clear();
  loss_ = 0;
  const std::uint32_t last = model_.layers() - 1;
  for (std::uint32_t layer = 0; layer <= last; ++layer)
    RHIZOME_RETURN_IF_ERROR(ForwardLayer(layer, mode, use));
  Incoming incoming =
      At(last).batch_norms() > 0 ? FromArrays(last, /*from_loss=*/true) : FromLoss(last);
  for (std::uint32_t layer = last;; --layer) {
    RHIZOME_RETURN_IF_ERROR(BackwardLayer(layer, std::move(incoming), mode, use));
    if (layer == 0) break;
    incoming = FromAbove(layer - 1, mode);
  }
  RHIZOME_RETURN_IF_ERROR(BackwardPrepared(mode, use));
  // Running statistics move once for each step that is taken, not for one that was interrupted.
  for (std::vector<Norm>& norms : norms_) {
    for (const Norm& norm : norms) {
      if (norm.weights == nullptr) continue;  // the passes are only counted
      norm.weights->Keep(norm.known, static_cast<std::int64_t>(labels_.split.size()));
    }
    norms.clear();
  }
  return loss_;
}

Result<double> FullNetwork::Evaluate(VertexScoreSink& sink, const PassUser& use) {
  const Mode mode;
  const std::uint32_t last = model_.layers() - 1;
  for (std::uint32_t layer = 0; layer < last; ++layer)
    RHIZOME_RETURN_IF_ERROR(ForwardLayer(layer, mode, use));
  RHIZOME_RETURN_IF_ERROR(PrepareLayer(last, mode, use));
  Incoming read = FromLoss(last);
  read.pass.name = fmt::format("forward {}, scores", last + 1);
  read.pass.sums = 1;
  if (last > 0) read.pass.dropped.push_back(Array(kHidden, last - 1));
  read.pass.body = [&](PassTile& tile, TileSums& sums) {
    const torch::NoGradGuard guard;
    const torch::Tensor embeddings = Compute(last, mode, tile, read).out;
    const torch::Tensor scores = model_.ScoresOf(embeddings, mode.At(tile));
    std::vector<Row> rows(static_cast<std::size_t>(tile.count));
    std::iota(rows.begin(), rows.end(), tile.first);
    Give(rows, scores, sink);
    const std::vector<Row> valid = Members(tile, Split::kValid);
    if (valid.empty()) return;
    const torch::Tensor at = torch::tensor(at::ArrayRef<std::int64_t>(valid)) - tile.first;
    sums.Add(tile.group, 0,
             task_loss_.SumOf(scores.index_select(0, at), valid).to(torch::kFloat64));
  };
  RHIZOME_ASSIGN_OR_RETURN(const TileSums sums, use(read.pass));
  const torch::Tensor loss = sums.Sum(0);
  return loss.defined() ? loss.item<double>() / weights_.valid : 0;
}

}  // namespace rhizome::inline internal
