#pragma once

#include <cstring>

#include "cache/kernels/simd.h"
#include "cuda/case_tools.h"
#include "cuda/gather.cuh"

namespace rhizome::simulator {

struct GatherCase {
  std::size_t row_bytes = 0;
  std::size_t table_rows = 0, out_rows = 0;
  std::size_t table_stride = 0, out_stride = 0;
  std::vector<unsigned char> table, out;
  std::vector<std::int64_t> rows, place;
};

/// `widening`: the factor by which rows grow. `element`: sizes are multiples of it.
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

/// Computes the expected output and flag. `widen` writes a row in the form of the output.
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

}  // namespace rhizome::simulator
