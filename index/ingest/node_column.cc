// A column of the nodes file. Stage parses a field and infers the dtype of the column: int64,
// float32, uint8 for splits, or texts. Keep appends the staged value and converts the earlier values
// if the dtype has changed. ToArray moves the values to the order of vertex ids.

#include "index/ingest/node_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "index/ingest/array_file.h"
#include "index/input/number.h"
#include "rhizome/graph_types.h"
#include "storage/array/array_rules.h"

namespace rhizome {
inline namespace internal {
namespace {

constexpr std::uint8_t kNoSplit = 255;

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
  array.read_rows = [rows = std::make_shared<const std::vector<T>>(std::move(values)), dim](
                        std::span<const VertexId> vertices, std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i)
      std::memcpy(out.data() + i * dim * sizeof(T),
                  &(*rows)[static_cast<std::size_t>(vertices[i]) * dim], dim * sizeof(T));
    return Status::Ok();
  };
  return array;
}
template ArrayInput ColumnArray(std::string, DataType, std::vector<std::int64_t>, std::size_t);
template ArrayInput ColumnArray(std::string, DataType, std::vector<float>, std::size_t);
template ArrayInput ColumnArray(std::string, DataType, std::vector<std::uint8_t>, std::size_t);

std::optional<std::uint8_t> ParseSplit(std::string_view text) {
  struct Word {
    std::string_view text;
    std::uint8_t value;
  };
  static constexpr std::array kWords = {
      Word{"train", 0}, Word{"valid", 1},       Word{"val", 1},
      Word{"test", 2},  Word{"none", kNoSplit}, Word{"0", 0},
      Word{"1", 1},     Word{"2", 2},           Word{"255", kNoSplit},
  };
  for (const Word& word : kWords)
    if (word.text == text) return word.value;
  return std::nullopt;
}

std::optional<std::vector<std::uint8_t>> ParseSplitLetters(std::string_view text) {
  constexpr std::string_view kLetters = "tven";
  constexpr std::array<std::uint8_t, 4> kValues = {0, 1, 2, kNoSplit};
  if (text.size() < 2) return std::nullopt;
  std::vector<std::uint8_t> splits;
  for (const char letter : text) {
    const std::size_t found = kLetters.find(letter);
    if (found == kLetters.npos) return std::nullopt;
    splits.push_back(kValues[found]);
  }
  return splits;
}

NodeColumn::NodeColumn(std::string name, Kind kind) : name_(std::move(name)), kind_(kind) {
  dtype_ = kind == Kind::kLabel   ? DataType::kInt64
           : kind == Kind::kSplit ? DataType::kUint8
                                  : DataType::kInvalid;
  if (kind == Kind::kText) texts_.emplace();
}

std::optional<std::string> NodeColumn::Stage(std::string_view field) {
  stages_text_ = false;
  if (texts_) return StageText(field);
  if (kind_ == Kind::kOther) return StageOther(field);
  staged_ = dtype_;
  if (kind_ == Kind::kLabel) return StageLabel(field);
  const auto split = ParseSplit(field);
  if (!split)
    return fmt::format("the split '{}' is not one of train, valid, val, test, none, 0, 1, 2, 255",
                       field);
  staged_integer_ = *split;
  return std::nullopt;
}

std::optional<std::string> NodeColumn::StageLabel(std::string_view field) {
  const auto label = field.empty() ? -1 : ParseCanonicalInteger(field);
  if (!label) return StageText(field);
  staged_integer_ = *label;
  return std::nullopt;
}

std::optional<std::string> NodeColumn::StageText(std::string_view field) {
  stages_text_ = true;
  staged_text_ = field;
  return TextCodes::Refuse(field, name_);
}

std::optional<std::string> NodeColumn::StageLetters(std::string_view field) {
  auto splits = ParseSplitLetters(field);
  if (!splits || splits->size() != letters_) {
    return fmt::format(
        "'{}' in the column '{}' does not have {} letters of splits, as on the first line (t "
        "train, v valid, e test, n none)",
        field, name_, letters_);
  }
  staged_ = DataType::kUint8;
  staged_words_ = *std::move(splits);
  return std::nullopt;
}

std::optional<std::string> NodeColumn::StageOther(std::string_view field) {
  if (dtype_ == DataType::kInvalid) {
    const auto splits = ParseSplitLetters(field);
    letters_ = splits ? splits->size() : 0;
  }
  if (letters_ > 0) return StageLetters(field);
  const auto integer = ParseCanonicalInteger(field);
  const auto number = ParseFiniteFloat(field);
  const auto split = ParseSplit(field);
  const bool words = dtype_ == DataType::kUint8;
  if (words || (!number && dtype_ == DataType::kInvalid)) {
    staged_ = DataType::kUint8;
    staged_integer_ = split.value_or(kNoSplit);
    if (split) return std::nullopt;
  } else if (number) {
    if (auto reason = numbers_.Refuse(field, name_, integer)) return reason;
    staged_ = integer && dtype_ != DataType::kFloat32 ? DataType::kInt64 : DataType::kFloat32;
    staged_is_integer_ = integer.has_value();
    staged_integer_ = integer.value_or(0);
    staged_float_ = *number;
    return std::nullopt;
  }
  if (words || dtype_ == DataType::kFloat32)
    return fmt::format(
        "'{}' in the column '{}' is not {}, as the values before it are; name the column '-' to "
        "skip it",
        field, name_, words ? "a split" : "a number");
  return StageText(field);
}

// Labels and integers become texts without loss; -1 is a label of no class.
void NodeColumn::BecomeTexts() {
  texts_.emplace();
  for (const std::int64_t integer : integers_) {
    const bool none = kind_ == Kind::kLabel && integer == -1;
    texts_->Add(none ? std::string() : std::to_string(integer));
    if (!none) ++integers_before_texts_;
  }
  integers_ = {};
}

void NodeColumn::Keep() {
  if (stages_text_) {
    if (!texts_) BecomeTexts();
    return texts_->Add(kind_ == Kind::kLabel && staged_text_ == "-1" ? "" : staged_text_);
  }
  if (dtype_ == DataType::kInt64 && staged_ == DataType::kFloat32) {
    floats_.assign(integers_.begin(), integers_.end());
    integers_ = {};
  }
  dtype_ = staged_;
  if (kind_ == Kind::kOther && dtype_ != DataType::kUint8)
    numbers_.Keep(staged_is_integer_ ? std::optional(staged_integer_) : std::nullopt);
  if (dtype_ == DataType::kInt64) integers_.push_back(staged_integer_);
  if (dtype_ == DataType::kFloat32) floats_.push_back(staged_float_);
  if (dtype_ != DataType::kUint8) return;
  if (letters_ == 0) staged_words_.assign(1, static_cast<std::uint8_t>(staged_integer_));
  words_.insert(words_.end(), staged_words_.begin(), staged_words_.end());
}

std::uint64_t NodeColumn::memory_bytes() const {
  return integers_.capacity() * 8 + floats_.capacity() * 4 + words_.capacity() +
         (texts_ ? texts_->memory_bytes() : 0);
}

ArrayInput NodeColumn::ToArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) && {
  if (texts_) return std::move(*texts_).ToArray(std::move(name_), vertices, vertex_count);
  if (dtype_ == DataType::kUint8) {
    const std::size_t dim = std::max<std::size_t>(letters_, 1);
    auto array =
        ColumnArray(std::move(name_), dtype_,
                    Scatter<std::uint8_t>(words_, vertices, vertex_count, kNoSplit, dim), dim);
    SetMissing(array);
    return array;
  }
  if (dtype_ == DataType::kFloat32)
    return ColumnArray(std::move(name_), dtype_,
                       Scatter<float>(floats_, vertices, vertex_count, 0));
  auto array = ColumnArray(std::move(name_), DataType::kInt64,
                           Scatter<std::int64_t>(integers_, vertices, vertex_count, -1));
  SetMissing(array);
  return array;
}

}  // namespace internal
}  // namespace rhizome
