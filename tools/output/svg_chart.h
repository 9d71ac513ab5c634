#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rhizome {

/// A line of a chart: one value per epoch, beginning with epoch 1.
struct ChartLine {
  enum class Style : std::uint8_t { kFirst, kSecond };
  std::string name = {};  ///< empty: not in the legend
  Style style = Style::kFirst;
  bool other = false;  ///< drawn thinly, in the background
  std::vector<std::optional<double>> values = {};
};

struct Chart {
  std::string title;
  std::string unit = {};                     ///< unit of the values; may be empty
  bool from_zero = false;                    ///< the axis begins at 0
  std::optional<std::uint32_t> marked = {};  ///< epoch marked by a vertical line
  std::vector<ChartLine> lines = {};

  /// Returns whether any line has a value to draw.
  bool has_values() const;
};

/// Maximum number of points drawn per line; of a longer line only every k-th point and the last are
/// drawn.
inline constexpr std::size_t kMaxChartPoints = 1000;

/// Draws a chart as an <svg> element for a page that includes kStyles. Values that are not finite
/// are omitted.
std::string DrawChart(const Chart& chart);

/// Draws charts in two columns as a self-contained .svg file.
std::string DrawCharts(std::span<const Chart> charts);

/// A matrix of counts [rows, columns], row-major, drawn as an <svg> element. A cell is the darker
/// the larger its share of the sum of its row. `row_title` labels the vertical axis.
struct HeatMap {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint64_t> counts = {};
  std::string title;
  std::string row_title;
  std::string column_title;
  std::string first_label;  ///< labels of the first and last entry of both axes
  std::string last_label;
  bool upwards = false;  ///< the first row at the bottom
};
std::string DrawHeatMap(const HeatMap& map);

}  // namespace rhizome
