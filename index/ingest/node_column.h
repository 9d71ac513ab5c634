#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "index/base/value_list.h"
#include "index/generation/graph_builder.h"
#include "index/ingest/text_column.h"
#include "index/input/value_column.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Parses a split, as a word or a number: 0 train, 1 valid (or val), 2 test, 255 none.
std::optional<std::uint8_t> ParseSplit(std::string_view text);

/// Parses several splits, one letter each: t train, v valid, e test, n none. Returns nullopt if
/// there are fewer than two letters, or another letter.
std::optional<std::vector<std::uint8_t>> ParseSplitLetters(std::string_view text);

/// One column of a nodes file that becomes an array, with dim 1 except for split letters. Labels
/// are int64 and splits uint8. Any other column has the type of its values (ValueColumn), or uint8
/// for split words, or for split letters, with an array column for each letter. A column with any
/// other value, also one of labels, becomes texts, if the values before it are integers, nulls or
/// splits, which become the texts that they were.
/// Stage checks a value; Keep adds it once the rest of its line is valid.
/// Threads: one at a time.
class NodeColumn {
 public:
  enum class Kind : std::uint8_t { kLabel, kSplit, kText, kOther };
  /// `type` is the type that the user gives the column; int64 or text for labels.
  NodeColumn(std::string name, Kind kind, std::optional<GivenType> type = {});

  /// Returns the reason why `field` does not fit, or nullopt if it does.
  std::optional<std::string> Stage(std::string_view field);

  /// Adds the staged value. Returns whether the column, which had other values, has now become
  /// texts.
  bool Keep();

  const std::string& name() const { return name_; }

  /// Returns ValueColumn::Notes, if the column has such values.
  std::vector<std::string> Notes() const;
  std::uint64_t memory_bytes() const;

  /// Returns an array of the values: value i goes to vertices[i]; the other vertices get the value
  /// for "none" (FillMissingRows). Consumes the column. The caller sets layout and codec.
  ArrayInput ToArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) &&;

 private:
  std::optional<std::string> StageLabel(std::string_view field);
  std::optional<std::string> StageOther(std::string_view field);
  std::optional<std::string> StageText(std::string_view field);
  std::optional<std::string> StageValue(std::string_view field);
  bool BecomeTexts();
  std::string SplitText(std::size_t value) const;
  std::optional<std::string> StageLetters(std::string_view field);
  ArrayInput SplitArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) &&;

  std::string name_;
  Kind kind_;
  bool typed_;             // the user gave a type
  bool is_split_ = false;  // words_ has the values: splits
  bool is_empty_ = true;   // no value was kept
  std::int64_t staged_label_ = 0;
  ValueColumn inferred_;
  ValueList values_;                        // labels, or values of a kOther column
  std::vector<std::uint8_t> words_;         // letters: values [values, letters_]; else split words
  std::vector<std::uint8_t> staged_words_;  // one value of words_
  std::size_t letters_ = 0;                 // splits in a value; 0: not a column of split letters
  std::optional<TextColumn> texts_;         // set once the column has texts
  std::optional<std::string> staged_text_;
  // By number of the value: the nulls that were not empty, while the column may become texts.
  std::vector<std::pair<std::uint64_t, std::string>> null_words_;
  std::string staged_null_word_;
};

/// Returns an array of `values` [vertices, dim] by vertex id.
template <typename T>
ArrayInput ColumnArray(std::string name, DataType dtype, std::vector<T> values,
                       std::size_t dim = 1);

}  // namespace internal
}  // namespace rhizome
