#include "gnn/ops/device_aggregate.h"

#include "gnn/ops/device_failure.h"

namespace rhizome {
inline namespace internal {
namespace {

/// Copies the arguments that all kernels over lists share: the rows, and the lists of `targets`.
template <typename OnProcessor, typename OnDevice>
void CopyLists(const OnProcessor& args, std::size_t targets, OnDevice& same) {
  same.type = ElementOf(args.type);
  same.x = static_cast<const unsigned char*>(args.x);
  same.x_stride = args.x_stride;
  same.dim = args.dim;
  same.targets = targets;
  same.offsets = args.begins;
  same.index = args.index;
}

}  // namespace

cuda::Element ElementOf(RowType type) {
  switch (type) {
    case RowType::kFloat32:
      return cuda::Element::kFloat32;
    case RowType::kFloat16:
      return cuda::Element::kFloat16;
    case RowType::kBfloat16:
      return cuda::Element::kBfloat16;
  }
  return cuda::Element::kFloat32;
}

void QueueSum(Device& device, const SumArgs& args, std::size_t rows,
              const PlacedLongLists& long_lists, float* partials) {
  cuda::SumArgs same;
  CopyLists(args, rows, same);
  same.source_scale = args.source_scale;
  same.edge_weight = args.edge_weight;
  same.target_scale = args.target_scale;
  same.initial = args.initial;
  same.initial_stride = args.initial_stride;
  same.initial_rows = args.initial_rows;
  same.initial_scale = args.initial_scale;
  same.out = args.out;
  same.out_stride = args.out_stride;
  same.pieces = long_lists.pieces.data();
  same.piece_count = static_cast<std::uint32_t>(long_lists.pieces.size());
  same.longest = long_lists.longest;
  same.partial_count = long_lists.partial_count;
  same.partials = partials;
  ThrowIfError(device.Sum(kDefaultStream, same));
}

void QueueMax(Device& device, const MaxArgs& args, std::size_t rows) {
  cuda::MaxArgs same;
  CopyLists(args, rows, same);
  same.out = args.out;
  same.out_stride = args.out_stride;
  same.winner = args.edge;
  ThrowIfError(device.Max(kDefaultStream, same));
}

void QueueMaxGradient(Device& device, const MaxGradientArgs& args, std::size_t rows) {
  cuda::MaxGradientArgs same;
  same.gradient = args.gradient;
  same.winner = args.winner;
  same.dim = args.dim;
  same.sources = rows;
  same.offsets = args.begins;
  same.target = args.target;
  same.edge = args.edge;
  same.out = args.out;
  ThrowIfError(device.MaxGradient(kDefaultStream, same));
}

void QueueEdgeDots(Device& device, const EdgeDotArgs& args, std::size_t rows) {
  cuda::EdgeDotArgs same;
  CopyLists(args, rows, same);
  same.gradient = args.gradient;
  same.out = args.out;
  ThrowIfError(device.EdgeDots(kDefaultStream, same));
}

}  // namespace internal
}  // namespace rhizome
