#include "tools/output/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/output/markup.h"

namespace rhizome {
namespace {

// Dimensions of a chart, in SVG units; the plot is inside the margins.
constexpr double kWidth = 560, kHeight = 260;
constexpr double kLeft = 62, kRight = 14, kTop = 44, kBottom = 34;

struct Range {
  double low = 0;
  double high = 1;
  double step = 1;  // between two ticks
};

/// Returns a round number near `rough`: 1, 2 or 5 times a power of ten.
double RoundStep(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

/// Returns a range for an axis whose ends are ticks.
Range RangeOf(double low, double high, int ticks) {
  if (!(high > low)) {
    const double around = std::max(std::abs(low) / 10, 1e-9);
    low -= around;
    high += around;
  }
  const double step = RoundStep((high - low) / ticks);
  return {std::floor(low / step) * step, std::ceil(high / step) * step, step};
}

Range ValueRange(const Chart& chart) {
  double low = chart.from_zero ? 0 : std::numeric_limits<double>::infinity();
  double high = chart.from_zero ? 0 : -std::numeric_limits<double>::infinity();
  for (const ChartLine& line : chart.lines) {
    for (const std::optional<double>& value : line.values) {
      if (!value || !std::isfinite(*value)) continue;
      low = std::min(low, *value);
      high = std::max(high, *value);
    }
  }
  Range range = RangeOf(low, high, 5);
  if (chart.from_zero) range.low = 0;
  return range;
}

std::size_t EpochsOf(const Chart& chart) {
  std::size_t epochs = 0;
  for (const ChartLine& line : chart.lines) epochs = std::max(epochs, line.values.size());
  return epochs;
}

/// Maps epochs and values to coordinates.
struct Scale {
  Range values;
  double epochs;  // the last one

  double X(double epoch) const {
    const double share = epochs > 1 ? (epoch - 1) / (epochs - 1) : 0.5;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double Y(double value) const {
    const double share = (value - values.low) / (values.high - values.low);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }
};

std::string Text(double x, double y, std::string_view anchor, std::string_view kind,
                 std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                     x, y, anchor, kind, Escaped(text));
}

std::string Line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2,
      y2, kind);
}

std::string DrawAxes(const Scale& scale) {
  std::string drawn;
  const Range& values = scale.values;
  const auto ticks = static_cast<int>(std::lround((values.high - values.low) / values.step));
  for (int i = 0; i <= ticks; ++i) {
    double value = values.low + i * values.step;
    if (std::abs(value) < values.step * 1e-9) value = 0;
    drawn += Line(kLeft, scale.Y(value), kWidth - kRight, scale.Y(value), "grid");
    drawn += Text(kLeft - 6, scale.Y(value) + 4, "end", "soft", fmt::format("{:.6g}", value));
  }
  const double step = std::max(1.0, RoundStep(std::max(scale.epochs - 1, 1.0) / 6));
  double last = -step;
  for (double epoch = 1; epoch <= scale.epochs;
       epoch = last == 1 ? std::max(step, 2.0) : last + step) {
    drawn += Text(scale.X(epoch), kHeight - kBottom + 16, "middle", "soft",
                  fmt::format("{:.0f}", epoch));
    last = epoch;
  }
  return drawn + Text(kWidth - kRight, kHeight - 4, "end", "soft", "epoch");
}

const char* StyleName(ChartLine::Style style) {
  return style == ChartLine::Style::kFirst ? "first" : "second";
}

std::string DrawLine(const ChartLine& line, const Scale& scale) {
  constexpr std::size_t kMaxDots = 60;
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < line.values.size(); ++i)
    if (line.values[i] && std::isfinite(*line.values[i])) known.push_back(i);
  if (known.empty()) return "";
  const std::size_t stride = (known.size() + kMaxChartPoints - 1) / kMaxChartPoints;
  std::string path, dots;
  std::size_t points = 0;
  for (std::size_t k = 0; k < known.size(); ++k) {
    if (k % stride != 0 && k + 1 != known.size()) continue;
    const double value = *line.values[known[k]];
    const double x = scale.X(static_cast<double>(known[k] + 1)), y = scale.Y(value);
    path += fmt::format("{}{:.1f} {:.1f}", points == 0 ? "M" : " L", x, y);
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" class=\"dot {}\"><title>{}</title>"
        "</circle>\n",
        x, y, StyleName(line.style),
        Escaped(fmt::format("{}, epoch {}: {:.6g}", line.name, known[k] + 1, value)));
    ++points;
  }
  const std::string drawn = fmt::format("<path d=\"{}\" class=\"curve {}{}\"/>\n", path,
                                        StyleName(line.style), line.other ? " other" : "");
  return line.other || points > kMaxDots ? drawn : drawn + dots;
}

std::string DrawLegend(const Chart& chart) {
  std::string drawn;
  double x = kLeft;
  for (const ChartLine& line : chart.lines) {
    if (line.name.empty() || line.other) continue;
    drawn +=
        fmt::format("<line x1=\"{:.1f}\" y1=\"32\" x2=\"{:.1f}\" y2=\"32\" class=\"curve {}\"/>\n",
                    x, x + 22, StyleName(line.style));
    drawn += Text(x + 28, 36, "start", "soft", line.name);
    x += 46 + 6.5 * static_cast<double>(line.name.size());
  }
  return drawn;
}

/// Draws the content of a chart, without the surrounding <svg> element: title, axes, the marked
/// epoch, lines and legend.
std::string DrawInside(const Chart& chart) {
  const Scale scale{.values = ValueRange(chart), .epochs = static_cast<double>(EpochsOf(chart))};
  const std::string unit = chart.unit.empty() ? "" : fmt::format(" ({})", chart.unit);
  std::string drawn = Text(kLeft, 16, "start", "title", chart.title + unit);
  drawn += DrawAxes(scale);
  if (chart.marked) {
    const double x = scale.X(*chart.marked);
    drawn += Line(x, kTop, x, kHeight - kBottom, "best");
  }
  for (const bool other : {true, false})
    for (const ChartLine& line : chart.lines)
      if (line.other == other) drawn += DrawLine(line, scale);
  return drawn + DrawLegend(chart);
}

}  // namespace

bool Chart::has_values() const {
  for (const ChartLine& line : lines)
    for (const std::optional<double>& value : line.values)
      if (value && std::isfinite(*value)) return true;
  return false;
}

std::string DrawChart(const Chart& chart) {
  if (!chart.has_values()) return "";
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" class=\"chart\">\n{}</svg>\n",
      kWidth, kHeight, Escaped(chart.title), DrawInside(chart));
}

std::string DrawCharts(std::span<const Chart> charts) {
  std::string drawn;
  std::size_t count = 0;
  for (const Chart& chart : charts) {
    if (!chart.has_values()) continue;
    drawn += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n",
                         kWidth * static_cast<double>(count % 2),
                         (kHeight + 12) * static_cast<double>(count / 2), DrawInside(chart));
    ++count;
  }
  const double width = kWidth * (count > 1 ? 2 : 1);
  const double height = (kHeight + 12) * static_cast<double>((count + 1) / 2);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n<style>{2}</style>\n<rect width=\"{0}\" height=\"{1}\" style=\"fill: "
      "var(--back)\"/>\n{3}</svg>\n",
      width, height, kStyles, drawn);
}

std::string DrawHeatMap(const HeatMap& map) {
  constexpr double kSide = 420, kMargin = 56;
  const double cell_width = kSide / static_cast<double>(map.columns);
  const double cell_height = kSide / static_cast<double>(map.rows);
  std::string drawn = Text(kMargin, 16, "start", "title", map.title);
  for (std::size_t r = 0; r < map.rows; ++r) {
    std::uint64_t sum = 0;
    for (std::size_t c = 0; c < map.columns; ++c) sum += map.counts[r * map.columns + c];
    const std::size_t place = map.upwards ? map.rows - 1 - r : r;
    for (std::size_t c = 0; c < map.columns; ++c) {
      const std::uint64_t count = map.counts[r * map.columns + c];
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(sum);
      drawn += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" class=\"heat\" "
          "fill-opacity=\"{:.3f}\"><title>{}</title></rect>\n",
          kMargin + cell_width * static_cast<double>(c),
          28 + cell_height * static_cast<double>(place), cell_width, cell_height, 0.1 + 0.9 * share,
          Escaped(fmt::format("{} {}, {} {}: {}", map.row_title, r, map.column_title, c, count)));
    }
  }
  drawn += fmt::format("<rect x=\"{}\" y=\"28\" width=\"{}\" height=\"{}\" class=\"frame\"/>\n",
                       kMargin, kSide, kSide);
  const double bottom = 28 + kSide;
  drawn += Text(kMargin, bottom + 16, "start", "soft", map.first_label);
  drawn += Text(kMargin + kSide, bottom + 16, "end", "soft", map.last_label);
  drawn += Text(kMargin + kSide / 2, bottom + 16, "middle", "", map.column_title);
  const std::string& top_label = map.upwards ? map.last_label : map.first_label;
  const std::string& low_label = map.upwards ? map.first_label : map.last_label;
  drawn += Text(kMargin - 6, 38, "end", "soft", top_label);
  drawn += Text(kMargin - 6, bottom, "end", "soft", low_label);
  drawn += fmt::format("<g transform=\"translate({} {}) rotate(-90)\">{}</g>\n", kMargin - 10,
                       28 + kSide / 2, Text(0, 0, "middle", "", map.row_title));
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" class=\"heatmap\">\n{}</svg>\n",
      kMargin + kSide + 12, bottom + 24, Escaped(map.title), drawn);
}

}  // namespace rhizome
