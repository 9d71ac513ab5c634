#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {

/// Returns text as HTML and SVG show it, in elements and in quoted attributes: & < > " ' become
/// entities, after ShownText has escaped what controls or hides text.
std::string Escaped(std::string_view text);

/// The styles that pages and pictures share: colours for light and for dark, fonts, lines of charts
/// (svg_chart.h).
extern const char* const kStyles;

/// A table. Cells are text, which is escaped, unless they were added as markup.
class HtmlTable {
 public:
  /// Columns listed in `right` are aligned to the right.
  explicit HtmlTable(std::vector<std::size_t> right = {}) : right_(std::move(right)) {}

  void Head(const std::vector<std::string>& cells) { AddRow("th", cells, {}); }
  void Add(const std::vector<std::string>& cells) { AddRow("td", cells, {}); }

  /// `styles`: of each cell, in CSS; empty: none.
  void Add(const std::vector<std::string>& cells, const std::vector<std::string>& styles) {
    AddRow("td", cells, styles);
  }

  /// `kind`: the class of the element, which tests and readers of the page find it by.
  std::string ToString(std::string_view kind) const;

 private:
  void AddRow(std::string_view tag, const std::vector<std::string>& cells,
              const std::vector<std::string>& styles);

  const std::vector<std::size_t> right_;
  std::string rows_;
};

/// A whole page without scripts, which asks nothing of a network: its Content-Security-Policy
/// forbids it, should anything in it try. `body` is markup.
std::string HtmlPage(std::string_view title, std::string_view body);

}  // namespace rhizome
