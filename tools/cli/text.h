#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {

/// Texts for people: numbers in words, tables. Pure functions of their arguments.

std::string WithCommas(std::uint64_t number);  ///< "117,659"
std::string HumanCount(double number);         ///< "1.2 M"
std::string HumanBytes(std::uint64_t bytes);   ///< "12.3 MiB"
std::string HumanSeconds(double seconds);      ///< "0.12 s", "2 min 5 s"
std::string HumanClock(double seconds);        ///< "0:12", "1:02:03"
std::string Percent(double share);             ///< "64.5 %"

/// "1 file", "3 files".
std::string Plural(std::uint64_t count, std::string_view noun);

/// Columns on a terminal: code points, which is right for the scripts that ids mostly have.
std::size_t DisplayWidth(std::string_view utf8);

/// At most `columns` wide, never cutting a code point in two.
std::string Shorten(std::string_view utf8, std::size_t columns);

/// Rows of cells, laid out in columns with two spaces between them. Columns named in `right` are
/// aligned to the right; trailing blanks are dropped.
class TextTable {
 public:
  explicit TextTable(std::vector<std::size_t> right = {}) : right_(std::move(right)) {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// Every line begins with `indent` and ends with a newline.
  std::string ToString(std::string_view indent = "  ") const;

 private:
  std::vector<std::size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rhizome
