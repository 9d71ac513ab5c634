#include "index/base/edge_list.h"

#include <array>
#include <cstdint>

#include "testing/testing.h"

namespace rhizome {
namespace {

EdgeAttribute PairsOfEdges(std::int64_t edges) {
  EdgeAttribute column("pair", DataType::kInt64, 2);
  for (std::int64_t i = 0; i < 2 * edges; ++i) column.Add(i);
  return column;
}

TEST(EdgeAttributeTest, TakesEdgesOfColumnsOfItsWidth) {
  const EdgeAttribute pairs = PairsOfEdges(3);
  EdgeAttribute out = pairs.Empty();
  EXPECT_OK(out.AddFrom(pairs, 2));
  EXPECT_EQ(out.size(), 1U);
  EXPECT_EQ(out.AddFrom(pairs, 3).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(out.AddFrom(pairs, ~std::size_t{0}).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(out.AddFrom(EdgeAttribute("one"), 0).code(), StatusCode::kInvalidArgument);
  EdgeAttribute nothing("none", DataType::kInt64, 0);
  EXPECT_EQ(nothing.AddFrom(nothing, 0).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(out.size(), 1U);
}

TEST(EdgeAttributeTest, TakesWholeValuesOnly) {
  EdgeAttribute out("pair", DataType::kInt64, 2);
  const std::array<std::int64_t, 3> values = {1, 2, 3};
  const auto bytes = std::as_bytes(std::span(values));
  EXPECT_EQ(out.AddBytes(DataType::kInt64, bytes.first(12)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(out.AddBytes(DataType::kUint8, bytes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(out.value_count(), 0U);
  EXPECT_OK(out.AddBytes(DataType::kInt64, bytes));
  EXPECT_EQ(out.value_count(), 3U);
  EXPECT_OK(out.AddBytes(DataType::kFloat32, bytes.first(4)));
  EXPECT_EQ(out.dtype(), DataType::kFloat32);
  EXPECT_EQ(out.value_count(), 4U);
}

}  // namespace
}  // namespace rhizome
