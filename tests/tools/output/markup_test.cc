#include "tools/output/markup.h"

#include <gmock/gmock.h>

#include <limits>

#include "tools/output/svg_chart.h"

namespace rhizome {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t Count(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(MarkupTest, WhatMeansSomethingInMarkupIsEscaped) {
  EXPECT_EQ(Escaped("<b a=\"1\" c='2'>&amp;"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
  EXPECT_EQ(Escaped("größe 数 🙂"), "größe 数 🙂");
}

TEST(MarkupTest, WhatControlsOrHidesTextIsEscaped) {
  EXPECT_EQ(Escaped(std::string("a\0b\x1b[2J\x7f<", 9)), "a\\u0000b\\u001b[2J\\u007f&lt;");
  EXPECT_EQ(Escaped("two\nlines \x80 \xE2\x80\xAE"), "two\\nlines \\x80 \\u202e");
}

TEST(MarkupTest, TablesAndPagesEscapeTheirText) {
  HtmlTable table({1});
  table.Head({"<i>", "n"});
  table.Add({"</td>", "2"}, {"", "color: red\" onload=\"x"});
  const std::string text = table.ToString("facts");
  EXPECT_THAT(text, HasSubstr("<th>&lt;i&gt;</th><th class=\"right\">n</th>"));
  EXPECT_THAT(text, HasSubstr("<td>&lt;/td&gt;</td>"));
  EXPECT_THAT(text, Not(HasSubstr("\" onload")));
  const std::string page = HtmlPage("</title><script>", text);
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
}

TEST(SvgChartTest, ALineHasAPointForEachValueThatIsThere) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Chart chart{.title = "a<b", .marked = 2};
  chart.lines.push_back({.name = "one", .values = {1, std::nullopt, 3, nan, 2}});
  const std::string drawn = DrawChart(chart);
  EXPECT_EQ(Count(drawn, "<circle"), 3u);
  EXPECT_EQ(Count(drawn, " L"), 2u);
  EXPECT_THAT(drawn, HasSubstr("a&lt;b"));
  EXPECT_THAT(drawn, Not(HasSubstr("nan")));
  EXPECT_EQ(Count(drawn, "class=\"best\""), 1u);
}

TEST(SvgChartTest, WhatCannotBeDrawnIsLeftOut) {
  Chart chart{.title = "none"};
  EXPECT_EQ(DrawChart(chart), "");
  chart.lines.push_back({.values = {std::nullopt}});
  EXPECT_EQ(DrawChart(chart), "");
  EXPECT_EQ(Count(DrawCharts(std::vector<Chart>{chart}), "<path"), 0u);
  // A chart of one epoch, or of equal values, has a range, too.
  for (const double value : {0.0, 5.0, -1e-30, 1e300}) {
    chart.lines[0].values = {value};
    const std::string drawn = DrawChart(chart);
    EXPECT_EQ(Count(drawn, "<circle"), 1u) << value;
    EXPECT_THAT(drawn, Not(HasSubstr("nan"))) << value;
    EXPECT_THAT(drawn, Not(HasSubstr("inf"))) << value;
    EXPECT_LT(drawn.size(), 10'000u) << value;
  }
}

TEST(SvgChartTest, LongCoursesAreThinned) {
  Chart chart{.title = "long"};
  chart.lines.resize(1);
  for (int i = 0; i < 100'000; ++i)
    chart.lines[0].values.push_back(i % 3 == 0 ? std::optional(i * 1.0) : std::nullopt);
  const std::string drawn = DrawChart(chart);
  EXPECT_LE(Count(drawn, " L"), kMaxChartPoints);
  EXPECT_GE(Count(drawn, " L"), kMaxChartPoints / 2);
}

TEST(SvgChartTest, AHeatMapHasACellForEachCount) {
  const std::string drawn = DrawHeatMap({.rows = 2,
                                         .columns = 2,
                                         .counts = {3, 1, 0, 4},
                                         .title = "map",
                                         .row_title = "row",
                                         .column_title = "column",
                                         .first_label = "0",
                                         .last_label = "1"});
  EXPECT_EQ(Count(drawn, "class=\"heat\""), 3u);
  EXPECT_THAT(drawn, HasSubstr("row 0, column 1: 1"));
  EXPECT_THAT(drawn, HasSubstr("fill-opacity=\"0.775\""));  // three of four
}

}  // namespace
}  // namespace rhizome
