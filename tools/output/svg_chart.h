#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rhizome {

/// A line of a chart: a value for each epoch, the first of number 1.
struct ChartLine {
  enum class Style : std::uint8_t { kFirst, kSecond };
  std::string name = {};  ///< empty: not in the legend
  Style style = Style::kFirst;
  bool other = false;  ///< drawn thinly, behind
  std::vector<std::optional<double>> values = {};
};

struct Chart {
  std::string title;
  std::string unit = {};                     ///< of the values; may be empty
  bool from_zero = false;                    ///< the axis begins at 0
  std::optional<std::uint32_t> marked = {};  ///< an epoch
  std::vector<ChartLine> lines = {};

  /// Whether any line has a value to draw.
  bool has_values() const;
};

/// Most points of a line that are drawn; of more every k-th and the last.
inline constexpr std::size_t kMostChartPoints = 1000;

/// Draws a chart as an <svg> element, for a page that has kStyles. Values that are not finite are
/// left out.
std::string DrawChart(const Chart& chart);

/// Draws charts below each other, two beside each other, as a file .svg of its own.
std::string DrawCharts(std::span<const Chart> charts);

/// Counts [rows, columns], row-major, as an <svg> element: the darker, the larger its share of the
/// row's sum. `row_title`: of the axis of rows, downwards.
struct HeatMap {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint64_t> counts = {};
  std::string title;
  std::string row_title;
  std::string column_title;
  std::string first_label;  ///< of both axes, at their begin and end
  std::string last_label;
  bool upwards = false;  ///< the first row at the bottom
};
std::string DrawHeatMap(const HeatMap& map);

}  // namespace rhizome
