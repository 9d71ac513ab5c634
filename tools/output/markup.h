#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {

/// Escapes text for elements and quoted attributes of HTML and SVG: EscapedText first escapes
/// characters that control or hide text, then & < > " ' become entities.
std::string Escaped(std::string_view text);

/// CSS shared by pages and charts: colours for light and dark mode, fonts, lines of charts
/// (svg_chart.h).
extern const char* const kStyles;

/// An HTML table. Cells are text, which is escaped.
class HtmlTable {
 public:
  /// The columns whose indexes are listed in `right` are right-aligned.
  explicit HtmlTable(std::vector<std::size_t> right = {}) : right_(std::move(right)) {}

  void Head(const std::vector<std::string>& cells) { AddRow("th", cells, {}); }
  void Add(const std::vector<std::string>& cells) { AddRow("td", cells, {}); }

  /// `styles`: the CSS of each cell; an empty string: none.
  void Add(const std::vector<std::string>& cells, const std::vector<std::string>& styles) {
    AddRow("td", cells, styles);
  }

  /// `kind`: the class attribute of the element, by which tests and readers of the page find it.
  std::string ToString(std::string_view kind) const;

 private:
  void AddRow(std::string_view tag, const std::vector<std::string>& cells,
              const std::vector<std::string>& styles);

  const std::vector<std::size_t> right_;
  std::string rows_;
};

/// Returns a complete page without scripts. It loads no external resources, and its
/// Content-Security-Policy forbids any. `body` is markup.
std::string HtmlPage(std::string_view title, std::string_view body);

}  // namespace rhizome
