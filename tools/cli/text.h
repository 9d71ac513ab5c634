#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rhizome {

/// Formatting of numbers and tables for people. All functions are pure.

std::string WithCommas(std::uint64_t number);  ///< "117,659"
std::string HumanCount(double number);         ///< "1.2 M"
std::string HumanBytes(std::uint64_t bytes);   ///< "12.3 MiB"
std::string HumanSeconds(double seconds);      ///< "0.12 s", "2 min 5 s"
std::string HumanClock(double seconds);        ///< "0:12", "1:02:03"
std::string Percent(double share);             ///< "64.5 %"

/// Returns "1 file", "3 files".
std::string Plural(std::uint64_t count, std::string_view noun);

/// Returns a word as a shell reads it: quoted, if it needs that.
std::string ShellWord(std::string_view word);

/// Returns the number of terminal columns that `utf8` occupies. Counts one column per code point,
/// which is right for most scripts used in ids.
std::size_t DisplayWidth(std::string_view utf8);

/// Cuts text to at most `columns` columns, never inside a code point.
std::string Shorten(std::string_view utf8, std::size_t columns);

/// A table of text cells, printed in columns with two spaces between them. The columns whose
/// indexes are listed in `right` are right-aligned. Trailing blanks are dropped.
class TextTable {
 public:
  explicit TextTable(std::vector<std::size_t> right = {}) : right_(std::move(right)) {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  /// Returns the table as text. Every line begins with `indent` and ends with a newline.
  std::string ToString(std::string_view indent = "  ") const;

 private:
  std::vector<std::size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace rhizome
