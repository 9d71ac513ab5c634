#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/index/graph_builder.h"
#include "rhizome/index/number.h"
#include "rhizome/storage/types.h"

namespace rhizome::inline internal {

/// 0 train, 1 valid (or val), 2 test, 255 none: the words or these numbers.
std::optional<std::uint8_t> ParseSplit(std::string_view text);

/// One column of a nodes file that becomes an array of dimension 1. Labels are int64, splits uint8;
/// any other column takes the type of its values: int64, else float32, or the words of a split.
/// A value is staged, and kept when the rest of its line is sound. Threads: one at a time.
class NodeColumn {
 public:
  enum class Kind : std::uint8_t { kLabel, kSplit, kOther };
  NodeColumn(std::string name, Kind kind);

  /// Returns why `field` does not fit, if so.
  std::optional<std::string> Stage(std::string_view field);
  void Keep();

  const std::string& name() const { return name_; }
  std::uint64_t memory_bytes() const;

  /// The values as rows by vertex id: value i goes to vertices[i], the other vertices have none
  /// (label -1, split 255, else 0). Consumes the column. Layout and codec are the caller's to set.
  ArrayInput ToArray(std::span<const VertexId> vertices, std::uint64_t vertex_count) &&;

 private:
  std::optional<std::string> StageOther(std::string_view field);

  std::string name_;
  Kind kind_;
  DataType dtype_;  // kInvalid until the first value of an other column
  std::int64_t staged_integer_ = 0;
  bool staged_is_integer_ = false;
  float staged_float_ = 0;
  DataType staged_ = DataType::kInvalid;
  NumberColumn numbers_;
  std::vector<std::int64_t> integers_;  // only the vector that belongs to dtype_ is filled
  std::vector<float> floats_;
  std::vector<std::uint8_t> words_;
};

/// An array of dimension 1 that holds `values` by vertex id.
template <typename T>
ArrayInput ColumnArray(std::string name, DataType dtype, std::vector<T> values);

}  // namespace rhizome::inline internal
