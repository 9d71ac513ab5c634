#pragma once

#include <algorithm>
#include <cmath>

#include "cuda/attention_cases.h"
#include "cuda/gatv2.cuh"

namespace rhizome::simulator {

/// Lists, dense rows of all heads, and the results of the forward pass. The gradient is only close
/// to the CPU's, which adds up edges in chunks.
struct AttendV2Case {
  AttendCase c;
  std::vector<float> x, query, attention, gradient;
};

inline AttendV2Case MakeAttendV2(Random& random, std::size_t heads, std::size_t width,
                                 std::size_t longest) {
  AttendV2Case made;
  AttendCase& c = made.c;
  c.heads = heads;
  c.width = width;
  c.lists = MakeAggregate(random, heads * width, longest);
  c.own = random() % 2 == 0 && c.targets() <= c.lists.sources;
  c.dropout = RandomDropout(random);
  c.maximum.resize(c.targets() * heads);
  c.denominator.resize(c.targets() * heads);
  c.out.resize(c.targets() * heads * width);
  made.x = RandomFloats(random, c.lists.sources * heads * width);
  made.query = RandomFloats(random, c.out.size());
  // Scores are far enough apart for maxima to rise, and close enough that weights do not vanish.
  made.attention = RandomFloats(random, heads * width);
  for (float& number : made.attention)
    number *= (random() % 2 == 0 ? 0.5F : 0.05F) / std::sqrt(static_cast<float>(width));
  made.gradient = RandomFloats(random, c.out.size());
  return made;
}

inline void AttendV2OnCpu(AttendV2Case& made) {
  AttendCase& c = made.c;
  rhizome::AttendArgs args;
  args.score = AttendScore::kGatv2;
  args.x = made.x.data();
  args.x_stride = args.own_stride = args.query_stride = args.out_stride = c.heads * c.width;
  args.heads = c.heads;
  args.width = c.width;
  args.begins = c.lists.csr.offsets.data();
  args.ends = c.lists.csr.offsets.data() + 1;
  args.index = c.lists.csr.neighbors.data();
  args.query = made.query.data();
  args.attention = made.attention.data();
  args.slope = c.slope;
  args.own = c.own ? made.x.data() : nullptr;
  args.dropout = OnCpu(c.dropout);
  args.finish = true;
  args.maximum = c.maximum.data();
  args.denominator = c.denominator.data();
  args.out = c.out.data();
  KernelsOf(SimdPath::kPortable).attend(args, 0, c.targets());
}

/// Fills in the arguments that forward and backward pass have in common.
template <typename Args>
void FillAttendV2(const AttendV2Case& made, Args& args) {
  args.heads = made.c.heads;
  args.width = made.c.width;
  args.targets = made.c.targets();
  args.offsets = Upload("offsets", made.c.lists.csr.offsets);
  args.index = Upload("index", made.c.lists.csr.neighbors);
  args.x = Upload("x", made.x);
  args.query = Upload("query", made.query);
  args.attention = Upload("attention", made.attention);
  args.slope = made.c.slope;
  args.dropout = made.c.dropout;
}

inline std::string AttendV2Of(AttendV2Case made, Random& random) {
  AttendV2OnCpu(made);
  const AttendCase& c = made.c;
  cuda::AttendV2ArgsOf<Mem> args;
  FillAttendV2(made, args);
  args.own = c.own;
  const Mem<float> maximum = Allocate<float>("maximum", c.maximum.size());
  const Mem<float> denominator = Allocate<float>("denominator", c.denominator.size());
  const Mem<float> out = Allocate<float>("out", c.out.size());
  args.maximum = maximum;
  args.denominator = denominator;
  args.out = out;
  cuda::LaunchAttendV2(0, args, SmallGeometry(random));
  const bool equal = SameBits(Download(out), c.out) && SameBits(Download(maximum), c.maximum) &&
                     SameBits(Download(denominator), c.denominator);
  return Wrong(Machine::Current(), equal, "attention v2");
}

inline float LargestOf(const std::vector<float>& numbers) {
  float largest = 0;
  for (const float number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

/// The gradients of rows, queries and attention vectors.
struct AttendV2Gradients {
  std::vector<float> x, query, attention;
  float largest_term = 0;  // of the gradients of scores, which cancel out
};

inline AttendV2Gradients AttendV2GradientOnCpu(const AttendV2Case& made) {
  const AttendCase& c = made.c;
  const TransposedCsr turned = Turn(c.lists.csr.view(), c.lists.sources);
  AttendV2Gradients of{std::vector<float>(made.x.size()), std::vector<float>(made.query.size()),
                       std::vector<float>(made.attention.size()), 0};
  std::vector<float> stats(c.targets() * AttendStatsSize(AttendScore::kGatv2, c.heads));
  KernelsOf(SimdPath::kPortable)
      .attend_stats({.score = AttendScore::kGatv2,
                     .heads = c.heads,
                     .width = c.width,
                     .maximum = c.maximum.data(),
                     .denominator = c.denominator.data(),
                     .out = c.out.data(),
                     .gradient = made.gradient.data(),
                     .stats = stats.data()},
                    0, c.targets());
  const std::size_t own = c.own ? c.targets() : 0;
  std::vector<float> of_edges(c.lists.csr.neighbors.size() * c.heads), of_own(own * c.heads);
  rhizome::AttendGradientArgs args;
  args.score = AttendScore::kGatv2;
  args.heads = c.heads;
  args.width = c.width;
  args.x = made.x.data();
  args.query = made.query.data();
  args.attention = made.attention.data();
  args.slope = c.slope;
  args.own = own;
  args.dropout = OnCpu(c.dropout);
  args.stats = stats.data();
  args.gradient = made.gradient.data();
  args.begins = c.lists.csr.offsets.data();
  args.ends = c.lists.csr.offsets.data() + 1;
  args.index = c.lists.csr.neighbors.data();
  args.transposed_begins = turned.lists.offsets.data();
  args.turned_ends = turned.lists.offsets.data() + 1;
  args.target = turned.lists.neighbors.data();
  args.edge = turned.edges.data();
  args.edge_count = static_cast<std::uint32_t>(c.lists.csr.neighbors.size());
  args.x_gradient = of.x.data();
  args.edge_gradient = of_edges.data();
  args.own_gradient = of_own.data();
  args.query_gradient = of.query.data();
  args.attention_gradient = of.attention.data();
  KernelsOf(SimdPath::kPortable).attend_source_gradient(args, 0, c.lists.sources);
  KernelsOf(SimdPath::kPortable).attend_query_gradient(args, 0, c.targets());
  of.largest_term = std::max(LargestOf(of_edges), LargestOf(of_own));
  return of;
}

/// Adds up the gradient of the attention vectors from the slopes that the device returns
/// (AttendV2GradientArgsOf).
inline void AddSlopes(const std::vector<float>& rows, const std::vector<float>& slopes,
                      std::vector<float>& of_attention) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    of_attention[i % of_attention.size()] += rows[i] * slopes[i];
}

/// Returns whether `a` and `b` can be sums of the same numbers in different orders. `term`:
/// approximate size of these numbers.
inline bool AreNear(const std::vector<float>& a, const std::vector<float>& b, float term) {
  const float scale = std::max(term, LargestOf(b));
  for (std::size_t i = 0; i < b.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= 2e-5F * scale)) return false;
  return true;
}

inline std::string AttendV2GradientOf(AttendV2Case made, Random& random) {
  AttendV2OnCpu(made);
  const AttendV2Gradients expected = AttendV2GradientOnCpu(made);
  const AttendCase& c = made.c;
  const TransposedCsr turned = Turn(c.lists.csr.view(), c.lists.sources);
  cuda::AttendV2GradientArgsOf<Mem> args;
  FillAttendV2(made, args);
  args.sources = c.lists.sources;
  args.own = c.own ? c.targets() : 0;
  args.maximum = Upload("maximum", c.maximum);
  args.denominator = Upload("denominator", c.denominator);
  args.out = Upload("out", c.out);
  args.gradient = Upload("gradient", made.gradient);
  args.transposed_offsets = Upload("turned offsets", turned.lists.offsets);
  args.target = Upload("targets", turned.lists.neighbors);
  args.edge = Upload("edges", turned.edges);
  args.stats = Allocate<float>("stats", 4 * c.targets() * c.heads);
  args.edge_gradient = Allocate<float>("edge gradient", c.lists.csr.neighbors.size() * c.heads);
  args.own_gradient = Allocate<float>("own gradient", args.own * c.heads);
  const Mem<float> x_gradient = Allocate<float>("gradient of x", made.x.size());
  const Mem<float> query_gradient = Allocate<float>("gradient of query", made.query.size());
  const Mem<float> x_slopes = Allocate<float>("slopes of x", made.x.size());
  const Mem<float> query_slopes = Allocate<float>("slopes of query", made.query.size());
  args.x_gradient = x_gradient;
  args.query_gradient = query_gradient;
  args.x_slopes = x_slopes;
  args.query_slopes = query_slopes;
  cuda::LaunchAttendV2Gradient(0, args, SmallGeometry(random));
  std::string wrong = Machine::Current().Describe();
  std::vector<float> of_attention(made.attention.size());
  AddSlopes(made.x, Download(x_slopes), of_attention);
  AddSlopes(made.query, Download(query_slopes), of_attention);
  const float of_rows = expected.largest_term * LargestOf(made.attention);
  const float of_vectors =
      expected.largest_term * std::max(LargestOf(made.x), LargestOf(made.query));
  if (!AreNear(Download(x_gradient), expected.x, of_rows))
    wrong += "attention v2: gradients of rows\n";
  if (!AreNear(Download(query_gradient), expected.query, of_rows))
    wrong += "attention v2: of queries\n";
  if (!AreNear(of_attention, expected.attention, of_vectors)) wrong += "attention v2: of vectors\n";
  return wrong;
}

inline std::string AttendV2BothCase(Random& random) {
  constexpr std::size_t kWidths[] = {1, 3, 4, 8, 16, 20, 33, 64, 100, 130};
  const AttendV2Case made = MakeAttendV2(random, 1 + random() % 4, kWidths[random() % 10], 40);
  return AttendV2Of(made, random) + AttendV2GradientOf(made, random);
}

}  // namespace rhizome::simulator
