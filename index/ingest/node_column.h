#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/ingest/text_column.h"
#include "index/input/number.h"
#include "rhizome/types.h"

namespace rhizome {
inline namespace internal {

/// Parses a split, as a word or a number: 0 train, 1 valid (or val), 2 test, 255 none.
std::optional<std::uint8_t> ParseSplit(std::string_view text);

/// Parses several splits, one letter each: t train, v valid, e test, n none. Returns nullopt if
/// there are fewer than two letters, or another letter.
std::optional<std::vector<std::uint8_t>> ParseSplitLetters(std::string_view text);

/// One column of a nodes file that becomes an array, with dim 1 except for split letters. Labels
/// are int64 and splits uint8. Any other column has the type of its values: int64, otherwise
/// float32, or uint8 for split words, or for split letters, with an array column for each letter. A
/// column of labels or integers with any other text becomes codes of texts.
/// Stage checks a value; Keep adds it once the rest of its line is valid.
/// Threads: one at a time.
class NodeColumn {
 public:
  enum class Kind : std::uint8_t { kLabel, kSplit, kText, kOther };
  NodeColumn(std::string name, Kind kind);

  /// Returns the reason why `field` does not fit, or nullopt if it does.
  std::optional<std::string> Stage(std::string_view field);
  void Keep();

  const std::string& name() const { return name_; }
  std::uint64_t memory_bytes() const;

  /// Returns the number of integers before the first other text of a column that became texts; 0 for
  /// any other column.
  std::uint64_t integers_before_texts() const { return integers_before_texts_; }

  /// Returns an array of the values: value i goes to vertices[i]; the other vertices get the value
  /// for "none" (label -1, split 255, otherwise 0). Consumes the column. The caller sets layout and
  /// codec.
  ArrayInput ToArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) &&;

 private:
  std::optional<std::string> StageLabel(std::string_view field);
  std::optional<std::string> StageOther(std::string_view field);
  std::optional<std::string> StageText(std::string_view field);
  void BecomeTexts();
  std::optional<std::string> StageLetters(std::string_view field);

  std::string name_;
  Kind kind_;
  DataType dtype_;  // kInvalid until the first value of a kOther column
  std::int64_t staged_integer_ = 0;
  bool staged_is_integer_ = false;
  float staged_float_ = 0;
  DataType staged_ = DataType::kInvalid;
  NumberColumn numbers_;
  std::vector<std::int64_t> integers_;  // only the vector for dtype_ is filled
  std::vector<float> floats_;
  std::vector<std::uint8_t> words_;         // [values, letters_]
  std::vector<std::uint8_t> staged_words_;  // one value of words_
  std::size_t letters_ = 0;                 // splits in a value; 0: not a column of split letters
  std::optional<TextColumn> texts_;         // set once the column holds texts
  std::string staged_text_;
  bool stages_text_ = false;
  std::uint64_t integers_before_texts_ = 0;
};

/// Returns an array of `values` [vertices, dim] by vertex id.
template <typename T>
ArrayInput ColumnArray(std::string name, DataType dtype, std::vector<T> values,
                       std::size_t dim = 1);

}  // namespace internal
}  // namespace rhizome
