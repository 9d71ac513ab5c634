#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/simulator.h"
#include "rhizome/cache/aggregate.h"
#include "rhizome/cache/attention_kernels.h"
#include "rhizome/cache/simd.h"
#include "rhizome/cuda/attention.cuh"
#include "rhizome/cuda/gather.cuh"
#include "rhizome/cuda/id_map.cuh"
#include "rhizome/cuda/id_map_contestants.cuh"
#include "rhizome/cuda/long_lists.h"

// One random input for each kernel, run in one schedule and compared with the processor. A case
// returns what is wrong, or nothing; tests run hundreds of them, and seeded mistakes must show.

namespace rhizome::simulator {

using cuda::Mem;
using Random = std::mt19937_64;

/// Returns what the machine found, and that `name` differs if it does.
inline std::string Wrong(const Machine& machine, bool equal, const std::string& name) {
  std::string wrong = machine.Describe();
  if (!equal) wrong += name + " differs from the processor's\n";
  return wrong;
}

/// Compares bits. NaNs count as equal: their payload is the processor's own affair.
inline bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
           return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) ||
                  (x != x && y != y);
         });
}

/// Small launches, so that a schedule takes a millisecond; most are too small for their work.
inline cuda::Geometry SmallGeometry(Random& random) {
  return {32U << random() % 3, 1 + random() % 6};
}

template <typename T>
Mem<const T> Const(const Mem<T>& mem) {
  return mem;
}

// --- Gather -------------------------------------------------------------------------------------

struct GatherCase {
  std::size_t row_bytes = 0;
  std::size_t table_rows = 0, out_rows = 0;
  std::size_t table_stride = 0, out_stride = 0;
  std::vector<unsigned char> table, out;
  std::vector<std::int64_t> rows, place;
};

/// `widening`: the factor by which rows grow. `element`: what sizes are multiples of.
inline GatherCase MakeGather(Random& random, std::size_t row_bytes, std::size_t element,
                             std::size_t widening) {
  GatherCase c;
  c.row_bytes = row_bytes;
  const std::size_t unit = random() % 2 == 0 ? 16 : element;
  const auto stride = [&](std::size_t bytes) {
    return (bytes + unit - 1) / unit * unit + unit * (random() % 2);
  };
  c.table_stride = stride(row_bytes);
  c.out_stride = stride(row_bytes * widening);
  c.table_rows = 1 + random() % 12;
  c.rows.resize(random() % 16);
  c.out_rows = c.rows.size() + random() % 3;
  c.table.resize(c.table_rows * c.table_stride);
  for (unsigned char& byte : c.table) byte = static_cast<unsigned char>(random());
  c.out.resize(c.out_rows * c.out_stride);
  for (unsigned char& byte : c.out) byte = static_cast<unsigned char>(random());
  for (std::int64_t& row : c.rows) row = static_cast<std::int64_t>(random() % c.table_rows);
  c.place.resize(c.out_rows);
  for (std::size_t i = 0; i < c.place.size(); ++i) c.place[i] = static_cast<std::int64_t>(i);
  std::shuffle(c.place.begin(), c.place.end(), random);
  c.place.resize(c.rows.size());
  if (!c.rows.empty() && random() % 3 == 0) {
    const std::int64_t bad[] = {-1, -1000, static_cast<std::int64_t>(c.table_rows),
                                std::int64_t{1} << 40};
    for (int i = 0; i < 2; ++i) c.rows[random() % c.rows.size()] = bad[random() % 4];
  }
  return c;
}

/// Computes what the output and the flag must hold. `widen` appends a row as it is in the output.
template <typename Widen>
void Expect(const GatherCase& c, const Widen& widen, std::vector<unsigned char>& out,
            std::uint32_t& first_bad) {
  out = c.out;
  first_bad = cuda::kNoPosition;
  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    if (c.rows[i] < 0 || c.rows[i] >= static_cast<std::int64_t>(c.table_rows)) {
      first_bad = std::min(first_bad, static_cast<std::uint32_t>(i));
      continue;
    }
    const std::size_t target = c.place.empty() ? i : static_cast<std::size_t>(c.place[i]);
    widen(c.table.data() + static_cast<std::size_t>(c.rows[i]) * c.table_stride,
          out.data() + target * c.out_stride);
  }
}

template <typename Launch, typename Widen>
std::string RunGather(GatherCase c, Random& random, const Launch& launch, const Widen& widen) {
  if (random() % 3 == 0) c.place.clear();
  std::vector<unsigned char> expected;
  std::uint32_t first_bad = 0;
  Expect(c, widen, expected, first_bad);
  const Mem<unsigned char> out = Upload("out", c.out);
  cuda::GatherArgsOf<Mem> args;
  args.table = Upload("table", c.table);
  args.table_rows = c.table_rows;
  args.table_stride_bytes = c.table_stride;
  args.rows = Upload("rows", c.rows);
  if (!c.place.empty()) args.place = Upload("place", c.place);
  args.count = static_cast<std::uint32_t>(c.rows.size());
  args.out = out;
  args.out_rows = c.out_rows;
  args.out_stride_bytes = c.out_stride;
  args.row_bytes = c.row_bytes;
  const Mem<std::uint32_t> flag =
      Upload("first_bad", std::vector<std::uint32_t>{cuda::kNoPosition});
  args.first_bad = flag;
  launch(args);
  return Wrong(Machine::Current(), Download(out) == expected, "gather") +
         (Download(flag)[0] == first_bad ? "" : "gather: the flag differs\n");
}

inline std::string CopyCase(Random& random, std::size_t row_bytes) {
  const std::size_t element = row_bytes % 4 == 0 ? 4 : row_bytes % 2 == 0 ? 2 : 1;
  const cuda::Geometry geometry = SmallGeometry(random);
  return RunGather(
      MakeGather(random, row_bytes, element, 1), random,
      [&](const auto& args) { cuda::LaunchCopyRows(0, args, 0, geometry); },
      [&](const unsigned char* from, unsigned char* to) { std::copy_n(from, row_bytes, to); });
}
inline std::string CopyCase(Random& random) {
  const std::size_t bytes = 1 + random() % 130;
  return CopyCase(random, random() % 2 == 0 ? bytes : 16 * (1 + bytes % 40));
}

inline std::string WidenCase(Random& random, std::size_t columns) {
  const bool half = random() % 2 == 0;
  const cuda::Geometry geometry = SmallGeometry(random);
  return RunGather(
      MakeGather(random, columns * 2, 4, 2), random,
      [&](const auto& args) {
        cuda::LaunchWidenRows(0, half ? cuda::Element::kFloat16 : cuda::Element::kBfloat16, args, 0,
                              geometry);
      },
      [&](const unsigned char* from, unsigned char* to) {
        std::vector<std::uint16_t> row(columns);
        std::memcpy(row.data(), from, 2 * columns);
        std::vector<float> wide(columns);
        KernelsOf(SimdPath::kPortable)
            .widen(half ? RowType::kFloat16 : RowType::kBfloat16, row.data(), columns, wide.data());
        std::memcpy(to, wide.data(), 4 * columns);
      });
}
inline std::string WidenCase(Random& random) { return WidenCase(random, 1 + random() % 90); }

// --- Id map -------------------------------------------------------------------------------------

/// The scan between two launches, by the processor.
inline void ScanRegion(const Mem<std::uint32_t>& from, const Mem<std::uint32_t>& to,
                       std::uint32_t count) {
  const std::vector<std::uint32_t> values = Download(from);
  auto* const data = reinterpret_cast<std::uint32_t*>(to.region()->data);
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    data[i] = sum;
    sum += values[i];
    to.region()->cells[i].initialized = true;
  }
}

/// A table and what is numbered in it; the regions belong to the machine.
struct DeviceIdMap {
  /// `positions`: of all calls.
  DeviceIdMap(std::uint32_t capacity, std::size_t most_ids, std::size_t positions) {
    args.capacity = capacity;
    SetTable(std::vector<std::uint32_t>(4 * std::size_t{capacity}, 0xFFFFFFFF));
    args.distinct = Allocate<std::int64_t>("distinct", most_ids);
    args.locals = Allocate<std::int64_t>("locals", positions);
    args.found = Upload("found", std::vector<std::uint32_t>{0});
    args.errors = Upload("errors", std::vector<std::uint32_t>{0});
  }
  /// Races are looked for in cells of four bytes, as first position and number are used.
  void SetTable(const std::vector<std::uint32_t>& words) {
    args.table = cuda::Cast<std::int64_t>(Upload("table", words));
  }
  /// Makes the arrays of one call over `ids`.
  void Next(const std::vector<std::int64_t>& ids) {
    args.ids = Upload("ids", ids);
    args.count = static_cast<std::uint32_t>(ids.size());
    args.slots = Allocate<std::uint32_t>("slots", ids.size());
    const std::size_t words = cuda::IdMapWords(args.count);
    args.bits = Allocate<std::uint32_t>("bits", words);
    args.counts = Allocate<std::uint32_t>("counts", words);
    args.ranks = Allocate<std::uint32_t>("ranks", words);
  }
  /// Returns the numbers that the last call gave.
  std::vector<std::int64_t> locals() const {
    const std::vector<std::int64_t> all = Download(args.locals);
    return {all.begin() + args.base, all.begin() + args.base + args.count};
  }
  std::uint32_t found() const { return Download(args.found)[0]; }
  std::uint32_t errors() const { return Download(args.errors)[0]; }
  std::vector<std::int64_t> distinct() const {
    std::vector<std::int64_t> ids = Download(args.distinct);
    ids.resize(std::min<std::size_t>(found(), ids.size()));
    return ids;
  }
  cuda::IdMapArgsOf<Mem> args;
};

/// Numbers by first appearance, with the standard library.
struct ExpectedNumbers {
  std::unordered_map<std::int64_t, std::int64_t> number;
  std::vector<std::int64_t> distinct;
  std::vector<std::int64_t> Number(const std::vector<std::int64_t>& ids) {
    std::vector<std::int64_t> locals;
    for (const std::int64_t id : ids) {
      const auto [at, fresh] = number.try_emplace(id, static_cast<std::int64_t>(distinct.size()));
      if (fresh) distinct.push_back(id);
      locals.push_back(at->second);
    }
    return locals;
  }
};

/// Ids with repeats, some of them very large.
inline std::vector<std::int64_t> RandomIds(Random& random, std::size_t count,
                                           std::uint64_t universe) {
  std::vector<std::int64_t> ids(count);
  for (std::int64_t& id : ids) {
    const std::uint64_t number = random() % universe;
    id = static_cast<std::int64_t>(number % 3 == 0 ? number << 40 : number);
  }
  return ids;
}

/// Numbers two or three lists of ids, one after another, in one table; the table is as small as it
/// may be, or even full to the last slot.
inline std::string IdMapCase(Random& random) {
  ExpectedNumbers expected;
  std::vector<std::vector<std::int64_t>> calls(2 + random() % 2);
  std::vector<std::vector<std::int64_t>> locals;
  const std::uint64_t universe = 1 + random() % 100;
  for (auto& ids : calls) {
    ids = RandomIds(random, 1 + random() % 60, universe);
    locals.push_back(expected.Number(ids));
  }
  const bool full = random() % 2 == 0;
  const std::uint32_t capacity =
      std::bit_ceil(static_cast<std::uint32_t>(expected.distinct.size()) * (full ? 1 : 2));
  std::size_t positions = 0;
  for (const auto& ids : calls) positions += ids.size();
  DeviceIdMap map(capacity, expected.distinct.size(), positions);
  std::string wrong;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    map.Next(calls[i]);
    cuda::LaunchIdMap(0, map.args, ScanRegion, SmallGeometry(random));
    if (map.locals() != locals[i]) wrong = "id map: numbers differ\n";
    map.args.base += map.args.count;
    map.args.known = map.found();
  }
  if (map.distinct() != expected.distinct) wrong += "id map: distinct ids differ\n";
  if (map.errors() != 0) wrong += "id map: errors " + std::to_string(map.errors()) + "\n";
  return wrong + Machine::Current().Describe();
}

/// More distinct ids than slots, or an id that is no id: said, and the launch ends.
inline std::string IdMapErrorCase(Random& random) {
  std::vector<std::int64_t> ids = RandomIds(random, 40, 1000);
  ids.push_back(77);
  const bool sentinel = random() % 2 == 0;
  if (sentinel) ids[random() % 40] = random() % 2 == 0 ? cuda::kFreeKey : -5;
  DeviceIdMap map(sentinel ? 128 : 8, ids.size(), ids.size());
  map.Next(ids);
  cuda::LaunchIdMap(0, map.args, ScanRegion, SmallGeometry(random));
  const bool said = map.errors() == (sentinel ? cuda::kBadId : cuda::kTableFull);
  const std::vector<std::int64_t> locals = Download(map.args.locals);
  const bool marked = std::find(locals.begin(), locals.end(), -1) != locals.end();
  return Wrong(Machine::Current(), said && marked, "id map: an error");
}

inline std::string ThreeStepsCase(Random& random) {
  const std::vector<std::int64_t> ids = RandomIds(random, 1 + random() % 200, 1 + random() % 100);
  ExpectedNumbers expected;
  const std::vector<std::int64_t> locals = expected.Number(ids);
  DeviceIdMap map(256, expected.distinct.size(), ids.size());
  map.Next(ids);
  cuda::LaunchThreeSteps(0, map.args, ScanRegion, {32U << random() % 3, 1});
  return Wrong(Machine::Current(),
               Download(map.args.locals) == locals && map.distinct() == expected.distinct,
               "three steps");
}

/// FastGL's numbers: each id has one, and they are 0, 1, ... in some order.
inline std::string FusedMapCase(Random& random) {
  const std::vector<std::int64_t> ids = RandomIds(random, 1 + random() % 200, 1 + random() % 100);
  ExpectedNumbers expected;
  expected.Number(ids);
  DeviceIdMap map(256, expected.distinct.size(), ids.size());
  map.Next(ids);
  cuda::LaunchFusedMap(0, map.args, SmallGeometry(random));
  const std::vector<std::int64_t> locals = Download(map.args.locals);
  const std::vector<std::int64_t> distinct = map.distinct();
  bool equal = distinct.size() == expected.distinct.size();
  for (std::size_t i = 0; i < ids.size() && equal; ++i) {
    equal = locals[i] >= 0 && locals[i] < static_cast<std::int64_t>(distinct.size()) &&
            distinct[static_cast<std::size_t>(locals[i])] == ids[i];
  }
  return Wrong(Machine::Current(), equal, "fused map");
}

// --- Aggregation --------------------------------------------------------------------------------

/// Lists, rows and factors.
struct AggregateCase {
  Csr csr;
  std::size_t sources = 0, dim = 0, stride = 0;
  RowType type = RowType::kFloat32;
  std::vector<unsigned char> x;
  std::vector<float> source_scale, edge_weight, target_scale, initial, initial_scale;
};

/// Numbers of many sizes; some are zero, or equal to others.
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

/// Rows of `type` that hold random bits of 16, where NaNs and infinities are rare, or floats.
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
  // The last row has nothing behind its columns.
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

/// Returns lists of which each piece of `long_lists` is one, and the others are as they were.
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

/// Long lists in pieces: as the sum over each piece, added in order, then finished.
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
    for (bool first = true; first || cut.offsets[piece] != c.csr.offsets[t + 1]; first = false) {
      for (std::size_t d = 0; d < c.dim; ++d) {
        const float sum = of_pieces[piece * c.dim + d];
        expected[t * c.dim + d] = first ? sum : expected[t * c.dim + d] + sum;
      }
      ++piece;
      if (cut.offsets[piece] == c.csr.offsets[t + 1]) break;
    }
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

/// The maximum, and its gradient over the transposed lists.
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

  const TurnedCsr turned = Turn(c.csr.view(), c.sources);
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

// --- Attention and activation -------------------------------------------------------------------

inline cuda::Dropout RandomDropout(Random& random) {
  if (random() % 2 == 0) return {};
  const std::uint32_t dropped = random() % 2 == 0 ? 1U << 31 : 1U << 29;
  return {dropped, random() % 2 == 0 ? 2.0F : 1.25F, random(), random() % 1000};
}

/// Lists, rows of heads, and what the forward pass leaves.
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
  // Scores are far enough apart that maxima rise.
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

/// Runs the forward pass on the processor, into the case.
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
  const TurnedCsr turned = Turn(lists.csr.view(), lists.sources);
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
  on_cpu.turned_begins = turned.lists.offsets.data();
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
  args.turned_offsets = Upload("turned offsets", turned.lists.offsets);
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

/// A kernel and its case. Mistakes are named after the case that must show them.
struct KernelCase {
  const char* name;
  std::string (*run)(Random&);
};
inline constexpr KernelCase kKernelCases[] = {
    {"gather", CopyCase},
    {"widening gather", WidenCase},
    {"id map", IdMapCase},
    {"id map", IdMapErrorCase},
    {"three steps", ThreeStepsCase},
    {"fused map", FusedMapCase},
    {"sum", SumCase},
    {"sum", PiecesCase},
    {"max", MaxCase},
    {"shared sums", SharedSumCase},
    {"edge dots", EdgeDotCase},
    {"attention", AttendForwardCase},
    {"attention", AttendGradientCase},
    {"activate", ActivateCase},
};

}  // namespace rhizome::simulator
