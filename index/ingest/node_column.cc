// A column of the nodes file. Stage parses a field: a label, a split, a value of a type that
// ValueColumn infers, or a text. Keep appends the staged value; the first text turns the values
// before it into texts (BecomeTexts). ToArray moves the values to the order of vertex ids.

#include "index/ingest/node_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "index/ingest/array_file.h"
#include "index/input/convert.h"
#include "index/input/number.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_rules.h"
#include "storage/base/check.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint8_t kNoSplit = 255;
constexpr std::int64_t kNoLabel = -1;

/// Moves values, `dim` for each line, from the order of lines to the order of vertex ids.
template <typename T>
std::vector<T> Scatter(std::span<const T> values, std::span<const VertexId> vertices,
                       std::uint64_t vertex_count, T fill, std::size_t dim = 1) {
  std::vector<T> rows(vertex_count * dim, fill);
  for (std::size_t i = 0; i < values.size(); ++i)
    rows[static_cast<std::size_t>(vertices[i / dim]) * dim + i % dim] = values[i];
  return rows;
}

}  // namespace

template <typename T>
ArrayInput ColumnArray(std::string name, DataType dtype, std::vector<T> values, std::size_t dim) {
  ArrayInput array;
  array.name = std::move(name);
  array.dim = dim;
  array.dtype = dtype;
  // std::function copies its target, so the values are in a shared pointer.
  array.read_rows = [rows = std::make_shared<const std::vector<T>>(std::move(values)),
                     row_bytes = dim * DataTypeBytes(dtype)](std::span<const VertexId> vertices,
                                                             std::span<std::byte> out) {
    const auto bytes = std::as_bytes(std::span(*rows));
    for (std::size_t i = 0; i < vertices.size(); ++i)
      std::memcpy(out.data() + i * row_bytes,
                  bytes.data() + static_cast<std::size_t>(vertices[i]) * row_bytes, row_bytes);
    return Status::Ok();
  };
  return array;
}
template ArrayInput ColumnArray(std::string, DataType, std::vector<std::byte>, std::size_t);
template ArrayInput ColumnArray(std::string, DataType, std::vector<std::int64_t>, std::size_t);
template ArrayInput ColumnArray(std::string, DataType, std::vector<std::uint8_t>, std::size_t);

namespace {

struct SplitWord {
  std::string_view text;
  std::uint8_t value;
};
// The last one is a null.
constexpr std::array kSplitWords = {
    SplitWord{"train", 0},       SplitWord{"valid", 1},  SplitWord{"val", 1}, SplitWord{"test", 2},
    SplitWord{"none", kNoSplit}, SplitWord{"0", 0},      SplitWord{"1", 1},   SplitWord{"2", 2},
    SplitWord{"255", kNoSplit},  SplitWord{"", kNoSplit}};
constexpr std::string_view kLetters = "tven";
constexpr std::array<std::uint8_t, 4> kValues = {0, 1, 2, kNoSplit};

/// Returns the number of a word in kSplitWords; nullopt if it is none.
std::optional<std::uint8_t> SplitWordOf(std::string_view text) {
  for (std::uint8_t i = 0; i < kSplitWords.size(); ++i)
    if (kSplitWords[i].text == text) return i;
  return std::nullopt;
}

}  // namespace

std::optional<std::uint8_t> ParseSplit(std::string_view text) {
  const auto word = SplitWordOf(text);
  return word && !text.empty() ? std::optional(kSplitWords[*word].value) : std::nullopt;
}

std::optional<std::vector<std::uint8_t>> ParseSplitLetters(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  std::vector<std::uint8_t> splits;
  for (const char letter : text) {
    const std::size_t found = kLetters.find(letter);
    if (found == kLetters.npos) return std::nullopt;
    splits.push_back(kValues[found]);
  }
  return splits;
}

NodeColumn::NodeColumn(std::string name, Kind kind, std::optional<GivenType> type)
    : name_(std::move(name)),
      kind_(kind),
      typed_(type.has_value()),
      is_split_(kind == Kind::kSplit),
      inferred_(type && !type->is_text ? type : std::nullopt) {
  if (kind == Kind::kText || (type && type->is_text)) texts_.emplace();
}

std::optional<std::string> NodeColumn::Stage(std::string_view field) {
  staged_text_.reset();
  staged_null_word_.clear();
  if (kind_ == Kind::kLabel) return StageLabel(field);
  if (texts_) return StageText(field);
  if (kind_ == Kind::kOther) return StageOther(field);
  const auto split = SplitWordOf(IsNullWord(field) ? "" : field);
  if (!split)
    return fmt::format("the split '{}' is not one of train, valid, val, test, none, 0, 1, 2, 255",
                       field);
  staged_words_.assign(1, *split);
  return std::nullopt;
}

// A null word or -1 is no class, also in a column of names. A number with a fraction may be a value
// that is to be predicted, and is a name only after another name.
std::optional<std::string> NodeColumn::StageLabel(std::string_view field) {
  const auto label = IsNullWord(field) ? kNoLabel : ParseCanonicalInteger(field);
  if (typed_ && !texts_ && !label) return fmt::format("the label '{}' is not an integer", field);
  if (!texts_ && !label && IsDecimal(field) && field.find_first_of(".eE") != field.npos)
    return fmt::format(
        "the label '{}' is not an integer; if it is the name of a class, give the column the type "
        "text (`types`); if it is a value, give the column another name (`node_columns`)",
        field);
  if (texts_ || !label) return StageText(label == kNoLabel ? std::string_view() : field);
  staged_label_ = *label;
  return std::nullopt;
}

std::optional<std::string> NodeColumn::StageText(std::string_view field) {
  staged_text_ = field;
  return TextCodes::Refuse(field, name_);
}

std::optional<std::string> NodeColumn::StageLetters(std::string_view field) {
  auto splits = ParseSplitLetters(field);
  if (!splits || splits->size() != letters_) return StageText(field);
  staged_words_ = *std::move(splits);
  return std::nullopt;
}

// The first value decides whether the column has splits, as words or as letters.
std::optional<std::string> NodeColumn::StageOther(std::string_view field) {
  if (typed_) return inferred_.Stage(field, name_);
  if (is_empty_) {
    const auto splits = ParseSplitLetters(field);
    letters_ = splits ? splits->size() : 0;
    const bool word = !field.empty() && (field.front() < '0' || field.front() > '9');
    is_split_ = letters_ > 0 || (word && ParseSplit(field));
  }
  if (letters_ > 0) return StageLetters(field);
  if (!is_split_) return StageValue(field);
  const auto split = SplitWordOf(IsNullWord(field) ? "" : field);
  if (!split) return StageText(field);
  staged_words_.assign(1, *split);
  return std::nullopt;
}

// Stages a value of a type that is inferred. A field that is no number may turn nulls and integers
// into texts.
std::optional<std::string> NodeColumn::StageValue(std::string_view field) {
  auto reason = inferred_.Stage(field, name_);
  if (!reason) {
    if (inferred_.staged_null()) staged_null_word_ = field;
    return std::nullopt;
  }
  if (ParseDouble(field) || IsDecimal(field)) return reason;
  const bool integers =
      inferred_.kind() == ValueColumn::Kind::kNumbers && values_.dtype() == DataType::kInt64;
  if (integers || inferred_.kind() == ValueColumn::Kind::kNothing) return StageText(field);
  return fmt::format("{}, or give the column the type text (`types`)", *reason);
}

/// Returns the text of a split that was kept, as it was read.
std::string NodeColumn::SplitText(std::size_t value) const {
  if (letters_ == 0) return std::string(kSplitWords[words_[value]].text);
  std::string letters;
  for (std::size_t k = 0; k < letters_; ++k) {
    const auto at = std::find(kValues.begin(), kValues.end(), words_[value * letters_ + k]);
    letters += kLetters[static_cast<std::size_t>(at - kValues.begin())];
  }
  return letters;
}

// Integers, nulls and splits become the texts that they were. Returns whether there was a value
// other than an empty one.
bool NodeColumn::BecomeTexts() {
  texts_.emplace();
  const std::size_t splits = words_.size() / std::max<std::size_t>(letters_, 1);
  for (std::size_t i = 0; i < splits; ++i) texts_->Add(SplitText(i));
  auto null_word = null_words_.begin();
  const std::int64_t none = kind_ == Kind::kLabel ? kNoLabel : values_.null().value_or(0);
  const bool nulls = kind_ == Kind::kLabel || values_.null().has_value();
  for (std::size_t i = 0; i < values_.size(); ++i) {
    std::int64_t integer = 0;
    std::memcpy(&integer, &values_.bytes()[i * sizeof(integer)], sizeof(integer));
    const bool worded = null_word != null_words_.end() && null_word->first == i;
    if (worded)
      texts_->Add((null_word++)->second);
    else
      texts_->Add(nulls && integer == none ? std::string() : std::to_string(integer));
  }
  values_ = ValueList();
  words_ = {};
  null_words_ = {};
  is_split_ = false;
  return texts_->has_texts();
}

bool NodeColumn::Keep() {
  if (staged_text_) {
    const bool became = !texts_ && BecomeTexts();
    texts_->Add(*staged_text_);
    return became;
  }
  if (!staged_null_word_.empty()) null_words_.emplace_back(values_.size(), staged_null_word_);
  is_empty_ = false;
  if (is_split_)
    words_.insert(words_.end(), staged_words_.begin(), staged_words_.end());
  else if (kind_ == Kind::kLabel)
    values_.Add(staged_label_);
  else
    inferred_.Keep(values_);
  return false;
}

std::vector<std::string> NodeColumn::Notes() const {
  if (texts_ || is_split_ || kind_ == Kind::kLabel) return {};
  return inferred_.Notes(name_);
}

std::uint64_t NodeColumn::memory_bytes() const {
  return values_.memory_bytes() + words_.capacity() +
         null_words_.capacity() * sizeof(null_words_[0]) + (texts_ ? texts_->memory_bytes() : 0);
}

ArrayInput NodeColumn::SplitArray(std::span<const VertexId> vertices,
                                  std::uint64_t vertex_count) && {
  const std::size_t dim = std::max<std::size_t>(letters_, 1);
  if (letters_ == 0)
    for (std::uint8_t& word : words_) word = kSplitWords[word].value;
  auto array =
      ColumnArray(std::move(name_), DataType::kUint8,
                  Scatter<std::uint8_t>(words_, vertices, vertex_count, kNoSplit, dim), dim);
  SetMissing(array);
  return array;
}

// Converts the list to the type of the array, and moves its values to the order of vertices. A
// column of true, false and nulls is int8, because bool has no third value.
ArrayInput NodeColumn::ToArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) && {
  if (texts_) return std::move(*texts_).ToArray(std::move(name_), vertices, vertex_count);
  if (is_split_) return std::move(*this).SplitArray(vertices, vertex_count);
  inferred_.Finish(values_);
  DataType dtype = kind_ == Kind::kLabel || is_empty_ ? values_.dtype() : inferred_.dtype();
  if (dtype == DataType::kBool && inferred_.null()) dtype = DataType::kInt8;
  const std::size_t from = DataTypeBytes(values_.dtype());
  const std::size_t to = DataTypeBytes(dtype);
  std::vector<std::byte> rows(vertex_count * to);
  FillMissingRows(MissingRowOfNewArray(name_, dtype, 1), rows);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const auto row = std::span(rows).subspan(static_cast<std::size_t>(vertices[i]) * to, to);
    RHIZOME_CHECK(
        !ConvertElements(values_.dtype(), values_.bytes().subspan(i * from, from), dtype, row));
  }
  values_ = ValueList();
  auto array = ColumnArray(std::move(name_), dtype, std::move(rows), 1);
  array.attributes = inferred_.Attributes(dtype);
  SetMissing(array);
  return array;
}

}  // namespace internal
}  // namespace rhizome
