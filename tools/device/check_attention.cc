#include <cmath>

#include "cache/kernels/aggregate_kernels.h"
#include "cache/kernels/attention_kernels.h"
#include "cuda/kernels.h"
#include "cuda/long_lists.h"
#include "tools/device/random_lists.h"

// Compares attention, activation and sums of long lists on a device with the processor.

namespace rhizome {
namespace {

const unsigned char* Bytes(const OnDevice<float>& values) {
  return reinterpret_cast<const unsigned char*>(values.get());
}

/// Attention with random float32 inputs, computed on the processor and on the device.
class Attention {
 public:
  explicit Attention(Random& random)
      : lists_(random, 300, 2500),
        heads_(1 + random() % 8),
        width_(1 + random() % 140),
        own_(random() % 2 == 0 ? lists_.targets() : 0),
        x_(RandomFloats(random, lists_.sources * dim())),
        source_(RandomFloats(random, lists_.sources * heads_)),
        query_(RandomFloats(random, lists_.targets() * heads_)),
        gradient_(RandomFloats(random, lists_.targets() * dim())),
        maximum_(lists_.targets() * heads_),
        denominator_(maximum_.size()),
        out_(gradient_.size()) {
    for (float& value : source_) value *= 40;  // so that the running maximum changes
    if (random() % 2 == 0) dropout_ = {1U << 30, 4.0F / 3, random(), random() % 1000};
  }

  bool ForwardEquals() {
    AttendArgs on_cpu;
    on_cpu.x = x_.data();
    on_cpu.x_stride = dim();
    on_cpu.heads = heads_;
    on_cpu.width = width_;
    on_cpu.begins = lists_.offsets.data();
    on_cpu.ends = lists_.offsets.data() + 1;
    on_cpu.index = lists_.index.data();
    on_cpu.source = on_cpu.own_source = source_.data();
    on_cpu.source_stride = on_cpu.query_stride = on_cpu.own_source_stride = heads_;
    on_cpu.query = query_.data();
    on_cpu.slope = kSlope;
    on_cpu.own = own_ == 0 ? nullptr : x_.data();
    on_cpu.own_stride = dim();
    on_cpu.dropout = Dropout();
    on_cpu.finish = true;
    on_cpu.maximum = maximum_.data();
    on_cpu.denominator = denominator_.data();
    on_cpu.out = out_.data();
    on_cpu.out_stride = dim();
    kPortableKernels.attend(on_cpu, 0, lists_.targets());

    const OnDevice<float> x(x_), source(source_), query(query_);
    const OnDevice<std::uint32_t> offsets(lists_.offsets), index(lists_.index);
    const OnDevice<float> maximum = Zeros(maximum_.size()), denominator = Zeros(maximum_.size());
    const OnDevice<float> out = Zeros(out_.size());
    cuda::AttendArgs args;
    args.x = Bytes(x);
    args.x_stride = dim();
    args.heads = heads_;
    args.width = width_;
    args.targets = lists_.targets();
    args.offsets = offsets.get();
    args.index = index.get();
    args.source = source.get();
    args.query = query.get();
    args.slope = kSlope;
    args.own = own_ != 0;
    args.dropout = dropout_;
    args.maximum = maximum.get();
    args.denominator = denominator.get();
    args.out = out.get();
    cuda::AttendOnDevice(nullptr, args);
    return SameBits(out.Read(), out_) && SameBits(maximum.Read(), maximum_) &&
           SameBits(denominator.Read(), denominator_);
  }

  bool GradientEquals() const {
    std::vector<float> of_x(x_.size()), of_source(source_.size()), of_query(query_.size());
    OnCpu(of_x, of_source, of_query);
    const OnDevice<float> x(x_), source(source_), query(query_), gradient(gradient_), out(out_);
    const OnDevice<float> maximum(maximum_), denominator(denominator_);
    const OnDevice<std::uint32_t> offsets(lists_.offsets), turned(lists_.transposed_offsets);
    const OnDevice<std::uint32_t> target(lists_.target), edge(lists_.edge);
    const OnDevice<float> stats = Zeros(4 * query_.size());
    const OnDevice<float> edges = Zeros(lists_.index.size() * heads_), own = Zeros(own_ * heads_);
    const OnDevice<float> x_gradient = Zeros(x_.size());
    const OnDevice<float> source_gradient = Zeros(source_.size());
    const OnDevice<float> query_gradient = Zeros(query_.size());
    cuda::AttendGradientArgs args;
    args.heads = heads_;
    args.width = width_;
    args.sources = lists_.sources;
    args.targets = lists_.targets();
    args.x = x.get();
    args.source = source.get();
    args.query = query.get();
    args.slope = kSlope;
    args.own = own_;
    args.dropout = dropout_;
    args.maximum = maximum.get();
    args.denominator = denominator.get();
    args.out = out.get();
    args.gradient = gradient.get();
    args.offsets = offsets.get();
    args.transposed_offsets = turned.get();
    args.target = target.get();
    args.edge = edge.get();
    args.stats = stats.get();
    args.edge_gradient = edges.get();
    args.own_gradient = own.get();
    args.x_gradient = x_gradient.get();
    args.source_gradient = source_gradient.get();
    args.query_gradient = query_gradient.get();
    cuda::AttendGradientOnDevice(nullptr, args);
    return SameBits(x_gradient.Read(), of_x) && SameBits(source_gradient.Read(), of_source) &&
           SameBits(query_gradient.Read(), of_query);
  }

 private:
  static constexpr float kSlope = 0.2F;
  std::size_t dim() const { return heads_ * width_; }
  AttendDropout Dropout() const {
    return {.dropped = dropout_.dropped,
            .scale = dropout_.scale,
            .seed = dropout_.seed,
            .first_target = dropout_.first_row};
  }
  void OnCpu(std::vector<float>& of_x, std::vector<float>& of_source,
             std::vector<float>& of_query) const {
    std::vector<float> stats(4 * query_.size());
    kPortableKernels.attend_stats({.heads = heads_,
                                   .width = width_,
                                   .maximum = maximum_.data(),
                                   .denominator = denominator_.data(),
                                   .query = query_.data(),
                                   .out = out_.data(),
                                   .gradient = gradient_.data(),
                                   .stats = stats.data()},
                                  0, lists_.targets());
    std::vector<float> edges(lists_.index.size() * heads_), own(own_ * heads_);
    AttendGradientArgs args;
    args.heads = heads_;
    args.width = width_;
    args.x = x_.data();
    args.source = source_.data();
    args.slope = kSlope;
    args.own = own_;
    args.dropout = Dropout();
    args.stats = stats.data();
    args.gradient = gradient_.data();
    args.begins = lists_.offsets.data();
    args.ends = lists_.offsets.data() + 1;
    args.index = lists_.index.data();
    args.transposed_begins = lists_.transposed_offsets.data();
    args.turned_ends = lists_.transposed_offsets.data() + 1;
    args.target = lists_.target.data();
    args.edge = lists_.edge.data();
    args.edge_count = static_cast<std::uint32_t>(lists_.index.size());
    args.x_gradient = of_x.data();
    args.source_gradient = of_source.data();
    args.edge_gradient = edges.data();
    args.own_gradient = own.data();
    args.query_gradient = of_query.data();
    kPortableKernels.attend_source_gradient(args, 0, lists_.sources);
    kPortableKernels.attend_query_gradient(args, 0, lists_.targets());
  }

  const RandomLists lists_;
  const std::size_t heads_, width_;
  const std::size_t own_;
  cuda::Dropout dropout_;
  std::vector<float> x_, source_, query_, gradient_;
  std::vector<float> maximum_, denominator_, out_;
};

}  // namespace

bool AttentionEquals(Random& random) {
  Attention attention(random);
  return attention.ForwardEquals() && attention.GradientEquals();
}

bool ActivationEquals(Random& random) {
  const std::size_t rows = random() % 3000, dim = 1 + random() % 300;
  const cuda::Dropout dropout{1U << 31, 2.0F, random(), random() % 1000};
  const std::vector<float> in = RandomFloats(random, rows * dim);
  std::vector<float> expected(in.size());
  kPortableKernels.activate({.in = in.data(),
                             .in_stride = dim,
                             .out = expected.data(),
                             .out_stride = dim,
                             .dim = dim,
                             .relu = true,
                             .dropped = dropout.dropped,
                             .scale = dropout.scale,
                             .seed = dropout.seed,
                             .first_row = dropout.first_row},
                            0, rows);
  const OnDevice<float> on_device(in), out = Zeros(in.size());
  cuda::ActivateArgs args;
  args.in = on_device.get();
  args.rows = rows;
  args.dim = dim;
  args.relu = true;
  args.dropout = dropout;
  args.out = out.get();
  cuda::ActivateOnDevice(nullptr, args);
  return SameBits(out.Read(), expected);
}

// Lists of up to 1,024 edges must yield the same bits as on the processor; longer ones are summed
// in another order.
bool SumInPiecesIsNear(Random& random) {
  const RandomLists lists(random, 400, 6000);
  const std::size_t dim = 1 + random() % 200;
  const std::vector<float> x = RandomFloats(random, lists.sources * dim);
  std::vector<float> expected(lists.targets() * dim);
  SumArgs on_cpu;
  on_cpu.x = x.data();
  on_cpu.x_stride = on_cpu.dim = on_cpu.out_stride = dim;
  on_cpu.begins = lists.offsets.data();
  on_cpu.ends = lists.offsets.data() + 1;
  on_cpu.index = lists.index.data();
  on_cpu.out = expected.data();
  kPortableKernels.sum(on_cpu, 0, lists.targets());
  const LongLists long_lists = FindLongLists(lists.offsets);
  const OnDevice<float> rows(x), out = Zeros(expected.size());
  const OnDevice<std::uint32_t> offsets(lists.offsets), index(lists.index);
  const OnDevice<cuda::ListPiece> pieces(long_lists.pieces);
  const OnDevice<float> partials = Zeros(long_lists.partial_count * dim);
  cuda::SumArgs args;
  args.x = Bytes(rows);
  args.x_stride = args.dim = args.out_stride = dim;
  args.targets = lists.targets();
  args.offsets = offsets.get();
  args.index = index.get();
  args.out = out.get();
  args.pieces = pieces.get();
  args.piece_count = static_cast<std::uint32_t>(long_lists.pieces.size());
  args.longest = long_lists.longest;
  args.partials = partials.get();
  args.partial_count = long_lists.partial_count;
  cuda::SumOnDevice(nullptr, args);
  const std::vector<float> sums = out.Read();
  for (std::size_t t = 0; t < lists.targets(); ++t) {
    const bool exact = lists.offsets[t + 1] - lists.offsets[t] <= kPieceEdges;
    for (std::size_t d = t * dim; d < (t + 1) * dim; ++d) {
      if (exact ? sums[d] != expected[d] : std::abs(sums[d] - expected[d]) > 1e-2F) return false;
    }
  }
  return true;
}

}  // namespace rhizome
