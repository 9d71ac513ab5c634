#pragma once

#include "gnn/models/conv.h"
#include "gnn/ops/torch.h"

namespace rhizome {
inline namespace internal {

/// A layer that multiplies the reduced row and, if there is a self weight, the target's own row:
///   out = own W_self^T + reduced W_neighbor^T + bias
/// Sums and means are computed by FusedForward; or rows are multiplied before they are aggregated,
/// if that is faster. Both add up in the order of the list.
class LinearConv : public Conv {
 public:
  /// Whether the target's own row has a separate weight.
  enum class OwnWeight : bool { kNo, kYes };

  LinearConv(const ConvShape& shape, const ReducePiece& reduce, OwnWeight own)
      : Conv(shape.number), shape_(shape), reduce_(reduce), own_(own) {}

  ConvPieces pieces() const override;
  void VisitWeights(const WeightVisitor& visit) override;
  torch::Tensor ReducedWeight() const override { return neighbor_weight_; }
  torch::Tensor Update(const UpdateRows& rows, const RunMode& mode) const override;
  torch::Tensor Forward(const LayerRows& x, const LayerGraph& graph, const torch::Tensor& first,
                        const Activation& activation, const RunMode& mode) const override;
  std::uint64_t TargetNumbers() const override;
  void Freeze() override;

  const torch::Tensor& neighbor_weight() const { return neighbor_weight_; }  ///< [out, reduced]
  const torch::Tensor& self_weight() const { return self_weight_; }  ///< [out, in], or undefined
  const torch::Tensor& bias() const { return bias_; }                ///< [out]

 protected:
  const ConvShape& shape() const { return shape_; }

 private:
  bool has_own() const { return own_ == OwnWeight::kYes; }

  const ConvShape shape_;
  const ReducePiece reduce_;
  const OwnWeight own_;
  torch::Tensor neighbor_weight_;
  torch::Tensor self_weight_;
  torch::Tensor bias_;
  PackedWeight tile_weight_;  // packed weights of [own | reduced]; set by Freeze
};

}  // namespace internal
}  // namespace rhizome
