#include "rhizome/index/node_column.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <utility>

#include "rhizome/index/array_file.h"
#include "rhizome/index/external_id.h"
#include "rhizome/index/number.h"
#include "rhizome/storage/array_rules.h"

namespace rhizome::inline internal {
namespace {

constexpr std::uint8_t kNoSplit = 255;

/// Moves values from the order of lines to that of vertex ids.
template <typename T>
std::vector<T> Scatter(std::span<const T> values, std::span<const VertexId> vertices,
                       std::uint64_t vertex_count, T fill) {
  std::vector<T> rows(vertex_count, fill);
  for (std::size_t i = 0; i < values.size(); ++i)
    rows[static_cast<std::size_t>(vertices[i])] = values[i];
  return rows;
}

}  // namespace

template <typename T>
ArrayInput ColumnArray(std::string name, DataType dtype, std::vector<T> values) {
  ArrayInput array;
  array.name = std::move(name);
  array.dim = 1;
  array.dtype = dtype;
  // std::function copies its target, hence the shared pointer.
  array.read_rows = [rows = std::make_shared<const std::vector<T>>(std::move(values))](
                        std::span<const VertexId> vertices, std::span<std::byte> out) {
    for (std::size_t i = 0; i < vertices.size(); ++i)
      std::memcpy(out.data() + i * sizeof(T), &(*rows)[static_cast<std::size_t>(vertices[i])],
                  sizeof(T));
    return Status::Ok();
  };
  return array;
}
template ArrayInput ColumnArray(std::string, DataType, std::vector<std::int64_t>);
template ArrayInput ColumnArray(std::string, DataType, std::vector<float>);
template ArrayInput ColumnArray(std::string, DataType, std::vector<std::uint8_t>);

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

NodeColumn::NodeColumn(std::string name, Kind kind) : name_(std::move(name)), kind_(kind) {
  dtype_ = kind == Kind::kLabel   ? DataType::kInt64
           : kind == Kind::kSplit ? DataType::kUint8
                                  : DataType::kInvalid;
}

std::optional<std::string> NodeColumn::Stage(std::string_view field) {
  if (kind_ == Kind::kOther) return StageOther(field);
  staged_ = dtype_;
  if (kind_ == Kind::kLabel) {
    const auto label = ParseCanonicalInteger(field);
    if (!label) return fmt::format("the label '{}' is not an integer (-1: none)", field);
    staged_integer_ = *label;
    return std::nullopt;
  }
  const auto split = ParseSplit(field);
  if (!split)
    return fmt::format("the split '{}' is none of train, valid, val, test, none, 0, 1, 2, 255",
                       field);
  staged_integer_ = *split;
  return std::nullopt;
}

std::optional<std::string> NodeColumn::StageOther(std::string_view field) {
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
  return fmt::format(
      "'{}' in the column '{}' is not a number, and arrays hold numbers; name the column '-' to "
      "skip it",
      field, name_);
}

void NodeColumn::Keep() {
  if (dtype_ == DataType::kInt64 && staged_ == DataType::kFloat32) {
    floats_.assign(integers_.begin(), integers_.end());
    integers_ = {};
  }
  dtype_ = staged_;
  if (kind_ == Kind::kOther && dtype_ != DataType::kUint8)
    numbers_.Keep(staged_is_integer_ ? std::optional(staged_integer_) : std::nullopt);
  if (dtype_ == DataType::kInt64) integers_.push_back(staged_integer_);
  if (dtype_ == DataType::kFloat32) floats_.push_back(staged_float_);
  if (dtype_ == DataType::kUint8) words_.push_back(static_cast<std::uint8_t>(staged_integer_));
}

std::uint64_t NodeColumn::memory_bytes() const {
  return integers_.capacity() * 8 + floats_.capacity() * 4 + words_.capacity();
}

ArrayInput NodeColumn::ToArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) && {
  if (dtype_ == DataType::kUint8) {
    auto array = ColumnArray(std::move(name_), dtype_,
                             Scatter<std::uint8_t>(words_, vertices, vertex_count, kNoSplit));
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

}  // namespace rhizome::inline internal
