#include "rhizome/gnn/device_attention.h"

#include <cstdint>

#include "rhizome/gnn/activation.h"
#include "rhizome/gnn/device_aggregate.h"
#include "rhizome/gnn/device_failure.h"

namespace rhizome::inline internal {
namespace {

cuda::Dropout DropoutOnDevice(const AttentionShape& shape) {
  const DropoutDraws draws = DrawsOf(shape.dropout);
  return {.dropped = draws.dropped, .scale = draws.scale, .seed = shape.seed, .first_row = 0};
}

/// Fills in what the arguments of both passes have.
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

}  // namespace

Attended AttendOnDevice(const AttentionInputs& in, const AggregateLists& lists,
                        const AttentionShape& shape) {
  const RowsView rows = RowsOf(in.values);
  const torch::TensorOptions floats = in.query.options().requires_grad(false);
  Attended made{.out = at::empty({lists.targets(), in.values.size(1)}, floats),
                .maximum = at::empty({lists.targets(), shape.heads}, floats),
                .denominator = at::empty({lists.targets(), shape.heads}, floats)};
  cuda::AttendArgs args;
  FillShape(in.values, lists, shape, args);
  args.type = ElementOf(rows.type);
  args.x = static_cast<const unsigned char*>(rows.x);
  args.x_stride = rows.stride;
  args.index = lists.placed_csr().neighbors.data();
  args.source = in.source.data_ptr<float>();
  args.query = in.query.data_ptr<float>();
  args.own = shape.own;
  args.maximum = made.maximum.data_ptr<float>();
  args.denominator = made.denominator.data_ptr<float>();
  args.out = made.out.data_ptr<float>();
  OrThrow(lists.uploads()->device().Attend(kDefaultStream, args));
  return made;
}

AttentionInputs AttendGradientOnDevice(const AttentionInputs& in, const Attended& made,
                                       const torch::Tensor& gradient, const AggregateLists& lists,
                                       const AttentionShape& shape) {
  const AggregateLists::Turned turned = lists.placed_turned();
  const torch::TensorOptions floats = in.query.options().requires_grad(false);
  const std::int64_t own = shape.own ? lists.targets() : 0;
  const auto edges = static_cast<std::int64_t>(lists.csr().neighbors.size());
  AttentionInputs out{.values = at::empty(in.values.sizes(), floats),
                      .source = at::empty(in.source.sizes(), floats),
                      .query = at::empty(in.query.sizes(), floats),
                      .attention = {}};
  // Scratch may go when this returns: libtorch gives its memory to nobody before the queued
  // kernels.
  const torch::Tensor stats = at::empty({lists.targets(), shape.heads, 4}, floats);
  const torch::Tensor edge_gradient = at::empty({edges, shape.heads}, floats);
  const torch::Tensor own_gradient = at::empty({own, shape.heads}, floats);
  cuda::AttendGradientArgs args;
  FillShape(in.values, lists, shape, args);
  args.sources = static_cast<std::size_t>(lists.sources());
  args.x = in.values.data_ptr<float>();
  args.source = in.source.data_ptr<float>();
  args.query = in.query.data_ptr<float>();
  args.own = static_cast<std::size_t>(own);
  args.maximum = made.maximum.data_ptr<float>();
  args.denominator = made.denominator.data_ptr<float>();
  args.out = made.out.data_ptr<float>();
  args.gradient = gradient.data_ptr<float>();
  args.turned_offsets = turned.csr.offsets.data();
  args.target = turned.csr.neighbors.data();
  args.edge = turned.edges.data();
  args.stats = stats.data_ptr<float>();
  args.edge_gradient = edge_gradient.data_ptr<float>();
  args.own_gradient = own_gradient.data_ptr<float>();
  args.x_gradient = out.values.data_ptr<float>();
  args.source_gradient = out.source.data_ptr<float>();
  args.query_gradient = out.query.data_ptr<float>();
  OrThrow(lists.uploads()->device().AttendGradient(kDefaultStream, args));
  return out;
}

}  // namespace rhizome::inline internal
