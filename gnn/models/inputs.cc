#include "gnn/models/inputs.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cache/job/compute_threads.h"
#include "gnn/models/shape_types.h"
#include "rhizome/loader.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
// RowsOf sorts the vertices of a minibatch by type. Forward and Compute multiply the rows of each
// type in tiles, apply the activation to a tile and write its rows to their places in the result.
// The backward pass gathers the same tiles again: gradients by the activation's derivative, which
// follows from the result, and rows of features.

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Dropout draws of the input layer begin here; see model.cc and layer.cc for the others.
constexpr std::uint64_t kInputDraws = std::uint64_t{1} << 33;

/// The arguments of a run over all types.
struct Run {
  RowsByType rows;
  std::int64_t width = 0;
  bool rectified = false;
  double dropout = 0;
  std::vector<std::uint64_t> seeds = {};  // [types], of dropout

  // [types], only of types whose rows are learned: the weights turned, [columns, width].
  std::vector<PackedWeight> turned = {};
};

/// A tile of the vertices of one type.
struct Tile {
  std::size_t type = 0;
  std::int64_t number = 0;
  std::int64_t first() const { return number * kDenseRows; }
};

std::int64_t CountOf(const RowsByType::OfType& type) {
  return static_cast<std::int64_t>(type.target.size());
}

std::int64_t RowsIn(const Tile& tile, const RowsByType::OfType& type) {
  return std::min(kDenseRows, CountOf(type) - tile.first());
}

std::vector<Tile> TilesOf(const RowsByType& rows) {
  std::vector<Tile> tiles;
  for (std::size_t type = 0; type < rows.types.size(); ++type)
    for (std::int64_t i = 0; i < DenseTiles(CountOf(rows.types[type])); ++i)
      tiles.push_back({type, i});
  return tiles;
}

/// The rows of features of a tile: in place, or a copy with dropout.
class FeatureTile {
 public:
  FeatureTile(const Run& run, const Tile& at)
      : tile_({run.rows.types[at.type].table, run.rows.types[at.type].place}, at.number) {
    rows_ = tile_.rows();
    if (run.dropout == 0) return;
    const LayerRows all{run.rows.types[at.type].table, run.rows.types[at.type].place};
    const std::int64_t columns = all.table.size(1);
    dropped_ = AnyTile(columns);
    float* const values = dropped_.data_ptr<float>();
    all.Copy(at.first(), tile_.count(), values, static_cast<std::size_t>(columns));
    ActivateRows({.dropout = run.dropout, .seed = run.seeds[at.type]}, values, tile_.count(),
                 columns, at.first(), values);
    rows_ = {.x = values, .stride = rows_.stride, .columns = rows_.columns};
  }
  const ProductRows& rows() const { return rows_; }

 private:
  const ProductTile tile_;
  torch::Tensor dropped_;
  ProductRows rows_;
};

/// Returns a tile of rows of one value.
torch::Tensor TileOf(float value, std::int64_t columns) {
  torch::Tensor tile = AnyTile(columns);
  std::fill_n(tile.data_ptr<float>(), tile.numel(), value);
  return tile;
}

/// Computes all rows. `packed`: [types], undefined for types without features.
void ComputeRows(const Run& run, const std::vector<PackedWeight>& packed,
                 const std::vector<torch::Tensor>& biases, float* out) {
  const std::vector<Tile> tiles = TilesOf(run.rows);
  ComputeFor(tiles.size(), [&](std::size_t i) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const Tile& at = tiles[i];
    const RowsByType::OfType& type = run.rows.types[at.type];
    const std::int64_t count = RowsIn(at, type);
    // A whole tile, so that the bits of the activation do not depend on the number of rows.
    torch::Tensor made = TileOf(0, run.width);
    float* const values = made.data_ptr<float>();
    if (type.table.defined()) {
      MultiplyRows(FeatureTile(run, at).rows(), count, packed[at.type], biases[at.type], values);
    } else {
      const float* const bias = biases[at.type].data_ptr<float>();
      for (std::int64_t r = 0; r < count; ++r) std::copy_n(bias, run.width, values + r * run.width);
    }
    if (run.rectified) {
      at::relu_(made);
    } else {
      at::tanh_(made);
    }
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t to = type.target[static_cast<std::size_t>(at.first() + r)];
      std::copy_n(values + r * run.width, run.width, out + to * run.width);
    }
  });
}

/// Returns the gradients of a tile's rows before the activation, [count, width].
torch::Tensor GradientTile(const Run& run, const Tile& at, const float* result,
                           const float* gradient) {
  const RowsByType::OfType& type = run.rows.types[at.type];
  torch::Tensor tile = AnyTile(run.width);
  float* values = tile.data_ptr<float>();
  for (std::int64_t r = 0; r < RowsIn(at, type); ++r) {
    const std::int64_t from =
        std::int64_t{type.target[static_cast<std::size_t>(at.first() + r)]} * run.width;
    for (std::int64_t c = 0; c < run.width; ++c, ++values) {
      const float y = result[from + c];
      const float slope = run.rectified ? (y > 0 ? 1.0F : 0.0F) : 1 - y * y;
      *values = gradient[from + c] * slope;
    }
  }
  return tile;
}

struct TypeGradients {
  torch::Tensor weight, bias;
};

TypeGradients GradientsWithFeatures(const Run& run, std::size_t type, const float* result,
                                    const float* gradient) {
  const RowsByType::OfType& rows = run.rows.types[type];
  WeightGradient sums(CountOf(rows), run.width, rows.table.size(1));
  ComputeFor(sums.groups(), [&](std::size_t group) {
    for (std::int64_t i = sums.FirstTile(group); i < sums.FirstTile(group + 1); ++i) {
      const Tile at{type, i};
      sums.Add(group, GradientTile(run, at, result, gradient).data_ptr<float>(),
               FeatureTile(run, at).rows(), RowsIn(at, rows));
    }
  });
  return {sums.Weight(), sums.Bias()};
}

TypeGradients GradientsWithoutFeatures(const Run& run, std::size_t type, const float* result,
                                       const float* gradient) {
  const RowsByType::OfType& rows = run.rows.types[type];
  const std::int64_t tiles = DenseTiles(CountOf(rows));
  torch::Tensor sums = at::zeros({std::max<std::int64_t>(tiles, 1), run.width});
  ComputeFor(static_cast<std::size_t>(tiles), [&](std::size_t i) {
    const Tile at{type, static_cast<std::int64_t>(i)};
    const torch::Tensor tile = GradientTile(run, at, result, gradient);
    const float* values = tile.data_ptr<float>();
    float* const sum = sums.data_ptr<float>() + at.number * run.width;
    for (std::int64_t r = 0; r < RowsIn(at, rows); ++r)
      for (std::int64_t c = 0; c < run.width; ++c) sum[c] += *values++;
  });
  return {{}, SumOfGroups(sums)};
}

/// Computes the gradient of the rows of a type.
torch::Tensor GradientOfRows(const Run& run, std::size_t type, const float* result,
                             const float* gradient) {
  const RowsByType::OfType& rows = run.rows.types[type];
  const std::int64_t columns = rows.table.size(1);
  const torch::Tensor no_bias = at::zeros({columns});
  torch::Tensor of_rows = at::empty({CountOf(rows), columns});
  ComputeFor(static_cast<std::size_t>(DenseTiles(CountOf(rows))), [&](std::size_t i) {
    const Tile at{type, static_cast<std::int64_t>(i)};
    const std::int64_t count = RowsIn(at, rows);
    const torch::Tensor tile = GradientTile(run, at, result, gradient);
    float* const out = of_rows.data_ptr<float>() + at.first() * columns;
    MultiplyRows({.x = tile.data_ptr<float>(),
                  .stride = static_cast<std::size_t>(run.width),
                  .columns = static_cast<std::size_t>(run.width)},
                 count, run.turned[type], no_bias, out);
    // Dropout is linear: the same numbers are dropped and scaled.
    if (run.dropout > 0)
      ActivateRows({.relu = false, .dropout = run.dropout, .seed = run.seeds[type]}, out, count,
                   columns, at.first(), out);
  });
  return of_rows;
}

struct RunHolder : torch::CustomClassHolder {
  explicit RunHolder(Run given) : run(std::move(given)) {}
  const Run run;
};

/// `weights`: of the types with features, then all biases.
struct InputFunction : torch::autograd::Function<InputFunction> {
  static torch::Tensor forward(AutogradContext* context, at::TensorList weights,
                               const c10::intrusive_ptr<RunHolder>& holder) {
    const Run& run = holder->run;
    std::vector<PackedWeight> packed(run.rows.types.size());
    std::size_t next = 0;
    for (std::size_t type = 0; type < packed.size(); ++type)
      if (run.rows.types[type].table.defined()) packed[type] = PackedWeight(weights[next++]);
    const variable_list biases(weights.begin() + next, weights.end());
    torch::Tensor out = at::empty({run.rows.rows, run.width});
    ComputeRows(run, packed, biases, out.data_ptr<float>());
    context->save_for_backward({out});
    context->saved_data["run"] = c10::IValue::make_capsule(holder);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto holder = context->saved_data.at("run").toCapsule();
    const Run& run = dynamic_cast<const RunHolder&>(*holder).run;
    const torch::Tensor result = context->get_saved_variables()[0];
    const torch::Tensor gradient = gradients[0].contiguous();
    variable_list of_weights, of_biases;
    for (std::size_t type = 0; type < run.rows.types.size(); ++type) {
      const bool has_features = run.rows.types[type].table.defined();
      if (run.rows.types[type].gradient != nullptr)
        *run.rows.types[type].gradient =
            GradientOfRows(run, type, result.data_ptr<float>(), gradient.data_ptr<float>());
      TypeGradients made = has_features
                               ? GradientsWithFeatures(run, type, result.data_ptr<float>(),
                                                       gradient.data_ptr<float>())
                               : GradientsWithoutFeatures(run, type, result.data_ptr<float>(),
                                                          gradient.data_ptr<float>());
      if (has_features) of_weights.push_back(std::move(made.weight));
      of_biases.push_back(std::move(made.bias));
    }
    of_weights.insert(of_weights.end(), of_biases.begin(), of_biases.end());
    of_weights.emplace_back();  // of the holder
    return of_weights;
  }
};

torch::Tensor TableOf(const FeatureRows& features) {
  const auto type = features.type() == DataType::kFloat16 ? torch::kHalf : torch::kFloat32;
  const std::span<const std::byte> table = features.table();
  return torch::from_blob(const_cast<std::byte*>(table.data()),  // only read
                          {static_cast<std::int64_t>(table.size() / features.row_bytes()),
                           static_cast<std::int64_t>(features.dim())},
                          type);
}

}  // namespace

InputLayer::InputLayer(const ModelShape& shape, const ModelOptions& options)
    : names_(shape.vertex_types),
      inputs_(shape.typed_inputs),
      width_(shape.spec.hidden),
      rectified_(options.Choice(kInputActivation) == "relu"),
      numbers_(names_.size()) {
  std::iota(numbers_.begin(), numbers_.end(), 0U);
  weights_->of_types.resize(inputs_.size());
}

void InputLayer::VisitWeights(const WeightVisitor& visit) const {
  for (std::size_t type = 0; type < inputs_.size(); ++type) {
    const std::string name = "inputs." + names_[type];
    DenseWeights& weights = weights_->of_types[type];
    if (inputs_[type].dim > 0) {
      weights.Visit(name, inputs_[type].dim, width_, visit);
    } else {
      // A bias of zeros would never leave zero with ReLU.
      visit({.name = name + ".bias", .shape = {width_}}, weights.bias);
    }
  }
}

Status InputLayer::SetTypes(const std::vector<std::string>& vertex_types) {
  RHIZOME_ASSIGN_OR_RETURN(numbers_, NumbersOfTypes("vertex type", vertex_types, names_));
  return Status::Ok();
}

RowsByType InputLayer::RowsOf(const Minibatch& minibatch,
                              std::vector<LearnedTable>* learned) const {
  RowsByType rows{.types = std::vector<RowsByType::OfType>(inputs_.size()),
                  .rows = static_cast<std::int64_t>(minibatch.rows.size())};
  const std::vector<TypeId>& types = minibatch.vertex_types;
  const auto type_of = [&](std::uint32_t v) {
    return NumberOf(types.empty() ? TypeId{0} : types[v]);
  };
  const auto add = [&](const FeatureRows& features, std::size_t i, std::uint32_t v) {
    RowsByType::OfType& type = rows.types[type_of(v)];
    RHIZOME_CHECK(columns(type_of(v)) == static_cast<std::int64_t>(features.dim()));
    if (!type.table.defined()) type.table = TableOf(features);
    type.place.push_back(features.place().empty() ? static_cast<std::uint32_t>(i)
                                                  : features.place()[i]);
    type.target.push_back(v);
  };
  for (const MinibatchInput& input : minibatch.inputs)
    for (std::size_t i = 0; i < input.vertices.size(); ++i)
      add(input.features, i, input.vertices[i]);
  std::vector<bool> is_learned(inputs_.size());
  for (std::size_t i = 0; learned != nullptr && i < learned->size(); ++i) {
    LearnedTable& table = (*learned)[i];
    RowsByType::OfType& type = rows.types[NumberOf(table.type)];
    is_learned[NumberOf(table.type)] = true;
    type.table = table.rows;
    type.place.resize(table.vertices.size());
    std::iota(type.place.begin(), type.place.end(), 0U);
    type.target = table.vertices;
    type.gradient = &table.gradient;
  }
  for (std::uint32_t v = 0; v < minibatch.rows.size(); ++v) {
    if (is_learned[type_of(v)]) continue;
    if (columns(type_of(v)) == 0) {
      rows.types[type_of(v)].target.push_back(v);
    } else if (minibatch.inputs.empty()) {  // all types share an array
      add(minibatch.features, v, v);
    }
  }
  return rows;
}

torch::Tensor InputLayer::Forward(RowsByType rows, double dropout, const RunMode& mode) const {
  Run run{.rows = std::move(rows), .width = width_, .rectified = rectified_};
  if (mode.training() && dropout > 0) {
    run.dropout = dropout;
    for (std::size_t type = 0; type < types(); ++type)
      run.seeds.push_back(mode.Seed(kInputDraws + type));
  }
  variable_list weights, biases;
  for (std::size_t type = 0; type < types(); ++type) {
    const DenseWeights& of_type = weights_->of_types[type];
    RowsByType::OfType& rows_of_type = run.rows.types[type];
    if (columns(type) > 0) weights.push_back(of_type.weight);
    // Weights without rows in this minibatch have gradients of zero.
    if (columns(type) > 0 && !rows_of_type.table.defined())
      rows_of_type.table = at::empty({0, columns(type)});
    if (rows_of_type.gradient != nullptr && at::GradMode::is_enabled()) {
      run.turned.resize(types());
      run.turned[type] = PackedWeight(of_type.weight.detach().t().contiguous());
    }
    biases.push_back(of_type.bias);
  }
  weights.insert(weights.end(), biases.begin(), biases.end());
  return InputFunction::apply(at::TensorList(weights),
                              c10::make_intrusive<RunHolder>(std::move(run)));
}

void InputLayer::Freeze() const {
  weights_->packed.assign(types(), {});
  for (std::size_t type = 0; type < types(); ++type)
    if (columns(type) > 0)
      weights_->packed[type] = PackedWeight(weights_->of_types[type].weight.detach());
}

void InputLayer::Compute(RowsByType rows, float* out) const {
  std::vector<torch::Tensor> biases;
  for (const DenseWeights& of_type : weights_->of_types) biases.push_back(of_type.bias.detach());
  ComputeRows({.rows = std::move(rows), .width = width_, .rectified = rectified_}, weights_->packed,
              biases, out);
}

}  // namespace internal
}  // namespace rhizome
