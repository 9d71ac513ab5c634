#include "gnn/full_graph/full_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "gnn/full_graph/tile_gradients.h"
#include "gnn/ops/dense.h"
#include "storage/base/check.h"
#include "storage/base/mutant.h"

// The forward pass and the epochs of FullNetwork. An epoch of training (Learn):
//   1. ForwardLayer prepares and aggregates the rows of each layer and computes the layer. For a
//      layer with batch norms it stores the sums first and collects the norms' statistics.
//   2. BackwardLayer and BackwardPrepared compute the gradients, from the last layer to the first
//      (full_backward.cc).
//   3. The running statistics of batch norms are updated.
// Evaluate runs the forward passes only, and passes scores to a sink.

namespace rhizome {
inline namespace internal {
namespace {

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

}  // namespace

std::vector<Row> MembersOf(const Labels& labels, Row first, std::int64_t count, Split set) {
  std::vector<Row> rows;
  for (Row row = first; row < first + count; ++row)
    if (labels.split[static_cast<std::size_t>(row)] == set) rows.push_back(row);
  return rows;
}

Status CheckFullGraph(const Model& model, std::uint64_t rows) {
  const ModelSpec spec = model.FullSpec();
  const auto option = [&](const char* name) {
    const auto found = spec.options.find(name);
    return found == spec.options.end() ? std::string() : found->second;
  };
  const Layer& first = model.layer(0);
  if (option("feed-forward") == "true" && option("norm") == "batch") {
    return Status::InvalidArgument(
        "`full_graph` does not support batch norm at the input of feed-forward blocks; use "
        "`norm=layer`");
  }
  if (!option("input-dropout").empty() && std::stod(option("input-dropout")) > 0)
    return Status::InvalidArgument(
        "`full_graph` does not support dropout of features; omit `input-dropout`");
  if (rows < 2 && first.batch_norms() > 0) {
    const bool own = first.batch_norms() > (option("norm") == "batch" ? 1 : 0);
    return Status::InvalidArgument(
        fmt::format("a batch norm needs more than one vertex, but the store has {}: {}", rows,
                    own ? spec.kind + " has one in each layer, so choose another `model`"
                        : "give `norm=layer`"));
  }
  return Status::Ok();
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
      recomputed_(model.layers(), false),
      norms_(model.layers()) {
  std::size_t next = 0;
  for (std::uint32_t layer = 0; layer < model.layers(); ++layer) {
    first_parameter_.push_back(next);
    next += model.LayerParameters(layer).size();
  }
  first_parameter_.push_back(next);
}

// --- Parts of passes ---

ScratchArray* FullNetwork::Array(const char* what, std::uint32_t layer) const {
  return arrays_.at(NameOfArray(what, layer)).get();
}

/// Returns the rows that a layer reads: the features, or the rows of the previous layer.
PassInput FullNetwork::RowsBefore(std::uint32_t layer) const {
  return {layer == 0 ? nullptr : Array(kHidden, layer - 1)};
}

/// Returns the rows that a layer aggregates.
PassInput FullNetwork::GatheredBy(std::uint32_t layer) const {
  return At(layer).prepares_gathered() ? PassInput{Array(kPrepared, layer)} : RowsBefore(layer);
}

FullNetwork::TileTensor FullNetwork::RawOf(std::uint32_t layer, GraphPass& pass) const {
  if (!At(layer).finish_reads_raw()) return nullptr;
  return [input = InputOf(pass, RowsBefore(layer))](const PassTile& tile) {
    return tile.inputs[input];
  };
}

/// Returns the kind of a layer's aggregation, or of the aggregation of its gradients (`back`).
AggregationKind FullNetwork::WayOf(std::uint32_t layer, bool back) const {
  if (Attends(layer)) return back ? AggregationKind::kAttendGradient : AggregationKind::kAttend;
  if (TakesMax(At(layer))) return back ? AggregationKind::kMaxGradient : AggregationKind::kMax;
  return AggregationKind::kSum;
}

/// Returns a pass that aggregates the rows of a layer.
GraphPass FullNetwork::GatherPass(std::uint32_t layer, const Mode& mode, std::string name) const {
  GraphPass pass{.name = std::move(name)};
  AddGather(layer, mode, pass);
  return pass;
}

/// Adds the aggregation of a layer to a pass.
void FullNetwork::AddGather(std::uint32_t layer, const Mode& mode, GraphPass& pass) const {
  const PassInput source = GatheredBy(layer);
  pass.gathers.push_back({.source = source,
                          .width = static_cast<std::size_t>(GatheredRowColumns(At(layer))),
                          .by = WayOf(layer, /*back=*/false),
                          .heads = HeadsIn(layer, mode)});
  if (JoinsOwn(layer)) InputOf(pass, source);
}

/// Returns a pass that aggregates the gradients of a layer's sums.
GraphPass FullNetwork::GradientPass(std::uint32_t layer, const Mode& mode, std::string name) const {
  ScratchArray* const source = Array(kSumsGradient, layer);
  GraphPass pass{.name = std::move(name),
                 .gathers = {{.source = {source},
                              .width = static_cast<std::size_t>(GatheredRowColumns(At(layer))),
                              .forward = RHIZOME_MUTANT("gradients go along the lists of layers"),
                              .by = WayOf(layer, /*back=*/true),
                              .heads = HeadsIn(layer, mode)}},
                 .sums = parameters_.size() + 1};
  if (AsksWhole(layer)) {
    PassGather asked = pass.gathers.front();
    asked.forward = true;
    asked.by = AggregationKind::kAttendQueryGradient;
    pass.gathers.push_back(asked);
  }
  if (At(layer).prepares_gathered()) pass.summed_bytes = SummedBytes(layer);
  if (JoinsOwn(layer)) InputOf(pass, {source});
  return pass;
}

std::vector<torch::Tensor> FullNetwork::ParametersOf(std::uint32_t layer) const {
  const auto begin = parameters_.begin() + static_cast<std::ptrdiff_t>(first_parameter_[layer]);
  if (IsLast(layer)) return {begin, parameters_.end()};  // and the parameters of the head
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

/// Hands a pass to the visitor, and adds the sums that it returns to the gradients of the weights
/// and to the loss.
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
                    tile.outputs[0].copy_(Prepare(layer, tile.inputs[0], mode.At(tile)));
                  }},
             use);
}

Status FullNetwork::ForwardLayer(std::uint32_t layer, const Mode& mode, const PassUser& use) {
  RHIZOME_RETURN_IF_ERROR(PrepareLayer(layer, mode, use));
  const bool norms = mode.learns && At(layer).batch_norms() > 0;
  if (mode.learns && IsLast(layer) && !norms) return Status::Ok();  // the backward pass computes it
  GraphPass pass = GatherPass(layer, mode, fmt::format("forward {}", layer + 1));
  TileTensor sums = [](const PassTile& tile) { return tile.gathered[0]; };
  if (norms) {
    pass.outputs = {Array(kSums, layer)};
    pass.body = [&](PassTile& tile, TileSums&) {
      tile.outputs[0].copy_(SumsToStore(layer, tile.gathered[0]));
    };
    RHIZOME_RETURN_IF_ERROR(Use(pass, use));
    RHIZOME_RETURN_IF_ERROR(CollectStatistics(layer, mode, use));
    if (IsLast(layer)) return Status::Ok();
    pass = {.name = fmt::format("finish {}", layer + 1)};
    sums = [input = InputOf(pass, {Array(kSums, layer)})](const PassTile& tile) {
      return tile.inputs[input];
    };
  }
  if (!IsLast(layer)) pass.outputs = {Array(kHidden, layer)};
  const bool keeps_sums = mode.learns && !norms && StoresSums(layer);
  if (keeps_sums) pass.outputs.push_back(Array(kSums, layer));
  const Incoming read{.pass = {}, .gradient = nullptr, .sums = sums, .raw = RawOf(layer, pass)};
  pass.body = [&, keeps_sums](PassTile& tile, TileSums&) {
    const torch::NoGradGuard guard;
    tile.outputs[0].copy_(Compute(layer, mode, tile, read).out);
    if (keeps_sums) tile.outputs[1].copy_(SumsToStore(layer, tile.gathered[0]));
  };
  return Use(pass, use);
}

/// Computes the statistics of a layer's batch norms, one norm after another: a pass for the means,
/// then a pass for the variances.
Status FullNetwork::CollectStatistics(std::uint32_t layer, const Mode& mode, const PassUser& use) {
  std::vector<Norm>& norms = norms_[layer];
  const auto rows = static_cast<double>(labels_.split.size());
  norms.clear();
  for (std::size_t i = 0; i < At(layer).batch_norms(); ++i) {
    Incoming read = FromArrays(layer, /*from_loss=*/true);
    read.pass.sums = 1;
    torch::Tensor mean;
    read.pass.body = [&](PassTile& tile, TileSums& sums) {
      const torch::NoGradGuard guard;
      const Work work = Compute(layer, mode, tile, read);
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
    if (norm.known.mean.defined()) norm.weights = NormOf(layer, i, mode, read);
    norms.push_back(norm);
  }
  return Status::Ok();
}

/// Returns the weights of a batch norm, found by computing the layer for a row of zeros.
const NormWeights* FullNetwork::NormOf(std::uint32_t layer, std::size_t norm, const Mode& mode,
                                       const Incoming& read) const {
  const torch::NoGradGuard guard;
  PassTile tile;
  tile.count = 1;
  for (const PassInput& input : read.pass.inputs) {
    const std::int64_t columns = input.array != nullptr
                                     ? static_cast<std::int64_t>(input.array->shape().dim)
                                     : At(layer).shape().raw;
    tile.inputs.push_back(torch::zeros({1, columns}));
  }
  return Compute(layer, mode, tile, read).norms.norms[norm];
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
      At(last).batch_norms() > 0 ? FromArrays(last, /*from_loss=*/true) : FromLoss(last, mode);
  for (std::uint32_t layer = last;; --layer) {
    RHIZOME_RETURN_IF_ERROR(BackwardLayer(layer, std::move(incoming), mode, use));
    if (layer == 0) break;
    incoming = FromAbove(layer - 1, mode);
  }
  RHIZOME_RETURN_IF_ERROR(BackwardPrepared(mode, use));
  // Running statistics are updated once for each completed step, not for an interrupted one.
  for (std::vector<Norm>& norms : norms_) {
    for (const Norm& norm : norms) {
      if (!norm.known.mean.defined()) continue;  // the passes are only recorded
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
  Incoming read = FromLoss(last, mode);
  read.pass.name = fmt::format("forward {}, scores", last + 1);
  read.pass.sums = 1;
  read.pass.scores = true;
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

}  // namespace internal
}  // namespace rhizome
