#include "gnn/ops/class_products.h"

#include "gnn/ops/class_tiles.h"

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Saves in the context, by address, what an operation needs besides tensors.
void Keep(AutogradContext* context, const LayerRows& x, const RowsByClass& classes) {
  auto& data = context->saved_data;
  data["place"] = reinterpret_cast<std::int64_t>(x.place.data());
  data["places"] = static_cast<std::int64_t>(x.place.size());
  data["classes"] = reinterpret_cast<std::int64_t>(&classes);
}

struct Kept {
  LayerRows x;
  const RowsByClass& classes;

  static Kept Of(AutogradContext* context, const torch::Tensor& table) {
    const auto& data = context->saved_data;
    return {{table,
             {reinterpret_cast<const std::uint32_t*>(data.at("place").toInt()),
              static_cast<std::size_t>(data.at("places").toInt())}},
            *reinterpret_cast<const RowsByClass*>(data.at("classes").toInt())};
  }

  /// Rows with `place` set are features, which need no gradient.
  bool needs_x(const AutogradContext* context) const {
    return context->needs_input_grad(0) && x.place.empty();
  }
};

struct ClassFunction : torch::autograd::Function<ClassFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& table,
                               const torch::Tensor& weight, const torch::Tensor& bias,
                               const LayerRows* given, const RowsByClass* classes) {
    const LayerRows x{table.contiguous(), given->place};
    context->save_for_backward({x.table, weight});
    Keep(context, x, *classes);
    torch::Tensor out = at::empty({classes->size(), weight.size(1) * weight.size(2)});
    MultiplyClasses(SourceRows(x, *classes, kSameRows), *classes, PackedClasses(weight, bias),
                    out.data_ptr<float>(), RunOn::kComputeThreads);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const Kept kept = Kept::Of(context, saved[0]);
    const torch::Tensor gradient = gradients[0].contiguous();
    const SourceRows of_products({gradient}, kept.classes, kSameRows);
    torch::Tensor of_x;
    if (kept.needs_x(context)) of_x = OfRows(kept, saved[1], of_products);
    const torch::Tensor of_weight = at::zeros(saved[1].sizes());
    torch::Tensor of_bias;
    if (context->needs_input_grad(2)) of_bias = at::zeros({saved[1].size(0), gradient.size(1)});
    const SourceRows rows(kept.x, kept.classes, kSameRows);
    for (std::size_t c = 0; c < static_cast<std::size_t>(saved[1].size(0)); ++c)
      AddClassGradient(kept.classes, c, rows, of_products, of_weight, of_bias);
    return {of_x, of_weight, of_bias, {}, {}};
  }

 private:
  /// Computes the gradient of x.
  static torch::Tensor OfRows(const Kept& kept, const torch::Tensor& weight,
                              const SourceRows& gradients) {
    const std::int64_t columns = kept.x.table.size(1), rows = kept.x.size();
    const torch::Tensor made = at::empty({kept.classes.size(), columns});
    MultiplyClasses(gradients, kept.classes, PackedClasses(weight, kept.classes, /*turned=*/true),
                    made.data_ptr<float>(), RunOn::kComputeThreads);
    return made.size(0) == rows ? made : at::cat({made, at::zeros({rows - made.size(0), columns})});
  }
};

}  // namespace

torch::Tensor ClassProducts(const LayerRows& x, const RowsByClass& classes,
                            const torch::Tensor& weight, const torch::Tensor& bias) {
  const LayerRows floats = FloatRows(x);
  // An operation cannot have undefined inputs.
  return ClassFunction::apply(floats.table, weight, bias.defined() ? bias : at::empty({0}), &floats,
                              &classes);
}

void MultiplyByClass(const LayerRows& x, const RowsByClass& classes, const PackedClasses& weight,
                     float* out, const ProductSource& source) {
  MultiplyClasses(SourceRows(x, classes, source), classes, weight, out, RunOn::kCallingThread);
}

void MultiplySorted(const LayerRows& x, const RowsByClass& classes, const PackedClasses& weight,
                    float* out, const ProductSource& source) {
  const SourceRows rows(x, classes, source);
  const std::vector<ClassTile> tiles = ClassTilesOf(classes);
  ComputeFor(tiles.size(), [&](std::size_t i) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    MultiplyBlocks(rows.Of(tiles[i]), tiles[i].count, weight.MatrixOf(tiles[i].of_class),
                   weight.BiasOf(tiles[i].of_class),
                   out + tiles[i].first * static_cast<std::size_t>(weight.out()));
  });
}

}  // namespace internal
}  // namespace rhizome
