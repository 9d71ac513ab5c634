#pragma once

#include <cmath>
#include <cstring>

#include "cache/kernels/aggregate.h"
#include "cache/kernels/simd.h"
#include "cuda/aggregate.cuh"
#include "cuda/case_tools.h"
#include "cuda/long_lists.h"

namespace rhizome::simulator {

/// Neighbour lists, rows and factors of an aggregation.
struct AggregateCase {
  Csr csr;
  std::size_t sources = 0, dim = 0, stride = 0;
  RowType type = RowType::kFloat32;
  std::vector<unsigned char> x;
  std::vector<float> source_scale, edge_weight, target_scale, initial, initial_scale;
};

/// Returns a number of random magnitude; some are zero, and some repeat.
inline float RandomFloat(Random& random) {
  if (random() % 16 == 0) return 0;
  if (random() % 16 == 0) return 2;
  const float number = std::ldexp(static_cast<float>(random() % 20001) / 10000.0F - 1.0F,
                                  static_cast<int>(random() % 12) - 6);
  return number;
}
inline std::vector<float> RandomFloats(Random& random, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = RandomFloat(random);
  return values;
}

/// Returns `count` random values of `type`. 16-bit values are random bits, with NaN and infinity
/// rare.
inline std::vector<unsigned char> RandomRows(Random& random, RowType type, std::size_t count) {
  std::vector<unsigned char> rows(count * BytesOf(type));
  if (type == RowType::kFloat32) {
    const std::vector<float> values = RandomFloats(random, count);
    if (!rows.empty()) std::memcpy(rows.data(), values.data(), rows.size());
    return rows;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits =
        type == RowType::kFloat16
            ? static_cast<std::uint16_t>(random())
            : static_cast<std::uint16_t>((random() % 2 << 15) | (0x3F00 + random() % 256));
    std::memcpy(rows.data() + 2 * i, &bits, 2);
  }
  return rows;
}

inline AggregateCase MakeAggregate(Random& random, std::size_t dim, std::size_t longest) {
  AggregateCase c;
  c.dim = dim;
  c.stride = dim + (random() % 2 == 0 ? dim % 4 == 0 ? 4 * (random() % 3) : 0 : random() % 3);
  c.sources = 1 + random() % 12;
  constexpr RowType kTypes[] = {RowType::kFloat32, RowType::kFloat16, RowType::kBfloat16};
  c.type = kTypes[random() % 3];
  const std::size_t targets = 1 + random() % 6;
  for (std::size_t t = 0; t < targets; ++t) {
    const std::size_t degree = random() % 4 == 0   ? 0
                               : random() % 4 == 0 ? random() % (longest + 1)
                                                   : random() % 6;
    for (std::size_t i = 0; i < degree; ++i)
      c.csr.neighbors.push_back(static_cast<std::uint32_t>(random() % c.sources));
    c.csr.offsets.push_back(static_cast<std::uint32_t>(c.csr.neighbors.size()));
  }
  // The last row has no padding after its columns.
  c.x = RandomRows(random, c.type, (c.sources - 1) * c.stride + dim);
  if (random() % 2 == 0) c.source_scale = RandomFloats(random, c.sources);
  if (random() % 2 == 0) c.edge_weight = RandomFloats(random, c.csr.neighbors.size());
  if (random() % 2 == 0) c.target_scale = RandomFloats(random, targets);
  if (random() % 2 == 0) {
    const std::size_t count = random() % (targets + 1);
    c.initial = RandomFloats(random, count * dim);
    if (random() % 2 == 0) c.initial_scale = RandomFloats(random, count);
  }
  return c;
}
inline AggregateCase MakeAggregate(Random& random) {
  constexpr std::size_t kWidths[] = {1, 5, 16, 31, 32, 33, 64, 65, 100, 128, 130, 257};
  return MakeAggregate(random, kWidths[random() % 12], 70);
}

inline cuda::Element ElementOf(RowType type) { return static_cast<cuda::Element>(type); }
inline Mem<const float> UploadOrNull(const char* name, const std::vector<float>& values) {
  return values.empty() ? Mem<const float>() : Const(Upload(name, values));
}

template <typename Args>
void FillLists(const AggregateCase& c, Args& args) {
  args.type = ElementOf(c.type);
  args.x = Upload("x", c.x);
  args.x_stride = c.stride;
  if constexpr (requires { args.dim; }) args.dim = c.dim;
  args.targets = c.csr.offsets.size() - 1;
  args.offsets = Upload("offsets", c.csr.offsets);
  args.index = Upload("index", c.csr.neighbors);
}

template <typename Launch>
std::string RunSum(const AggregateCase& c, const Launch& launch) {
  const std::size_t targets = c.csr.offsets.size() - 1;
  const std::size_t initial_rows = c.initial.size() / c.dim;
  std::vector<float> expected(targets * c.dim);
  KernelsOf(SimdPath::kPortable)
      .sum(MakeSumArgs(c.csr.view(),
                       {.target = c.target_scale, .source = c.source_scale, .edge = c.edge_weight},
                       {.type = c.type, .x = c.x.data(), .dim = c.dim, .stride = c.stride},
                       {.rows = c.initial.data(),
                        .stride = c.dim,
                        .count = initial_rows,
                        .scale = c.initial_scale},
                       expected.data(), c.dim),
           0, targets);
  cuda::SumArgsOf<Mem> args;
  FillLists(c, args);
  args.source_scale = UploadOrNull("source_scale", c.source_scale);
  args.edge_weight = UploadOrNull("edge_weight", c.edge_weight);
  args.target_scale = UploadOrNull("target_scale", c.target_scale);
  args.initial = UploadOrNull("initial", c.initial);
  args.initial_stride = c.dim;
  args.initial_rows = initial_rows;
  args.initial_scale = UploadOrNull("initial_scale", c.initial_scale);
  const Mem<float> out = Allocate<float>("out", targets * c.dim);
  args.out = out;
  args.out_stride = c.dim;
  launch(args);
  return Wrong(Machine::Current(), SameBits(Download(out), expected), "sum");
}

inline std::string SumOf(const AggregateCase& c, Random& random) {
  const cuda::Geometry geometry = SmallGeometry(random);
  return RunSum(c, [&](const auto& args) { cuda::LaunchSum(0, args, 0, geometry); });
}
inline std::string SumCase(Random& random) { return SumOf(MakeAggregate(random), random); }

/// Returns lists in which each piece of `long_lists` is a list; the others are unchanged.
inline Csr PiecesOf(const Csr& csr, const LongLists& long_lists) {
  Csr cut;
  std::size_t next = 0;
  for (std::uint32_t t = 0; t + 1 < csr.offsets.size(); ++t) {
    std::vector<std::uint32_t> ends = {csr.offsets[t + 1]};
    for (; next < long_lists.pieces.size() && long_lists.pieces[next].target == t; ++next) {
      if (long_lists.pieces[next].end != csr.offsets[t + 1])
        ends.insert(ends.end() - 1, long_lists.pieces[next].end);
    }
    cut.offsets.insert(cut.offsets.end(), ends.begin(), ends.end());
  }
  cut.neighbors = csr.neighbors;
  return cut;
}

/// A sum over long lists in pieces equals the sums over the pieces, added in order and then
/// finished.
inline std::string PiecesCase(Random& random) {
  AggregateCase c = MakeAggregate(random);
  c.initial.clear();
  c.initial_scale.clear();
  const std::uint32_t longest = random() % 8;
  const LongLists lists = FindLongLists(c.csr.offsets, longest, longest + 1 + random() % 20);
  const Csr cut = PiecesOf(c.csr, lists);
  std::vector<float> of_pieces((cut.offsets.size() - 1) * c.dim);
  KernelsOf(SimdPath::kPortable)
      .sum(MakeSumArgs(cut.view(), {.target = {}, .source = c.source_scale, .edge = c.edge_weight},
                       {.type = c.type, .x = c.x.data(), .dim = c.dim, .stride = c.stride}, {},
                       of_pieces.data(), c.dim),
           0, cut.offsets.size() - 1);
  const std::size_t targets = c.csr.offsets.size() - 1;
  std::vector<float> expected(targets * c.dim);
  std::size_t piece = 0;
  for (std::size_t t = 0; t < targets; ++t) {
    bool first = true;
    do {
      for (std::size_t d = 0; d < c.dim; ++d) {
        const float sum = of_pieces[piece * c.dim + d];
        expected[t * c.dim + d] = first ? sum : expected[t * c.dim + d] + sum;
      }
      first = false;
    } while (cut.offsets[++piece] != c.csr.offsets[t + 1]);
    for (std::size_t d = 0; d < c.dim && !c.target_scale.empty(); ++d)
      expected[t * c.dim + d] *= c.target_scale[t];
  }
  cuda::SumArgsOf<Mem> args;
  FillLists(c, args);
  args.source_scale = UploadOrNull("source_scale", c.source_scale);
  args.edge_weight = UploadOrNull("edge_weight", c.edge_weight);
  args.target_scale = UploadOrNull("target_scale", c.target_scale);
  args.pieces = Upload("pieces", lists.pieces);
  args.piece_count = static_cast<std::uint32_t>(lists.pieces.size());
  args.longest = lists.longest;
  args.partial_count = lists.partial_count;
  args.partials = Allocate<float>("partials", lists.partial_count * c.dim);
  const Mem<float> out = Allocate<float>("out", targets * c.dim);
  args.out = out;
  args.out_stride = c.dim;
  cuda::LaunchSum(0, args, 0, SmallGeometry(random));
  return Wrong(Machine::Current(), SameBits(Download(out), expected), "sum in pieces");
}

inline std::string SharedSumCase(Random& random) {
  const std::size_t blocks = 1 + random() % 2;
  return RunSum(MakeAggregate(random, 1 + random() % 40, 70),
                [&](const auto& args) { cuda::LaunchSumInSharedMemory(0, args, blocks); });
}

/// Runs the maximum and its gradient over the transposed lists.
inline std::string MaxOf(const AggregateCase& c, Random& random) {
  const std::size_t targets = c.csr.offsets.size() - 1;
  std::vector<float> expected(targets * c.dim);
  std::vector<std::uint32_t> winner(targets * c.dim);
  rhizome::MaxArgs on_cpu;
  on_cpu.type = c.type;
  on_cpu.x = c.x.data();
  on_cpu.x_stride = c.stride;
  on_cpu.dim = c.dim;
  on_cpu.begins = c.csr.offsets.data();
  on_cpu.ends = c.csr.offsets.data() + 1;
  on_cpu.index = c.csr.neighbors.data();
  on_cpu.out = expected.data();
  on_cpu.out_stride = c.dim;
  on_cpu.edge = winner.data();
  KernelsOf(SimdPath::kPortable).max(on_cpu, 0, targets);
  cuda::MaxArgsOf<Mem> args;
  FillLists(c, args);
  const Mem<float> out = Allocate<float>("out", targets * c.dim);
  const Mem<std::uint32_t> won = Allocate<std::uint32_t>("winner", targets * c.dim);
  args.out = out;
  args.out_stride = c.dim;
  args.winner = won;
  cuda::LaunchMax(0, args, SmallGeometry(random));
  std::string wrong = Wrong(Machine::Current(), SameBits(Download(out), expected), "max");
  if (Download(won) != winner) wrong += "max: winners differ\n";

  const TransposedCsr turned = Turn(c.csr.view(), c.sources);
  const std::vector<float> gradient = RandomFloats(random, targets * c.dim);
  std::vector<float> expected_gradient(c.sources * c.dim);
  KernelsOf(SimdPath::kPortable)
      .max_gradient({.gradient = gradient.data(),
                     .winner = winner.data(),
                     .dim = c.dim,
                     .begins = turned.lists.offsets.data(),
                     .ends = turned.lists.offsets.data() + 1,
                     .target = turned.lists.neighbors.data(),
                     .edge = turned.edges.data(),
                     .out = expected_gradient.data()},
                    0, c.sources);
  cuda::MaxGradientArgsOf<Mem> back;
  back.gradient = Upload("gradient", gradient);
  back.winner = Upload("winner", winner);
  back.dim = c.dim;
  back.sources = c.sources;
  back.offsets = Upload("turned offsets", turned.lists.offsets);
  back.target = Upload("targets", turned.lists.neighbors);
  back.edge = Upload("edges", turned.edges);
  const Mem<float> of_sources = Allocate<float>("gradient of x", c.sources * c.dim);
  back.out = of_sources;
  cuda::LaunchMaxGradient(0, back, SmallGeometry(random));
  return wrong + Wrong(Machine::Current(), SameBits(Download(of_sources), expected_gradient),
                       "max gradient");
}
inline std::string MaxCase(Random& random) { return MaxOf(MakeAggregate(random), random); }

inline std::string EdgeDotOf(const AggregateCase& c, Random& random) {
  const std::size_t targets = c.csr.offsets.size() - 1;
  const std::vector<float> gradient = RandomFloats(random, targets * c.dim);
  std::vector<float> expected(c.csr.neighbors.size());
  KernelsOf(SimdPath::kPortable)
      .edge_dot({.type = c.type,
                 .x = c.x.data(),
                 .x_stride = c.stride,
                 .dim = c.dim,
                 .begins = c.csr.offsets.data(),
                 .ends = c.csr.offsets.data() + 1,
                 .index = c.csr.neighbors.data(),
                 .gradient = gradient.data(),
                 .out = expected.data()},
                0, targets);
  cuda::EdgeDotArgsOf<Mem> args;
  FillLists(c, args);
  args.gradient = Upload("gradient", gradient);
  const Mem<float> out = Allocate<float>("out", expected.size());
  args.out = out;
  cuda::LaunchEdgeDots(0, args, SmallGeometry(random));
  return Wrong(Machine::Current(), SameBits(Download(out), expected), "edge dots");
}
inline std::string EdgeDotCase(Random& random) { return EdgeDotOf(MakeAggregate(random), random); }

}  // namespace rhizome::simulator
