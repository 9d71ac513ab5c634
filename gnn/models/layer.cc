#include "gnn/models/layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gnn/models/model_shape.h"
#include "storage/base/mutant.h"
#include "storage/base/name_table.h"

namespace rhizome {
inline namespace internal {
// Forward runs a layer in training, in these steps: Enter (input layer, input norm), the
// convolution, Leave (norm, activation, residual connection, dropout) and Carry (first hidden rows
// and jumping knowledge). PrepareGathered and FinishGathered, and Prepare and Finish, run the steps
// before and after an aggregation that the caller computes.

namespace {

constexpr NameTable<Nonlinearity, 5> kActivations = {{{Nonlinearity::kRelu, "relu"},
                                                      {Nonlinearity::kElu, "elu"},
                                                      {Nonlinearity::kGelu, "gelu"},
                                                      {Nonlinearity::kTanh, "tanh"},
                                                      {Nonlinearity::kNone, "none"}}};
constexpr NameTable<Normalization, 3> kNorms = {{{Normalization::kNone, "none"},
                                                 {Normalization::kLayer, "layer"},
                                                 {Normalization::kBatch, "batch"}}};
constexpr NameTable<Jump, 3> kJumps = {
    {{Jump::kNone, "none"}, {Jump::kConcat, "concat"}, {Jump::kMax, "max"}}};

template <typename Kind, std::size_t count>
std::vector<std::string> WordsOf(const NameTable<Kind, count>& names) {
  std::vector<std::string> words;
  for (const auto& [kind, name] : names) words.emplace_back(name);
  return words;
}

/// First dropout draw inside layers, and number of draws per layer. model.h numbers the draws of
/// layers' inputs.
constexpr std::uint64_t kDrawsBegin = std::uint64_t{1} << 16;
constexpr std::uint64_t kDrawsOfLayer = 4;

}  // namespace

std::vector<ModelOption> LayerOptions() {
  return {
      ChoiceOption("activation", WordsOf(kActivations), "Function after each layer"),
      ChoiceOption("norm", WordsOf(kNorms), "Normalisation of a layer's outputs"),
      FlagOption("residual", "Add a layer's inputs to its outputs"),
      FlagOption("feed-forward",
                 "Residual blocks with a second linear layer, normalised at their input"),
      ChoiceOption("jump", WordsOf(kJumps),
                   "How the outputs of all layers are joined after the last one"),
      ChoiceOption(kInputActivation, {"tanh", "relu"},
                   "With an array for each vertex type: function after the input layer"),
      NumberOption("input-dropout", "0", 0, 0.99, "Share of the features dropped in training"),
      ChoiceOption("head", {"linear", "mlp", "none"},
                   "Layers between embeddings and scores; none: the last layer computes scores")};
}

LayerStyle LayerStyle::Of(const ModelOptions& options, double dropout) {
  LayerStyle style;
  style.activation = *KindOf(kActivations, options.Choice("activation"));
  style.norm = *KindOf(kNorms, options.Choice("norm"));
  style.residual = options.Flag("residual");
  style.feed_forward = options.Flag("feed-forward");
  style.jump = *KindOf(kJumps, options.Choice("jump"));
  style.dropout = dropout;
  return style;
}

torch::Tensor ApplyNonlinearity(Nonlinearity kind, const torch::Tensor& x, Device* device) {
  switch (kind) {
    case Nonlinearity::kNone:
      return x;
    case Nonlinearity::kRelu:
      return Activate(x, {.relu = true, .device = device});
    case Nonlinearity::kElu:
      return Elu(x);
    case Nonlinearity::kGelu:
      return at::gelu(x);
    case Nonlinearity::kTanh:
      return at::tanh(x);
  }
  return x;
}

Layer::Layer(const LayerShape& shape, const LayerStyle& style, std::shared_ptr<Conv> conv)
    : shape_(shape),
      style_(style),
      conv_(std::move(conv)),
      pieces_(conv_->pieces()),
      enters_(has_stem() || style.feed_forward) {}

std::int64_t Layer::raw_out() const {
  const bool keeps_own = shape_.number > 0;  // the rows before the first layer are features
  const std::int64_t own = keeps_own ? shape_.in : 0;
  if (shape_.last) {
    if (style_.jump != Jump::kConcat) return shape_.out;
    return shape_.jump_from + own + shape_.out;
  }
  std::int64_t jump = 0;
  if (style_.jump == Jump::kConcat) jump = shape_.jump_from + own;
  if (style_.jump == Jump::kMax && keeps_own) jump = shape_.out;
  return shape_.out + shape_.first + jump;
}

bool Layer::finish_reads_own() const {
  // Attention adds the target's own edge at the start.
  return finish_reads_raw() || (pieces_.reduce.own_joins && !pieces_.attends());
}

bool Layer::finish_reads_raw() const {
  return pieces_.update_reads_own || pieces_.reads_first || style_.feed_forward ||
         (style_.residual && !shape_.is_output) || style_.jump != Jump::kNone || shape_.first > 0;
}

bool Layer::makes_zeros() const {
  return style_.activation == Nonlinearity::kRelu && !style_.residual && !style_.feed_forward &&
         !shape_.is_output;
}

bool Layer::fuses() const {
  return !style_.feed_forward && !style_.residual && !normed() && !shape_.is_output &&
         style_.activation == Nonlinearity::kRelu;
}

std::uint64_t Layer::Draw(std::uint64_t which) const {
  return kDrawsBegin + shape_.number * kDrawsOfLayer + which;
}

void Layer::VisitWeights(const WeightVisitor& visit) const {
  Weights& w = *weights_;
  if (has_stem()) w.stem.Visit("stem", shape_.raw, shape_.in, visit);
  const std::string prefix = fmt::format("layers.{}.", shape_.number);
  conv_->VisitWeights([&](const WeightSpec& spec, torch::Tensor& tensor) {
    WeightSpec named = spec;
    named.name = prefix + spec.name;
    visit(named, tensor);
  });
  if (normed()) {
    const std::int64_t width = style_.feed_forward ? shape_.in : shape_.out;
    w.norm.Visit(style_.norm, prefix + "norm", width, visit);
  }
  if (style_.feed_forward) {
    w.feed.Visit(prefix + "feed", shape_.out, shape_.out, visit);
    if (shape_.last) w.last_norm.Visit(Normalization::kLayer, "last_norm", shape_.out, visit);
  } else if (style_.residual && shape_.in != shape_.out && !shape_.is_output) {
    visit({.name = prefix + "skip.weight", .shape = {shape_.out, shape_.in}}, w.skip);
  }
}

torch::Tensor Layer::Dropped(const torch::Tensor& x, std::uint64_t draw,
                             const RunMode& mode) const {
  if (!mode.training() || style_.dropout == 0) return x;
  return Activate(x, {.relu = false,
                      .dropout = style_.dropout,
                      .seed = mode.Seed(draw),
                      .first_row = mode.first_row,
                      .device = mode.device});
}

Layer::Entered Layer::Enter(const LayerRows& raw, const RunMode& mode) const {
  const Weights& w = *weights_;
  Entered entered{raw, raw};
  if (has_stem()) {
    const torch::Tensor hidden = ApplyNonlinearity(style_.activation, w.stem.Of(raw), mode.device);
    entered = {{Dropped(hidden, Draw(0), mode)}, {}};
    entered.input = entered.stream;
  } else if (shape_.raw != shape_.in) {
    entered.stream = entered.input = {raw.table.narrow(1, 0, shape_.in), raw.place};
  }
  if (style_.feed_forward && normed()) entered.input = {w.norm.Of(entered.stream.table, mode)};
  entered.input.types = raw.types;
  return entered;
}

/// Returns the first hidden rows of targets, or an undefined tensor if rows do not carry them.
torch::Tensor Layer::FirstRows(const Entered& own, const LayerRows& raw) const {
  if (shape_.first == 0) return {};
  return shape_.number == 0 ? own.stream.table : raw.table.narrow(1, shape_.in, shape_.first);
}

torch::Tensor Layer::Leave(torch::Tensor convolved, bool activated, const Entered& own,
                           const LayerRows& raw, const RunMode& mode) const {
  const Weights& w = *weights_;
  torch::Tensor out = std::move(convolved);
  if (style_.feed_forward) {
    out = Dropped(ApplyNonlinearity(style_.activation, out, mode.device), Draw(1), mode);
    if (!RHIZOME_MUTANT("feed-forward has one layer"))
      out = Dropped(w.feed.Of({out}), Draw(2), mode);
    out = out + own.stream.table;
    if (shape_.last) out = w.last_norm.Of(out, mode);
  } else if (!activated && !shape_.is_output) {
    if (normed()) out = w.norm.Of(out, mode);
    const bool before = RHIZOME_MUTANT("residuals are added before the activation");
    if (!before) out = ApplyNonlinearity(style_.activation, out, mode.device);
    if (style_.residual && !RHIZOME_MUTANT("residuals are left out")) {
      out = out + (w.skip.defined() ? Linear(own.stream, w.skip) : own.stream.Floats());
    }
    if (before) out = ApplyNonlinearity(style_.activation, out, mode.device);
    if (!shape_.last) out = Dropped(out, shape_.number + 1, mode);
  }
  return Carry(out, own, raw);
}

torch::Tensor Layer::Carry(const torch::Tensor& out, const Entered& own,
                           const LayerRows& raw) const {
  std::vector<torch::Tensor> parts = {out};
  if (shape_.first > 0 && !shape_.last) parts.push_back(FirstRows(own, raw));
  if (style_.jump != Jump::kNone && shape_.number > 0) {
    const torch::Tensor before = raw.table.narrow(1, 0, shape_.in);
    torch::Tensor jump = before;
    if (shape_.jump_from > 0) {
      const torch::Tensor earlier = raw.table.narrow(1, shape_.in + shape_.first, shape_.jump_from);
      jump = style_.jump == Jump::kConcat
                 ? at::cat({earlier, before}, 1)
                 : (RHIZOME_MUTANT("jump takes the least") ? at::minimum(earlier, before)
                                                           : at::maximum(earlier, before));
    }
    if (!shape_.last) {
      parts.push_back(jump);
    } else if (style_.jump == Jump::kMax) {
      parts = {at::maximum(jump, out)};
    } else {
      parts = {jump, out};
    }
  }
  return parts.size() == 1 ? parts.front() : at::cat(parts, 1);
}

torch::Tensor Layer::Forward(const LayerRows& raw, const LayerGraph& graph,
                             const RunMode& mode) const {
  const Entered entered = Enter(raw, mode);
  const LayerRows own_raw = raw.First(graph.targets());
  const Entered own = entered.First(graph.targets());
  // Some convolutions compute activation and dropout together with their products.
  Activation activation{.device = mode.device};
  if (fuses()) {
    activation.relu = true;
    if (mode.training() && !shape_.last) {  // dropout of the next layer's inputs
      activation.dropout = style_.dropout;
      activation.seed = mode.Seed(shape_.number + 1);
    }
  }
  const torch::Tensor convolved =
      conv_->Forward(entered.input, graph, FirstRows(own, own_raw), activation, mode);
  return Leave(convolved, fuses(), own, own_raw, mode);
}

bool Layer::multiplies_first() const {
  return pieces_.reduce.weighs() && !pieces_.projects && shape_.out < pieces_.width &&
         conv_->ReducedWeight().defined();
}

std::size_t Layer::batch_norms() const {
  std::size_t count = 0;
  VisitWeights([&](const WeightSpec& spec, torch::Tensor&) {
    if (spec.name.ends_with(".variance")) ++count;
  });
  return count;
}

bool Layer::norms_targets() const {
  const bool at_input = style_.feed_forward && normed() && style_.norm == Normalization::kBatch;
  return batch_norms() > (at_input ? 1 : 0);
}

torch::Tensor Layer::PrepareGathered(const torch::Tensor& raw, const RunMode& mode) const {
  const Entered entered = Enter({raw}, mode);
  if (multiplies_first()) return Linear(entered.input, conv_->ReducedWeight());
  return pieces_.projects ? conv_->Project(entered.input, mode) : entered.input.Floats();
}

torch::Tensor Layer::PrepareAttended(const torch::Tensor& raw, const RunMode& mode) const {
  const Entered entered = Enter({raw}, mode);
  const torch::Tensor prepared =
      pieces_.projects ? conv_->Project(entered.input, mode) : entered.input.Floats();
  std::vector<torch::Tensor> parts = {prepared};
  if (pieces_.score_columns() > 0) parts.push_back(SourceScores(prepared));
  parts.push_back(Query(entered, prepared));
  return at::cat(parts, 1);
}

torch::Tensor Layer::FinishGathered(const torch::Tensor& raw, const torch::Tensor& gathered,
                                    const RunMode& mode) const {
  UpdateRows rows{
      .own = {}, .reduced = gathered, .first = {}, .both = {}, .multiplied = multiplies_first()};
  Entered own;
  if (raw.defined()) {
    own = Enter({raw}, mode);
    rows.own = own.input;
    rows.first = FirstRows(own, {raw});
  }
  return Leave(conv_->Update(rows, mode), false, own, {raw}, mode);
}

std::uint64_t Layer::StepNumbers(std::uint64_t targets, std::uint64_t sources,
                                 std::uint64_t groups) const {
  const auto in = static_cast<std::uint64_t>(shape_.in);
  const auto out = static_cast<std::uint64_t>(shape_.out);
  std::uint64_t numbers = targets * conv_->TargetNumbers() + groups * conv_->GroupNumbers();
  if (shape_.number > 0) numbers += sources * in + targets * 2 * in;
  if (in > out) numbers += 2 * sources * out;  // it may multiply before it aggregates
  // Each step of a row that is not fused stores its result, and has a gradient.
  if (enters_) numbers += sources * 4 * in;
  if (pieces_.projects) numbers += sources * conv_->SourceNumbers();
  if (!fuses()) numbers += targets * 6 * out;
  return numbers;
}

torch::Tensor Layer::Prepare(const Entered& rows, Device* device) const {
  return pieces_.projects ? conv_->Project(rows.input, {.device = device}) : rows.input.table;
}

void Layer::Relate(const float* prepared, const RowsByClass& pairs,
                   std::span<const std::uint32_t> row, float* out) const {
  const auto rows = static_cast<std::int64_t>(*std::max_element(row.begin(), row.end())) + 1;
  // A tensor of rows that are only read.
  const torch::Tensor table =
      torch::from_blob(const_cast<float*>(prepared), {rows, prepared_columns()});
  conv_->Relate({table}, pairs, row, out);
}

torch::Tensor Layer::Query(const Entered& own, const torch::Tensor& prepared) const {
  return conv_->Query(own.input, prepared).contiguous();
}

torch::Tensor Layer::Finish(const torch::Tensor& raw, const Entered& own, torch::Tensor& tile,
                            Device* device, const GroupedRows& groups) const {
  const RunMode mode{.device = device};
  const std::int64_t own_width = own_columns();
  UpdateRows rows{.own = {}, .reduced = groups.rows, .first = {}, .both = {}};
  if (!groups.groups.empty()) {
    rows.groups = groups.groups;
  } else {
    rows.reduced = tile.narrow(1, own_width, pieces_.width);
    rows.both = tile;
  }
  if (raw.defined()) {
    if (own_width > 0 && !own_is_raw()) tile.narrow(1, 0, own_width).copy_(own.input.table);
    rows.own = own.input;
    rows.first = FirstRows(own, {raw});
  }
  rows.own.types = groups.types;
  return Leave(conv_->Update(rows, mode), false, own, {raw}, mode);
}

}  // namespace internal
}  // namespace rhizome
