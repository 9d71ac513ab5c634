#include "tools/output/gauge_text.h"

#include <fmt/format.h>

namespace rhizome {
namespace {

/// Escapes a label value: backslash, quote and line end.
std::string EscapedLabel(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::string GaugeText(std::string_view name, std::string_view help,
                      std::span<const GaugeSample> samples) {
  if (samples.empty()) return {};
  std::string text = fmt::format("# HELP rhizome_{0} {1}\n# TYPE rhizome_{0} gauge\n", name, help);
  for (const GaugeSample& sample : samples) {
    text += fmt::format("rhizome_{}", name);
    char before = '{';
    for (const auto& [label, value] : sample.labels) {
      text += fmt::format("{}{}=\"{}\"", before, label, EscapedLabel(value));
      before = ',';
    }
    // Times in seconds since 1970 have 10 digits.
    text += fmt::format("{} {:.15g}\n", sample.labels.empty() ? "" : "}", sample.value);
  }
  return text;
}

}  // namespace rhizome
