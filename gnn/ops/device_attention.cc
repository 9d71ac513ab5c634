#include "gnn/ops/device_attention.h"

#include <cstdint>

#include "gnn/ops/activation.h"
#include "gnn/ops/device_aggregate.h"
#include "gnn/ops/device_failure.h"

// Each pass allocates its outputs, fills the kernel's arguments from the tensors, the shape and the
// placed lists, and queues the kernel behind libtorch's work. A backward pass also allocates
// scratch and uses the transposed lists. For additive-v2, libtorch then computes the gradient of
// the attention vectors from the slopes that the kernel has summed.

namespace rhizome {
inline namespace internal {
namespace {

cuda::Dropout DropoutOnDevice(const AttentionShape& shape) {
  const DropoutDraws draws = DrawsOf(shape.dropout);
  return {.dropped = draws.dropped, .scale = draws.scale, .seed = shape.seed, .first_row = 0};
}

/// Fills in the arguments that both passes share.
template <typename Args>
void FillShape(const torch::Tensor& values, const AggregateLists& lists,
               const AttentionShape& shape, Args& args) {
  args.heads = static_cast<std::size_t>(shape.heads);
  args.width = static_cast<std::size_t>(values.size(1)) / args.heads;
  args.targets = static_cast<std::size_t>(lists.targets());
  args.offsets = lists.placed_csr().offsets.data();
  args.slope = static_cast<float>(shape.slope);
  args.dropout = DropoutOnDevice(shape);
}

/// Fills in the inputs that both passes of additive-v2 read.
template <typename Args>
void FillV2(const AttentionInputs& in, const AggregateLists& lists, Args& args) {
  args.index = lists.placed_csr().neighbors.data();
  args.x = in.values.data_ptr<float>();
  args.query = in.query.data_ptr<float>();
  args.attention = in.attention.data_ptr<float>();
}

/// Fills in the results of the forward pass and the transposed lists, which the backward passes
/// read.
template <typename Args>
void FillBackward(const Attended& made, const torch::Tensor& gradient,
                  const AggregateLists::Turned& turned, const AggregateLists& lists, Args& args) {
  args.sources = static_cast<std::size_t>(lists.sources());
  args.maximum = made.maximum.data_ptr<float>();
  args.denominator = made.denominator.data_ptr<float>();
  args.out = made.out.data_ptr<float>();
  args.gradient = gradient.data_ptr<float>();
  args.transposed_offsets = turned.csr.offsets.data();
  args.target = turned.csr.neighbors.data();
  args.edge = turned.edges.data();
}

/// Scratch memory of a backward pass. It may be freed once the pass is queued: libtorch does not
/// reuse the memory before the kernels are done.
struct BackwardScratch {
  torch::Tensor stats, edge_gradient, own_gradient;

  BackwardScratch(const torch::TensorOptions& floats, const AggregateLists& lists,
                  const AttentionShape& shape)
      : stats(at::empty({lists.targets(), shape.heads, 4}, floats)),
        edge_gradient(at::empty(
            {static_cast<std::int64_t>(lists.csr().neighbors.size()), shape.heads}, floats)),
        own_gradient(at::empty({shape.own ? lists.targets() : 0, shape.heads}, floats)) {}

  template <typename Args>
  void Fill(Args& args) const {
    args.own = static_cast<std::size_t>(own_gradient.size(0));
    args.stats = stats.data_ptr<float>();
    args.edge_gradient = edge_gradient.data_ptr<float>();
    args.own_gradient = own_gradient.data_ptr<float>();
  }
};

/// Fills in the outputs of the forward passes.
template <typename Args>
void FillMade(const Attended& made, const AttentionShape& shape, Args& args) {
  args.own = shape.own;
  args.maximum = made.maximum.data_ptr<float>();
  args.denominator = made.denominator.data_ptr<float>();
  args.out = made.out.data_ptr<float>();
}

void QueueAdditive(const AttentionInputs& in, const AggregateLists& lists,
                   const AttentionShape& shape, const Attended& made) {
  const RowsView rows = RowsOf(in.values);
  cuda::AttendArgs args;
  FillShape(in.values, lists, shape, args);
  FillMade(made, shape, args);
  args.type = ElementOf(rows.type);
  args.x = static_cast<const unsigned char*>(rows.x);
  args.x_stride = rows.stride;
  args.index = lists.placed_csr().neighbors.data();
  args.source = in.source.data_ptr<float>();
  args.query = in.query.data_ptr<float>();
  ThrowIfError(lists.uploads()->device().Attend(kDefaultStream, args));
}

void QueueV2(const AttentionInputs& in, const AggregateLists& lists, const AttentionShape& shape,
             const Attended& made) {
  cuda::AttendV2Args args;
  FillShape(in.values, lists, shape, args);
  FillV2(in, lists, args);
  FillMade(made, shape, args);
  ThrowIfError(lists.uploads()->device().AttendGatv2(kDefaultStream, args));
}

AttentionInputs AdditiveGradient(const AttentionInputs& in, const Attended& made,
                                 const torch::Tensor& gradient, const AggregateLists& lists,
                                 const AttentionShape& shape) {
  const AggregateLists::Turned turned = lists.placed_transpose();
  const torch::TensorOptions floats = in.query.options().requires_grad(false);
  const AttentionInputs out{.values = at::empty(in.values.sizes(), floats),
                            .source = at::empty(in.source.sizes(), floats),
                            .query = at::empty(in.query.sizes(), floats),
                            .attention = {}};
  const BackwardScratch scratch(floats, lists, shape);
  cuda::AttendGradientArgs args;
  FillShape(in.values, lists, shape, args);
  FillBackward(made, gradient, turned, lists, args);
  scratch.Fill(args);
  args.x = in.values.data_ptr<float>();
  args.source = in.source.data_ptr<float>();
  args.query = in.query.data_ptr<float>();
  args.x_gradient = out.values.data_ptr<float>();
  args.source_gradient = out.source.data_ptr<float>();
  args.query_gradient = out.query.data_ptr<float>();
  ThrowIfError(lists.uploads()->device().AttendGradient(kDefaultStream, args));
  return out;
}

AttentionInputs V2Gradient(const AttentionInputs& in, const Attended& made,
                           const torch::Tensor& gradient, const AggregateLists& lists,
                           const AttentionShape& shape) {
  const AggregateLists::Turned turned = lists.placed_transpose();
  const torch::TensorOptions floats = in.query.options().requires_grad(false);
  AttentionInputs out{.values = at::empty(in.values.sizes(), floats),
                      .source = {},
                      .query = at::empty(in.query.sizes(), floats),
                      .attention = {}};
  const torch::Tensor x_slopes = at::empty(in.values.sizes(), floats);
  const torch::Tensor query_slopes = at::empty(in.query.sizes(), floats);
  const BackwardScratch scratch(floats, lists, shape);
  cuda::AttendV2GradientArgs args;
  FillShape(in.values, lists, shape, args);
  FillV2(in, lists, args);
  FillBackward(made, gradient, turned, lists, args);
  scratch.Fill(args);
  args.x_gradient = out.values.data_ptr<float>();
  args.query_gradient = out.query.data_ptr<float>();
  args.x_slopes = x_slopes.data_ptr<float>();
  args.query_slopes = query_slopes.data_ptr<float>();
  ThrowIfError(lists.uploads()->device().AttendV2Gradient(kDefaultStream, args));
  out.attention =
      ((in.values * x_slopes).sum(0) + (in.query * query_slopes).sum(0)).view_as(in.attention);
  return out;
}

}  // namespace

Attended AttendOnDevice(const AttentionInputs& in, const AggregateLists& lists,
                        const AttentionShape& shape) {
  const torch::TensorOptions floats = in.query.options().requires_grad(false);
  Attended made{.out = at::empty({lists.targets(), in.values.size(1)}, floats),
                .maximum = at::empty({lists.targets(), shape.heads}, floats),
                .denominator = at::empty({lists.targets(), shape.heads}, floats)};
  const bool additive = in.score() == AttendScore::kAdditive;
  (additive ? QueueAdditive : QueueV2)(in, lists, shape, made);
  return made;
}

AttentionInputs AttendGradientOnDevice(const AttentionInputs& in, const Attended& made,
                                       const torch::Tensor& gradient, const AggregateLists& lists,
                                       const AttentionShape& shape) {
  const bool additive = in.score() == AttendScore::kAdditive;
  return (additive ? AdditiveGradient : V2Gradient)(in, made, gradient, lists, shape);
}

}  // namespace internal
}  // namespace rhizome
