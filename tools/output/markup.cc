#include "tools/output/markup.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/base/escaped_text.h"

namespace rhizome {

std::string Escaped(std::string_view text) {
  std::string made;
  for (const char c : EscapedText(std::string(text))) {
    if (c == '&') {
      made += "&amp;";
    } else if (c == '<') {
      made += "&lt;";
    } else if (c == '>') {
      made += "&gt;";
    } else if (c == '"') {
      made += "&quot;";
    } else if (c == '\'') {
      made += "&#39;";
    } else {
      made += c;
    }
  }
  return made;
}

const char* const kStyles = R"(
:root { color-scheme: light dark; --back: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de;
  --first: #0969da; --second: #bc4c00; --heat: 9 105 218; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14181d; --ink: #e6edf3; --soft: #9aa4af; --line: #39414a;
    --first: #58a6ff; --second: #f0883e; --heat: 88 166 255; } }
text { fill: var(--ink); font: 12px system-ui, sans-serif; }
text.title { font-weight: 600; font-size: 13px; }
text.soft { fill: var(--soft); }
.grid, .axis { stroke: var(--line); stroke-width: 1; }
.best { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 2 3; }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.curve.other { stroke-width: 1; opacity: .35; }
.first { stroke: var(--first); } .second { stroke: var(--second); stroke-dasharray: 6 3; }
.dot { stroke: none; } .dot.first { fill: var(--first); } .dot.second { fill: var(--second); }
.heat { fill: rgb(var(--heat)); } .frame { fill: none; stroke: var(--line); }
)";

void HtmlTable::AddRow(std::string_view tag, const std::vector<std::string>& cells,
                       const std::vector<std::string>& styles) {
  rows_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool right = std::find(right_.begin(), right_.end(), i) != right_.end();
    rows_ += fmt::format("<{}{}", tag, right ? " class=\"right\"" : "");
    if (i < styles.size() && !styles[i].empty())
      rows_ += fmt::format(" style=\"{}\"", Escaped(styles[i]));
    rows_ += fmt::format(">{}</{}>", Escaped(cells[i]), tag);
  }
  rows_ += "</tr>\n";
}

std::string HtmlTable::ToString(std::string_view kind) const {
  return fmt::format("<div class=\"wide\"><table class=\"{}\">\n{}</table></div>\n", kind, rows_);
}

std::string HtmlPage(std::string_view title, std::string_view body) {
  constexpr const char* kPageStyles = R"(
body { background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  margin: 2rem auto; max-width: 76rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.soft, figcaption { color: var(--soft); }
p.stopped { border-left: 4px solid var(--second); padding: .3rem .8rem; }
.charts { display: flex; flex-wrap: wrap; gap: 1.2rem; }
.charts svg, figure svg { flex: 1 1 26rem; max-width: 36rem; width: 100%; height: auto; }
figure { margin: 1rem 0; } .wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .6rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .7rem; text-align: left;
  vertical-align: top; }
th { color: var(--soft); font-weight: 600; } .right { text-align: right; }
table.confusion td { text-align: right; }
)";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      Escaped(title), kStyles, kPageStyles, body);
}

}  // namespace rhizome
