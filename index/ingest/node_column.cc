// A column of the nodes file. Stage parses a field: a label, a split, or a value of a type that
// ValueColumn infers. Keep appends the staged value. ToArray moves the values to the order of
// vertex ids.

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

NodeColumn::NodeColumn(std::string name, Kind kind, std::optional<ColumnType> type)
    : name_(std::move(name)),
      kind_(kind),
      typed_(type.has_value()),
      is_split_(kind == Kind::kSplit),
      inferred_(type) {}

std::optional<std::string> NodeColumn::Stage(std::string_view field) {
  if (kind_ == Kind::kOther) return StageOther(field);
  if (kind_ == Kind::kLabel) {
    const auto label = IsNullWord(field) ? kNoLabel : ParseCanonicalInteger(field);
    if (!label) return fmt::format("the label '{}' is not an integer (-1 or nothing: none)", field);
    staged_label_ = *label;
    return std::nullopt;
  }
  const auto split = IsNullWord(field) ? kNoSplit : ParseSplit(field);
  if (!split)
    return fmt::format("the split '{}' is not one of train, valid, val, test, none, 0, 1, 2, 255",
                       field);
  staged_words_.assign(1, *split);
  return std::nullopt;
}

std::optional<std::string> NodeColumn::StageLetters(std::string_view field) {
  auto splits = ParseSplitLetters(field);
  if (!splits || splits->size() != letters_) {
    return fmt::format(
        "'{}' in the column '{}' does not have {} letters of splits, as on the first line (t "
        "train, v valid, e test, n none)",
        field, name_, letters_);
  }
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
  if (!is_split_) return inferred_.Stage(field, name_);
  const auto split = IsNullWord(field) ? kNoSplit : ParseSplit(field);
  if (!split)
    return fmt::format("'{}' in the column '{}' is not a split, as on the first line", field,
                       name_);
  staged_words_.assign(1, *split);
  return std::nullopt;
}

void NodeColumn::Keep() {
  is_empty_ = false;
  if (is_split_)
    words_.insert(words_.end(), staged_words_.begin(), staged_words_.end());
  else if (kind_ == Kind::kLabel)
    values_.Add(staged_label_);
  else
    inferred_.Keep(values_);
}

std::uint64_t NodeColumn::memory_bytes() const {
  return values_.memory_bytes() + words_.capacity();
}

ArrayInput NodeColumn::SplitArray(std::span<const VertexId> vertices,
                                  std::uint64_t vertex_count) && {
  const std::size_t dim = std::max<std::size_t>(letters_, 1);
  auto array =
      ColumnArray(std::move(name_), DataType::kUint8,
                  Scatter<std::uint8_t>(words_, vertices, vertex_count, kNoSplit, dim), dim);
  SetMissing(array);
  return array;
}

// Converts the list to the type of the array, and moves its values to the order of vertices. A
// column of true, false and nulls is int8, because bool has no third value.
ArrayInput NodeColumn::ToArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) && {
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
