#include "cache/kernels/product_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "cache/kernels/simd.h"
#include "testing/testing.h"

// Tests of the matrix product kernels: in every SIMD path, each output has the bits of a plain loop
// of fused multiply-adds.

namespace rhizome {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Rows of a wider table.
struct ProductCase {
  std::size_t count = 0, columns = 0, outputs = 0;
  std::size_t stride = 0;
  std::vector<float> table = {};
  std::vector<std::uint32_t> place = {};  // empty: rows in table order

  ProductRows rows() const {
    return {.x = table.data(),
            .stride = stride,
            .columns = columns,
            .place = place.empty() ? nullptr : place.data()};
  }
  float At(std::size_t row, std::size_t column) const {
    return table[(place.empty() ? row : place[row]) * stride + column];
  }
};

class ProductKernelsTest : public ::testing::Test {
 protected:
  std::vector<float> Numbers(std::size_t count) {
    std::normal_distribution<float> normal;
    std::vector<float> numbers(count);
    for (float& number : numbers) number = normal(random_);
    return numbers;
  }

  /// Returns a case of random shape; one in twenty is large. Table columns beyond a row's are NaN.
  ProductCase Draw() {
    constexpr std::size_t kSizes[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 48, 64, 100};
    const auto size = [&] { return kSizes[random_() % std::size(kSizes)]; };
    ProductCase c;
    c.count = 1 + random_() % 40;
    const bool large = random_() % 20 == 0;  // more weights than are read at once
    c.columns = large ? 400 + random_() % 600 : size();
    c.outputs = large ? 250 + random_() % 200 : size();
    c.stride = c.columns + random_() % 3;
    const std::size_t table_rows = c.count + random_() % 20;
    c.table = Numbers(table_rows * c.stride);
    for (std::size_t row = 0; row < table_rows; ++row)
      for (std::size_t k = c.columns; k < c.stride; ++k) c.table[row * c.stride + k] = kNaN;
    if (random_() % 2 == 0) return c;
    for (std::size_t i = 0; i < c.count; ++i)
      c.place.push_back(static_cast<std::uint32_t>(random_() % table_rows));
    return c;
  }

  std::mt19937_64 random_{testing::TestSeed()};
};

/// Returns the index of weight [o, k] in panels.
std::size_t InPanels(std::size_t o, std::size_t k, std::size_t columns) {
  return (o / kPanel * columns + k) * kPanel + o % kPanel;
}

TEST_F(ProductKernelsTest, ProductsAreSumsInTheOrderOfColumns) {
  for (int round = 0; round < 200; ++round) {
    const ProductCase c = Draw();
    const std::vector<float> weight = Numbers(c.outputs * c.columns);
    const std::vector<float> bias = Numbers(c.outputs);
    const bool biased = random_() % 2 == 0;
    std::vector<float> panels(PanelsOf(c.outputs) * c.columns * kPanel, kNaN);
    for (std::size_t o = 0; o < c.outputs; ++o)
      for (std::size_t k = 0; k < c.columns; ++k)
        panels[InPanels(o, k, c.columns)] = weight[o * c.columns + k];
    const std::size_t begin = random_() % c.count;
    const std::size_t end = begin + random_() % (c.count - begin + 1);
    const std::size_t stride = c.outputs + random_() % 3;
    for (const SimdPath path : AvailableSimdPaths()) {
      std::vector<float> out(c.count * stride, 7.0F);
      ProductsOf(path).multiply({.rows = c.rows(),
                                 .panels = panels.data(),
                                 .bias = biased ? bias.data() : nullptr,
                                 .outputs = c.outputs,
                                 .out = out.data(),
                                 .out_stride = stride},
                                begin, end);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t row = i / stride, o = i % stride;
        float expected = 7.0F;  // outputs outside the request are unchanged
        if (row >= begin && row < end && o < c.outputs) {
          expected = 0;
          for (std::size_t k = 0; k < c.columns; ++k)
            expected = std::fma(c.At(row, k), weight[o * c.columns + k], expected);
          if (biased) expected += bias[o];
        }
        ASSERT_EQ(out[i], expected) << SimdPathName(path) << ", row " << row << " output " << o;
      }
    }
  }
}

TEST_F(ProductKernelsTest, GradientsAreSumsInTheOrderOfRows) {
  for (int round = 0; round < 200; ++round) {
    const ProductCase c = Draw();
    const std::vector<float> gradient = Numbers(c.count * c.outputs);
    const std::size_t begin = random_() % c.count;
    const std::size_t end = begin + 1 + random_() % (c.count - begin);
    const bool keep = random_() % 2 == 0;
    const std::vector<float> before = Numbers(PanelsOf(c.outputs) * c.columns * kPanel);
    for (const SimdPath path : AvailableSimdPaths()) {
      std::vector<float> sum = before;
      ProductsOf(path).gradient({.rows = c.rows(),
                                 .gradient = gradient.data(),
                                 .outputs = c.outputs,
                                 .keep = keep,
                                 .sum = sum.data()},
                                begin, end);
      for (std::size_t o = 0; o < c.outputs; ++o) {
        for (std::size_t k = 0; k < c.columns; ++k) {
          const std::size_t at = InPanels(o, k, c.columns);
          float expected = keep ? before[at] : 0;
          for (std::size_t i = begin; i < end; ++i)
            expected = std::fma(c.At(i, k), gradient[i * c.outputs + o], expected);
          ASSERT_EQ(sum[at], expected) << SimdPathName(path) << ", weight " << o << " of " << k;
        }
      }
    }
  }
}

// An infinite input affects only the products of its row.
TEST_F(ProductKernelsTest, WhatIsNotFiniteStaysInItsRow) {
  constexpr std::size_t kRows = 19, kColumns = 5, kOutputs = 3;
  std::vector<float> panels(kColumns * kPanel, 1.0F);
  for (std::size_t bad = 0; bad < kRows; ++bad) {
    std::vector<float> table(kRows * kColumns, 1.0F);
    table[bad * kColumns + 2] = std::numeric_limits<float>::infinity();
    for (const SimdPath path : AvailableSimdPaths()) {
      std::vector<float> out(kRows * kOutputs);
      ProductsOf(path).multiply({.rows = {table.data(), kColumns, kColumns, nullptr},
                                 .panels = panels.data(),
                                 .outputs = kOutputs,
                                 .out = out.data(),
                                 .out_stride = kOutputs},
                                0, kRows);
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(std::isinf(out[i]), i / kOutputs == bad) << SimdPathName(path) << " " << i;
    }
  }
}

}  // namespace
}  // namespace rhizome
