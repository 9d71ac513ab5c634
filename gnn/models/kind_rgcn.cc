#include <fmt/format.h>

#include "gnn/models/conv.h"
#include "gnn/ops/basis_layer.h"
#include "gnn/ops/group_rows.h"
#include "gnn/ops/relation_products.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Up to this number of relations, each one has its own matrix by default; beyond, they share
/// kDefaultBases matrices.
constexpr std::int64_t kMostFull = 32;
constexpr std::int64_t kDefaultBases = 16;
constexpr std::int64_t kMostBases = 1024;
constexpr std::int64_t kMostBlocks = 1024;

/// Weights and numbers of bases and blocks that the options select.
struct RelationForm {
  std::int64_t bases = 0;   ///< 0: each relation has its own matrix
  std::int64_t blocks = 1;  ///< of its own matrix

  static RelationForm Of(const ModelOptions& options, std::int64_t relations) {
    RelationForm form{.bases = options.Integer("bases"), .blocks = options.Integer("blocks")};
    if (form.bases < 0 && form.blocks == 1) form.bases = relations <= kMostFull ? 0 : kDefaultBases;
    if (form.bases < 0) form.bases = 0;
    return form;
  }
};

/// R-GCN: out = x W_self^T + sum over relations r of mean_r W_r^T + bias, where mean_r is the mean
/// of the neighbours under relation r (equation 2, with c = the number of these neighbours). The
/// matrices W_r are free, or sums of bases (equation 3), or block-diagonal (equation 4).
class RgcnConv final : public Conv {
 public:
  RgcnConv(const ConvShape& shape, const RelationForm& form)
      : Conv(shape.number), shape_(shape), form_(form) {}

  ConvPieces pieces() const override {
    return {.reduce = {.by = Reduction::kMean}, .width = shape_.in, .groups = true};
  }

  void VisitWeights(const WeightVisitor& visit) override {
    const std::int64_t in = shape_.in, out = shape_.out;
    visit({.name = "self.weight", .shape = {out, in}}, self_);
    if (form_.bases > 0) {
      visit({.name = "bases.weight", .shape = {form_.bases, out, in}}, matrices_);
      visit({.name = "bases.coefficients", .shape = {shape_.relations, form_.bases}},
            coefficients_);
    } else {
      const std::int64_t blocks = form_.blocks;
      visit({.name = "relation.weight",
             .shape = {shape_.relations, blocks, out / blocks, in / blocks}},
            matrices_);
    }
    visit({.name = "bias", .shape = {out}, .fill = WeightSpec::Fill::kZeros}, bias_);
  }

  torch::Tensor Forward(const LayerRows& x, const LayerGraph& graph, const torch::Tensor&,
                        const Activation& activation, const RunMode&) const override {
    if (form_.bases > 0) {
      return BasisForward(
          {.self = self_, .bases = matrices_, .coefficients = coefficients_, .bias = bias_}, x,
          graph, activation);
    }
    const torch::Tensor products =
        RelationProducts(ReduceGroups(x, graph), graph.groups, matrices_);
    return Activate(products + Linear(x.First(graph.targets()), self_) + bias_, activation);
  }

  torch::Tensor Update(const UpdateRows& rows, const RunMode&) const override {
    const torch::Tensor own = rows.own.Floats();
    const torch::Tensor reduced = rows.reduced.contiguous();
    if (form_.bases == 0) {
      torch::Tensor out = Multiply(own, packed_, bias_);
      AddRelationProducts(reduced, rows.groups, packed_relations_, out);
      return out;
    }
    torch::Tensor tile = AnyTile((form_.bases + 1) * shape_.in);
    tile.narrow(1, 0, shape_.in).copy_(own);
    SumByBasis(reduced.data_ptr<float>(), static_cast<std::size_t>(shape_.in), rows.groups, 0,
               rows.groups.targets(), frozen_coefficients_, tile.data_ptr<float>() + shape_.in,
               static_cast<std::size_t>(tile.size(1)));
    return Multiply(tile, packed_, bias_);
  }

  /// Counts the output, its gradients, and the gradients of own rows.
  std::uint64_t TargetNumbers() const override {
    return static_cast<std::uint64_t>(shape_.in + (form_.bases > 0 ? 3 : 5) * shape_.out);
  }

  /// Counts the reduced rows and their gradients. With bases, only the gradients are stored.
  std::uint64_t GroupNumbers() const override {
    const std::int64_t gradients = shape_.number > 0 ? shape_.in : 0;
    return static_cast<std::uint64_t>(gradients + (form_.bases > 0 ? 0 : shape_.in));
  }

  void Freeze() override {
    if (form_.bases > 0) {
      packed_ = PackedWeight(JoinedWeight(self_, matrices_));
      frozen_coefficients_ = coefficients_.detach().contiguous();
      return;
    }
    packed_ = PackedWeight(self_.detach());
    packed_relations_ = PackedClasses(matrices_);
  }

 private:
  const ConvShape shape_;
  const RelationForm form_;
  torch::Tensor self_;
  torch::Tensor matrices_;  // [bases, out, in], or [relations, blocks, out / blocks, in / blocks]
  torch::Tensor coefficients_;  // [relations, bases]
  torch::Tensor bias_;
  PackedWeight packed_;  // set by Freeze, as the following two
  PackedClasses packed_relations_;
  torch::Tensor frozen_coefficients_;
};

Result<std::shared_ptr<Conv>> MakeRgcn(const ConvShape& shape, const ModelOptions& options) {
  const RelationForm form = RelationForm::Of(options, shape.relations);
  if (form.bases > 0 && form.blocks > 1) {
    return Fail(Status::InvalidArgument(fmt::format(
        "model rgcn has {} bases and {} blocks; give option bases or option blocks, not both",
        form.bases, form.blocks)));
  }
  for (const std::int64_t width : {shape.in, shape.out}) {
    if (width % form.blocks == 0) continue;
    return Fail(Status::InvalidArgument(
        fmt::format("layer {} of model rgcn has {} input and {} output columns, which {} blocks do "
                    "not divide; choose another number of blocks, or option bases",
                    shape.number + 1, shape.in, shape.out, form.blocks)));
  }
  return std::make_shared<RgcnConv>(shape, form);
}

}  // namespace

const ConvKind& RgcnKind() {
  static const ConvKind kind{
      .info = {.name = "rgcn",
               .title = "the vertex, and the mean of its neighbours under each edge type",
               .source = "Schlichtkrull et al., Modeling Relational Data with Graph Convolutional "
                         "Networks (ESWC 2018)",
               .options = {IntegerOption("bases", -1, -1, kMostBases,
                                         "Basis matrices that relations share; 0: a matrix for "
                                         "each relation; -1: 0 up to 32 relations, else 16"),
                           IntegerOption("blocks", 1, 1, kMostBlocks,
                                         "Diagonal blocks of a relation's matrix")},
               .typed = true},
      .make = MakeRgcn};
  return kind;
}

}  // namespace internal
}  // namespace rhizome
