#pragma once

#include "cache/kernels/attention_kernels.h"
#include "cuda/aggregate_cases.h"
#include "cuda/attention.cuh"

namespace rhizome::simulator {

inline cuda::Dropout RandomDropout(Random& random) {
  if (random() % 2 == 0) return {};
  const std::uint32_t dropped = random() % 2 == 0 ? 1U << 31 : 1U << 29;
  return {dropped, random() % 2 == 0 ? 2.0F : 1.25F, random(), random() % 1000};
}

/// Lists, rows of all heads, and the results of the forward pass.
struct AttendCase {
  AggregateCase lists;
  std::size_t heads = 1, width = 1;
  bool own = false;
  float slope = 0.2F;
  cuda::Dropout dropout;
  std::vector<float> source, query, maximum, denominator, out;
  std::size_t targets() const { return lists.csr.offsets.size() - 1; }
};

inline AttendCase MakeAttend(Random& random, std::size_t heads, std::size_t width, bool floats) {
  AttendCase c;
  c.heads = heads;
  c.width = width;
  c.lists = MakeAggregate(random, heads * width, 40);
  if (floats) {
    c.lists.type = RowType::kFloat32;
    c.lists.stride = c.lists.dim;
    c.lists.x = RandomRows(random, RowType::kFloat32, c.lists.sources * c.lists.dim);
  }
  c.own = random() % 2 == 0 && c.targets() <= c.lists.sources;
  c.dropout = RandomDropout(random);
  // Scores are far enough apart for maxima to rise.
  const auto scores = [&](std::size_t rows) {
    std::vector<float> values = RandomFloats(random, rows * heads);
    for (float& value : values) value *= random() % 2 == 0 ? 2.0F : 0.1F;
    return values;
  };
  c.source = scores(c.lists.sources);
  c.query = scores(c.targets());
  c.maximum.resize(c.targets() * heads);
  c.denominator.resize(c.targets() * heads);
  c.out.resize(c.targets() * heads * width);
  return c;
}
inline AttendCase MakeAttend(Random& random, bool floats) {
  constexpr std::size_t kWidths[] = {1, 3, 4, 8, 16, 20, 33, 64, 100, 130};
  return MakeAttend(random, 1 + random() % 4, kWidths[random() % 10], floats);
}

inline AttendDropout OnCpu(const cuda::Dropout& dropout) {
  return {.dropped = dropout.dropped,
          .scale = dropout.scale,
          .seed = dropout.seed,
          .first_target = dropout.first_row};
}

/// Runs the forward pass on the CPU and stores its results in the case.
inline void AttendOnCpu(AttendCase& c) {
  const AggregateCase& lists = c.lists;
  std::vector<float> own(c.own ? c.targets() * lists.dim : 0);
  for (std::size_t t = 0; c.own && t < c.targets(); ++t) {
    const unsigned char* const row = lists.x.data() + t * lists.stride * BytesOf(lists.type);
    float* const to = own.data() + t * lists.dim;
    if (lists.type == RowType::kFloat32) {
      std::memcpy(to, row, lists.dim * sizeof(float));
    } else {
      KernelsOf(SimdPath::kPortable).widen(lists.type, row, lists.dim, to);
    }
  }
  rhizome::AttendArgs args;
  args.type = lists.type;
  args.x = lists.x.data();
  args.x_stride = lists.stride;
  args.heads = c.heads;
  args.width = c.width;
  args.begins = lists.csr.offsets.data();
  args.ends = lists.csr.offsets.data() + 1;
  args.index = lists.csr.neighbors.data();
  args.source = c.source.data();
  args.source_stride = c.heads;
  args.query = c.query.data();
  args.query_stride = c.heads;
  args.slope = c.slope;
  if (c.own) {
    args.own = own.data();
    args.own_stride = lists.dim;
    args.own_source = c.source.data();
    args.own_source_stride = c.heads;
  }
  args.dropout = OnCpu(c.dropout);
  args.finish = true;
  args.maximum = c.maximum.data();
  args.denominator = c.denominator.data();
  args.out = c.out.data();
  args.out_stride = lists.dim;
  KernelsOf(SimdPath::kPortable).attend(args, 0, c.targets());
}

inline std::string AttendOf(AttendCase c, Random& random) {
  AttendOnCpu(c);
  cuda::AttendArgsOf<Mem> args;
  FillLists(c.lists, args);
  args.heads = c.heads;
  args.width = c.width;
  args.source = Upload("source", c.source);
  args.query = Upload("query", c.query);
  args.slope = c.slope;
  args.own = c.own;
  args.dropout = c.dropout;
  const Mem<float> maximum = Allocate<float>("maximum", c.maximum.size());
  const Mem<float> denominator = Allocate<float>("denominator", c.denominator.size());
  const Mem<float> out = Allocate<float>("out", c.out.size());
  args.maximum = maximum;
  args.denominator = denominator;
  args.out = out;
  cuda::LaunchAttend(0, args, 0, SmallGeometry(random));
  const bool equal = SameBits(Download(out), c.out) && SameBits(Download(maximum), c.maximum) &&
                     SameBits(Download(denominator), c.denominator);
  return Wrong(Machine::Current(), equal, "attention");
}
inline std::string AttendForwardCase(Random& random) {
  return AttendOf(MakeAttend(random, false), random);
}

inline std::string AttendGradientOf(AttendCase c, Random& random) {
  AttendOnCpu(c);
  const AggregateCase& lists = c.lists;
  const TransposedCsr turned = Turn(lists.csr.view(), lists.sources);
  const std::vector<float> gradient = RandomFloats(random, c.out.size());
  std::vector<float> x(lists.x.size() / sizeof(float));
  std::memcpy(x.data(), lists.x.data(), lists.x.size());
  std::vector<float> stats(c.targets() * AttendStatsSize(AttendScore::kAdditive, c.heads));
  KernelsOf(SimdPath::kPortable)
      .attend_stats({.heads = c.heads,
                     .width = c.width,
                     .maximum = c.maximum.data(),
                     .denominator = c.denominator.data(),
                     .query = c.query.data(),
                     .out = c.out.data(),
                     .gradient = gradient.data(),
                     .stats = stats.data()},
                    0, c.targets());
  const std::size_t own = c.own ? c.targets() : 0;
  const std::size_t edges = lists.csr.neighbors.size();
  std::vector<float> of_edges(edges * c.heads), of_own(own * c.heads), of_x(x.size()),
      of_source(c.source.size()), of_query(c.query.size());
  rhizome::AttendGradientArgs on_cpu;
  on_cpu.heads = c.heads;
  on_cpu.width = c.width;
  on_cpu.x = x.data();
  on_cpu.source = c.source.data();
  on_cpu.slope = c.slope;
  on_cpu.own = own;
  on_cpu.dropout = OnCpu(c.dropout);
  on_cpu.stats = stats.data();
  on_cpu.gradient = gradient.data();
  on_cpu.begins = lists.csr.offsets.data();
  on_cpu.ends = lists.csr.offsets.data() + 1;
  on_cpu.index = lists.csr.neighbors.data();
  on_cpu.transposed_begins = turned.lists.offsets.data();
  on_cpu.turned_ends = turned.lists.offsets.data() + 1;
  on_cpu.target = turned.lists.neighbors.data();
  on_cpu.edge = turned.edges.data();
  on_cpu.edge_count = static_cast<std::uint32_t>(edges);
  on_cpu.x_gradient = of_x.data();
  on_cpu.source_gradient = of_source.data();
  on_cpu.edge_gradient = of_edges.data();
  on_cpu.own_gradient = of_own.data();
  on_cpu.query_gradient = of_query.data();
  KernelsOf(SimdPath::kPortable).attend_source_gradient(on_cpu, 0, lists.sources);
  KernelsOf(SimdPath::kPortable).attend_query_gradient(on_cpu, 0, c.targets());

  cuda::AttendGradientArgsOf<Mem> args;
  args.heads = c.heads;
  args.width = c.width;
  args.sources = lists.sources;
  args.targets = c.targets();
  args.x = Upload("x", x);
  args.source = Upload("source", c.source);
  args.query = Upload("query", c.query);
  args.slope = c.slope;
  args.own = own;
  args.dropout = c.dropout;
  args.maximum = Upload("maximum", c.maximum);
  args.denominator = Upload("denominator", c.denominator);
  args.out = Upload("out", c.out);
  args.gradient = Upload("gradient", gradient);
  args.offsets = Upload("offsets", lists.csr.offsets);
  args.transposed_offsets = Upload("turned offsets", turned.lists.offsets);
  args.target = Upload("targets", turned.lists.neighbors);
  args.edge = Upload("edges", turned.edges);
  args.stats = Allocate<float>("stats", 4 * c.targets() * c.heads);
  args.edge_gradient = Allocate<float>("edge gradient", of_edges.size());
  args.own_gradient = Allocate<float>("own gradient", of_own.size());
  const Mem<float> x_gradient = Allocate<float>("gradient of x", of_x.size());
  const Mem<float> source_gradient = Allocate<float>("gradient of source", of_source.size());
  const Mem<float> query_gradient = Allocate<float>("gradient of query", of_query.size());
  args.x_gradient = x_gradient;
  args.source_gradient = source_gradient;
  args.query_gradient = query_gradient;
  cuda::LaunchAttendGradient(0, args, SmallGeometry(random));
  std::string wrong = Machine::Current().Describe();
  if (!SameBits(Download(x_gradient), of_x)) wrong += "attention: gradients of rows differ\n";
  if (!SameBits(Download(source_gradient), of_source)) wrong += "attention: of sources\n";
  if (!SameBits(Download(query_gradient), of_query)) wrong += "attention: of queries\n";
  return wrong;
}
inline std::string AttendGradientCase(Random& random) {
  return AttendGradientOf(MakeAttend(random, true), random);
}

inline std::string ActivateCase(Random& random) {
  const std::size_t rows = random() % 6;
  const std::size_t dim = 1 + random() % 70;
  const bool relu = random() % 2 == 0;
  const cuda::Dropout dropout = RandomDropout(random);
  const std::vector<float> in = RandomFloats(random, rows * dim);
  std::vector<float> expected(in.size());
  KernelsOf(SimdPath::kPortable)
      .activate({.in = in.data(),
                 .in_stride = dim,
                 .out = expected.data(),
                 .out_stride = dim,
                 .dim = dim,
                 .relu = relu,
                 .dropped = dropout.dropped,
                 .scale = dropout.scale,
                 .seed = dropout.seed,
                 .first_row = dropout.first_row},
                0, rows);
  cuda::ActivateArgsOf<Mem> args;
  args.in = Upload("in", in);
  args.rows = rows;
  args.dim = dim;
  args.relu = relu;
  args.dropout = dropout;
  const Mem<float> out = Allocate<float>("out", in.size());
  args.out = out;
  cuda::LaunchActivate(0, args, SmallGeometry(random));
  std::string wrong = Wrong(Machine::Current(), SameBits(Download(out), expected), "activate");
  const std::vector<float> gradient = RandomFloats(random, in.size());
  std::vector<float> back(in.size());
  KernelsOf(SimdPath::kPortable)
      .activate_gradient({.result = expected.data(),
                          .gradient = gradient.data(),
                          .dim = dim,
                          .scale = dropout.scale,
                          .out = back.data()},
                         0, rows);
  cuda::ActivateGradientArgsOf<Mem> of;
  of.result = Upload("result", expected);
  of.gradient = Upload("gradient", gradient);
  of.count = in.size();
  of.scale = dropout.scale;
  const Mem<float> of_in = Allocate<float>("gradient of in", in.size());
  of.out = of_in;
  cuda::LaunchActivateGradient(0, of, SmallGeometry(random));
  return wrong + Wrong(Machine::Current(), SameBits(Download(of_in), back), "activate gradient");
}

}  // namespace rhizome::simulator
