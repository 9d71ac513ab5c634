#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "cache/kernels/attention_testing.h"
#include "cache/kernels/gather_kernels.h"
#include "cache/kernels/simd.h"
#include "storage/base/mix.h"
#include "testing/testing.h"

namespace rhizome::testing {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Returns random ascending lists with parallel edges, empty lists, and one list of `hub` edges.
inline Csr AscendingLists(std::size_t targets, std::size_t sources, std::size_t hub,
                          std::mt19937_64& random) {
  Csr csr;
  for (std::size_t t = 0; t < targets; ++t) {
    const std::size_t degree = t == targets / 2 ? hub : t % 5 == 3 ? 0 : random() % 30;
    std::vector<std::uint32_t> list;
    for (std::size_t i = 0; i < degree; ++i)
      list.push_back(static_cast<std::uint32_t>(random() % sources));
    std::sort(list.begin(), list.end());
    csr.neighbors.insert(csr.neighbors.end(), list.begin(), list.end());
    csr.offsets.push_back(static_cast<std::uint32_t>(csr.neighbors.size()));
  }
  return csr;
}

/// Source rows and the lists of targets over them.
struct GatherCase {
  Csr csr;
  std::size_t sources = 60;
  std::size_t stride = 0;
  std::vector<float> x;

  std::size_t targets() const { return csr.offsets.size() - 1; }

  /// Divides the rows into `windows` windows and calls use(rows) for each; its lists have the edges
  /// whose sources are in the window.
  template <typename Use>
  void InWindows(std::size_t windows, const Use& use) const {
    std::vector<std::uint32_t> begins(csr.offsets.begin(), csr.offsets.end() - 1);
    std::vector<std::uint32_t> ends = begins;
    for (std::size_t w = 1; w <= windows; ++w) {
      const std::size_t last = sources * w / windows;
      for (std::size_t t = 0; t < targets(); ++t) {
        begins[t] = ends[t];
        while (ends[t] < csr.offsets[t + 1] && csr.neighbors[ends[t]] < last) ++ends[t];
      }
      use(GatherRows{.x = x.data(),
                     .stride = stride,
                     .begins = begins.data(),
                     .ends = ends.data(),
                     .index = csr.neighbors.data(),
                     .index_end = static_cast<std::uint32_t>(csr.neighbors.size())});
    }
  }
};

inline GatherCase MakeGather(std::size_t stride, float spread, std::mt19937_64& random) {
  GatherCase c;
  c.csr = AscendingLists(20, c.sources, 300, random);
  c.stride = stride;
  c.x = RandomFloats(c.sources * stride, spread, random);
  return c;
}

/// Computes the state in every SIMD path with several numbers of windows, and expects the same
/// bits. `run` adds the rows of a window to a state. Returns the state.
template <typename Run>
std::vector<float> InEverySet(const GatherCase& c, const std::vector<float>& begin,
                              const Run& run) {
  std::vector<float> first;
  for (const SimdPath path : AvailableSimdPaths()) {
    for (const std::size_t windows : {1U, 2U, 7U, 60U}) {
      std::vector<float> state = begin;
      c.InWindows(windows,
                  [&](const GatherRows& rows) { run(GathersOf(path), rows, state.data()); });
      if (first.empty()) first = state;
      EXPECT_EQ(std::memcmp(state.data(), first.data(), state.size() * sizeof(float)), 0)
          << SimdPathName(path) << ", " << windows << " windows";
    }
  }
  return first;
}

/// Reference implementation of ActivationDraw (attention_kernels.h).
inline std::uint32_t ActivationDrawOf(std::uint64_t seed, std::uint64_t row, std::uint32_t column) {
  const auto mixed = [](std::uint32_t x) {
    x = (x ^ (x >> 16)) * kMixA;
    x = (x ^ (x >> 15)) * kMixB;
    return x ^ (x >> 16);
  };
  const std::uint64_t key = SplitMix64(seed, row);
  const std::uint32_t x = mixed(column * kColumnStep + static_cast<std::uint32_t>(key));
  return mixed(x + static_cast<std::uint32_t>(key >> 32));
}

/// The dropout of an attention, and the row numbers from which its random numbers are derived.
struct DropCase {
  GatherDropout dropout;
  std::vector<std::uint32_t> numbers;  // of the rows of x
  std::uint64_t first = 40;            // of the first target, in the same numbering

  GatherNumbers Numbers() const { return {.of_rows = numbers.data(), .first = first}; }

  /// Returns the dropout factor of edge `e` (index over all lists) of target `t`. `back`: backward
  /// pass, in which the list of a source holds its targets.
  double FactorOf(const GatherCase& c, std::size_t t, std::uint32_t e, std::size_t heads,
                  std::size_t head, bool back) const {
    if (dropout.dropped == 0) return 1;
    std::size_t before = 0;
    for (std::uint32_t d = c.csr.offsets[t]; d < e; ++d)
      before += c.csr.neighbors[d] == c.csr.neighbors[e];
    std::uint64_t target = first + t, source = numbers[c.csr.neighbors[e]];
    if (back) std::swap(target, source);
    const std::uint32_t draw =
        ActivationDrawOf(SplitMix64(dropout.seed, target), source,
                         static_cast<std::uint32_t>((before + 1) * heads + head));
    return draw < dropout.dropped ? 0 : dropout.scale;
  }
};

/// Returns a case without dropout and one that drops a share of the weights.
inline std::vector<DropCase> DropCases(const GatherCase& c, std::mt19937_64& random) {
  DropCase some{.dropout = {.dropped = 0x60000000U, .scale = 1.6F, .seed = random()},
                .numbers = std::vector<std::uint32_t>(c.sources)};
  std::iota(some.numbers.begin(), some.numbers.end(), 3);
  return {{}, some};
}

}  // namespace rhizome::testing
