#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/ids/id_dictionary.h"

namespace rhizome {
inline namespace internal {

/// Numbers the distinct texts of a column in order of first occurrence, then in ascending order.
/// Memory: the distinct texts, and 24 to 32 bytes for each.
/// Threads: one at a time.
class TextCodes {
 public:
  /// Returns the reason why `text` cannot be stored, or nullopt if it can.
  static std::optional<std::string> Refuse(std::string_view text, std::string_view column);

  /// Returns the number of a text that Refuse accepted; -1 for an empty one.
  std::int64_t Add(std::string_view text);

  std::uint64_t size() const { return texts_.size(); }
  std::uint64_t memory_bytes() const { return texts_.memory_bytes(); }

  /// Returns the texts in ascending order, and the final code of each number of Add. Consumes the
  /// texts.
  AttributeTexts Sort() &&;

 private:
  IdDictionary<StringKeys> texts_;
};

/// A column of texts of a nodes file.
/// Threads: one at a time.
class TextColumn {
 public:
  void Add(std::string_view text) { numbers_.push_back(codes_.Add(text)); }
  bool has_texts() const { return codes_.size() > 0; }
  std::uint64_t memory_bytes() const { return numbers_.capacity() * 8 + codes_.memory_bytes(); }

  /// Returns an array of codes: value i goes to vertices[i]; the other vertices get -1. Consumes
  /// the column. The caller sets layout and codec.
  ArrayInput ToArray(std::string name, std::span<const VertexId> vertices,
                     std::uint64_t vertex_count) &&;

 private:
  TextCodes codes_;
  std::vector<std::int64_t> numbers_;  // by accepted line
};

/// Returns a function that writes these texts, whose codes are their positions. They ascend, or
/// were exported from a store to which updates added texts.
WriteTextsOf WriterOf(std::shared_ptr<const std::vector<std::string>> texts);

/// Turns an array of int64 codes into an array of these texts (ArrayFile::texts). Its rows are
/// checked when they are read.
/// Errors: kInvalidArgument, the array is not int64.
Status SetTexts(const std::shared_ptr<const std::vector<std::string>>& texts, ArrayInput& array);

}  // namespace internal
}  // namespace rhizome
