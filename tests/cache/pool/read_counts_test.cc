#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rhizome/job_report.h"

namespace rhizome {
namespace {

/// Returns counts that all differ.
MinibatchCosts SomeCosts(std::uint64_t first) {
  MinibatchCosts costs;
  MinibatchCosts::Each(
      [&](const char*, auto& figure) {
        figure = static_cast<std::decay_t<decltype(figure)>>(first++);
      },
      costs);
  return costs;
}

std::vector<double> FiguresOf(const MinibatchCosts& costs) {
  std::vector<double> figures;
  MinibatchCosts::Each(
      [&](const char*, const auto& figure) { figures.push_back(static_cast<double>(figure)); },
      costs);
  return figures;
}

// The size of the struct shows that no field is missing in Each.
TEST(ReadCountsTest, EachVisitsEveryFigureOnce) {
  EXPECT_EQ(FiguresOf(SomeCosts(1)), (std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(sizeof(MinibatchCosts), 11 * sizeof(std::uint64_t));
}

TEST(ReadCountsTest, SumsAddEveryFigure) {
  MinibatchCosts sum = SomeCosts(1);
  sum += SomeCosts(100);
  const std::vector<double> figures = FiguresOf(sum);
  for (std::size_t i = 0; i < figures.size(); ++i)
    EXPECT_EQ(figures[i], static_cast<double>(101 + 2 * i));
  RowReads rest = sum;
  rest -= SomeCosts(100);
  EXPECT_EQ(rest.rows_requested, SomeCosts(1).rows_requested);
  EXPECT_EQ(rest.reads_issued, SomeCosts(1).reads_issued);
}

// Reports list rows read before hits, because hits include prefilled rows, which were read.
TEST(ReadCountsTest, RowsReadComeBeforeHits) {
  const RowReads reads;
  std::vector<std::string> names;
  RowReads::Each([&](const char* name, const auto&) { names.emplace_back(name); }, reads);
  EXPECT_EQ(names, (std::vector<std::string>{"rows_requested", "rows_read", "pool_hits",
                                             "rows_kept", "bytes_read", "reads_issued"}));
}

TEST(ReadCountsTest, HitsAreAShareOfTheRequests) {
  RowReads reads;
  EXPECT_EQ(reads.hit_rate(), 0);
  reads.rows_requested = 4;
  reads.pool_hits = 3;
  EXPECT_EQ(reads.hit_rate(), 0.75);
}

}  // namespace
}  // namespace rhizome
