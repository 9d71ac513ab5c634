#include "gnn/ops/relation_products.h"

#include <vector>

#include "gnn/ops/class_tiles.h"
#include "gnn/ops/group_rows.h"

// Products of grouped rows with the matrices of their relations:
// 1. RowsByClass sorts the groups by relation.
// 2. AddToTargets multiplies the rows of each relation and adds the products to their targets.
//    Relations follow one another.
// 3. The backward pass multiplies the gradients of the same rows' targets by the transposed
//    matrices, and adds up each relation's gradient of the weight.

namespace rhizome {
inline namespace internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

RowsByClass ByRelation(const GroupedLists& groups, std::int64_t relations) {
  return RowsByClass::Of(groups.relation, static_cast<std::size_t>(relations));
}

struct RelationFunction : torch::autograd::Function<RelationFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& rows,
                               const torch::Tensor& weight, const GroupedLists* lists) {
    const torch::Tensor x = rows.contiguous();
    context->save_for_backward({x, weight});
    context->saved_data["groups"] = reinterpret_cast<std::int64_t>(lists);
    const RowsByClass groups = ByRelation(*lists, weight.size(0));
    torch::Tensor out =
        at::zeros({static_cast<std::int64_t>(lists->targets()), weight.size(1) * weight.size(2)});
    AddToTargets(SourceRows({x}, groups, kSameRows), groups, weight, /*turned=*/false,
                 TargetOfGroups(*lists), out);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto* const lists =
        reinterpret_cast<const GroupedLists*>(context->saved_data["groups"].toInt());
    const RowsByClass groups = ByRelation(*lists, saved[1].size(0));
    const std::vector<std::uint32_t> target_of = TargetOfGroups(*lists);
    const torch::Tensor gradient = gradients[0].contiguous();
    torch::Tensor of_rows, of_weight;
    if (context->needs_input_grad(0)) of_rows = at::empty(saved[0].sizes());
    if (context->needs_input_grad(1)) of_weight = at::zeros(saved[1].sizes());
    const SourceRows rows({saved[0]}, groups, kSameRows);
    const SourceRows of_products({gradient}, groups, {.row = target_of});
    if (of_rows.defined())
      MultiplyClasses(of_products, groups, PackedClasses(saved[1], groups, /*turned=*/true),
                      of_rows.data_ptr<float>(), RunOn::kComputeThreads);
    for (std::size_t r = 0; of_weight.defined() && r + 1 < groups.begin.size(); ++r)
      AddClassGradient(groups, r, rows, of_products, of_weight, {});
    return {of_rows, of_weight, {}};
  }
};

}  // namespace

torch::Tensor RelationProducts(const torch::Tensor& rows, const GroupedLists& groups,
                               const torch::Tensor& weight) {
  return RelationFunction::apply(rows, weight, &groups);
}

void AddRelationProducts(const torch::Tensor& rows, const GroupedLists& lists,
                         const PackedClasses& weight, torch::Tensor& out) {
  const RowsByClass groups = ByRelation(lists, weight.classes());
  const SourceRows from({rows}, groups, kSameRows);
  const std::vector<std::uint32_t> target_of = TargetOfGroups(lists);
  for (const ClassTile& tile : ClassTilesOf(groups))
    AddTileToTargets(from, groups, tile, weight.MatrixOf(tile.of_class), target_of, out);
}

}  // namespace internal
}  // namespace rhizome
