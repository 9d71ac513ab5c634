#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rhizome {

/// A value of a metric, with the labels that distinguish it.
struct GaugeSample {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

/// Formats a gauge in Prometheus' text exposition format 0.0.4, as MetricsText formats the metrics
/// of a running store. `name` is without "rhizome_". Returns an empty string without samples.
std::string GaugeText(std::string_view name, std::string_view help,
                      std::span<const GaugeSample> samples);

}  // namespace rhizome
