#include <cmath>

#include "cache/kernels/aggregate_kernels.h"
#include "cache/kernels/attention_kernels.h"
#include "cuda/kernels.h"
#include "tools/device/random_lists.h"

// Compares GATv2 attention on a device with the processor.

namespace rhizome {
namespace {

/// GATv2 attention with random inputs, computed on the processor and on the device. The forward
/// pass must yield the same bits; gradients must be close.
class AttentionV2 {
 public:
  explicit AttentionV2(Random& random)
      : lists_(random, 300, 200),
        heads_(1 + random() % 8),
        width_(1 + random() % 140),
        own_(random() % 2 == 0 ? lists_.targets() : 0),
        x_(RandomFloats(random, lists_.sources * dim())),
        query_(RandomFloats(random, lists_.targets() * dim())),
        attention_(RandomFloats(random, dim())),
        gradient_(RandomFloats(random, query_.size())),
        maximum_(lists_.targets() * heads_),
        denominator_(maximum_.size()),
        out_(query_.size()) {
    if (random() % 2 == 0) dropout_ = {1U << 30, 4.0F / 3, random(), random() % 1000};
  }

  bool ForwardEquals() {
    AttendArgs on_cpu;
    on_cpu.score = AttendScore::kGatv2;
    on_cpu.x = x_.data();
    on_cpu.x_stride = on_cpu.query_stride = on_cpu.own_stride = on_cpu.out_stride = dim();
    on_cpu.heads = heads_;
    on_cpu.width = width_;
    on_cpu.begins = lists_.offsets.data();
    on_cpu.ends = lists_.offsets.data() + 1;
    on_cpu.index = lists_.index.data();
    on_cpu.query = query_.data();
    on_cpu.attention = attention_.data();
    on_cpu.slope = kSlope;
    on_cpu.own = own_ == 0 ? nullptr : x_.data();
    on_cpu.dropout = Dropout();
    on_cpu.finish = true;
    on_cpu.maximum = maximum_.data();
    on_cpu.denominator = denominator_.data();
    on_cpu.out = out_.data();
    kPortableKernels.attend(on_cpu, 0, lists_.targets());

    const OnDevice<float> x(x_), query(query_), attention(attention_);
    const OnDevice<std::uint32_t> offsets(lists_.offsets), index(lists_.index);
    const OnDevice<float> maximum = Zeros(maximum_.size()), denominator = Zeros(maximum_.size());
    const OnDevice<float> out = Zeros(out_.size());
    cuda::AttendV2Args args;
    Fill(offsets, index, x, query, attention, args);
    args.own = own_ != 0;
    args.maximum = maximum.get();
    args.denominator = denominator.get();
    args.out = out.get();
    cuda::AttendGatv2OnDevice(nullptr, args);
    return SameBits(out.Read(), out_) && SameBits(maximum.Read(), maximum_) &&
           SameBits(denominator.Read(), denominator_);
  }

  bool GradientIsNear() const {
    std::vector<float> of_x(x_.size()), of_query(query_.size()), of_attention(attention_.size());
    OnCpu(of_x, of_query, of_attention);
    const OnDevice<float> x(x_), query(query_), attention(attention_), gradient(gradient_);
    const OnDevice<float> out(out_), maximum(maximum_), denominator(denominator_);
    const OnDevice<std::uint32_t> offsets(lists_.offsets), index(lists_.index);
    const OnDevice<std::uint32_t> turned(lists_.transposed_offsets);
    const OnDevice<std::uint32_t> target(lists_.target), edge(lists_.edge);
    const OnDevice<float> stats = Zeros(4 * maximum_.size());
    const OnDevice<float> edges = Zeros(lists_.index.size() * heads_), own = Zeros(own_ * heads_);
    const OnDevice<float> x_gradient = Zeros(x_.size()), x_slopes = Zeros(x_.size());
    const OnDevice<float> query_gradient = Zeros(query_.size());
    const OnDevice<float> query_slopes = Zeros(query_.size());
    cuda::AttendV2GradientArgs args;
    Fill(offsets, index, x, query, attention, args);
    args.sources = lists_.sources;
    args.own = own_;
    args.maximum = maximum.get();
    args.denominator = denominator.get();
    args.out = out.get();
    args.gradient = gradient.get();
    args.transposed_offsets = turned.get();
    args.target = target.get();
    args.edge = edge.get();
    args.stats = stats.get();
    args.edge_gradient = edges.get();
    args.own_gradient = own.get();
    args.x_gradient = x_gradient.get();
    args.query_gradient = query_gradient.get();
    args.x_slopes = x_slopes.get();
    args.query_slopes = query_slopes.get();
    cuda::AttendV2GradientOnDevice(nullptr, args);
    std::vector<double> vectors(attention_.size());
    AddSlopes(x_, x_slopes.Read(), vectors);
    AddSlopes(query_, query_slopes.Read(), vectors);
    return AreNear(x_gradient.Read(), of_x) && AreNear(query_gradient.Read(), of_query) &&
           AreNear(std::vector<float>(vectors.begin(), vectors.end()), of_attention);
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

  template <typename Args>
  void Fill(const OnDevice<std::uint32_t>& offsets, const OnDevice<std::uint32_t>& index,
            const OnDevice<float>& x, const OnDevice<float>& query,
            const OnDevice<float>& attention, Args& args) const {
    args.heads = heads_;
    args.width = width_;
    args.targets = lists_.targets();
    args.offsets = offsets.get();
    args.index = index.get();
    args.x = x.get();
    args.query = query.get();
    args.attention = attention.get();
    args.slope = kSlope;
    args.dropout = dropout_;
  }

  static void AddSlopes(const std::vector<float>& rows, const std::vector<float>& slopes,
                        std::vector<double>& sums) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      sums[i % sums.size()] += double{rows[i]} * slopes[i];
  }

  /// Compares sums of a few hundred numbers of magnitude 1, added in different orders; terms may
  /// cancel out.
  static bool AreNear(const std::vector<float>& a, const std::vector<float>& b) {
    float largest = 1;
    for (const float number : b) largest = std::max(largest, std::abs(number));
    for (std::size_t i = 0; i < b.size(); ++i)
      if (!(std::abs(a[i] - b[i]) <= 1e-4F * largest)) return false;
    return true;
  }

  void OnCpu(std::vector<float>& of_x, std::vector<float>& of_query,
             std::vector<float>& of_attention) const {
    std::vector<float> stats(3 * maximum_.size());
    kPortableKernels.attend_stats({.score = AttendScore::kGatv2,
                                   .heads = heads_,
                                   .width = width_,
                                   .maximum = maximum_.data(),
                                   .denominator = denominator_.data(),
                                   .out = out_.data(),
                                   .gradient = gradient_.data(),
                                   .stats = stats.data()},
                                  0, lists_.targets());
    std::vector<float> edges(lists_.index.size() * heads_), own(own_ * heads_);
    AttendGradientArgs args;
    args.score = AttendScore::kGatv2;
    args.heads = heads_;
    args.width = width_;
    args.x = x_.data();
    args.query = query_.data();
    args.attention = attention_.data();
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
    args.edge_gradient = edges.data();
    args.own_gradient = own.data();
    args.query_gradient = of_query.data();
    args.attention_gradient = of_attention.data();
    kPortableKernels.attend_source_gradient(args, 0, lists_.sources);
    kPortableKernels.attend_query_gradient(args, 0, lists_.targets());
  }

  const RandomLists lists_;
  const std::size_t heads_, width_;
  const std::size_t own_;
  cuda::Dropout dropout_;
  std::vector<float> x_, query_, attention_, gradient_;
  std::vector<float> maximum_, denominator_, out_;
};

}  // namespace

bool AttentionV2Equals(Random& random) {
  AttentionV2 attention(random);
  return attention.ForwardEquals() && attention.GradientIsNear();
}

}  // namespace rhizome
