#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rhizome/chunk_array.h"
#include "rhizome/graph_types.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Converts elements of `dtype` to float32. `raw` holds out.size() elements.
void ToFloats(DataType dtype, std::span<const std::byte> raw, std::span<float> out);

/// The dtype of elements, and what they mean (array_facts.h).
struct ElementType {
  DataType dtype = DataType::kInvalid;
  std::optional<std::int64_t> null = {};  ///< the integer that means null
  bool is_timestamp = false;
  bool is_bool = false;  ///< true and false; also of integers that are 0 and 1

  ElementType(DataType type)  // NOLINT(google-explicit-constructor): plain numbers
      : dtype(type), is_bool(type == DataType::kBool) {}
  explicit ElementType(const ArrayEntry& entry) : ElementType(entry.dtype, entry.attributes) {}
  explicit ElementType(const EdgeAttributeInfo& info) : ElementType(info.dtype, info.attributes) {}

 private:
  ElementType(DataType type, const std::vector<std::pair<std::string, std::string>>& attributes);
};

/// Returns elements as JSON: integers exactly, floats as the shortest decimal that reads back to
/// the same value (0.1f prints as 0.1), true and false, times in ISO 8601 (TimestampText), null.
/// JSON has no numbers for infinities and NaN; they are printed as the strings "Infinity",
/// "-Infinity" and "NaN". A NaN whose sign or payload differs from the default NaN is printed with
/// its bits, as in "NaN(0xffc00000)". ParseElementJson restores the same bits.
Json ToJson(const ElementType& type, std::span<const std::byte> raw);

/// Returns one element as text for tables: as in JSON, but inf, -inf and nan, and nothing for null.
std::string ElementText(const ElementType& type, std::span<const std::byte> raw);

/// Parses a value of a table and writes it to the beginning of `out`, which has at least
/// DataTypeBytes bytes: as ParseElement of number.h, a time in ISO 8601 or as an integer, and a
/// null (IsNullWord) where there is a value for it. Returns false for any other text, and for the
/// value that means null.
bool ParseElement(const ElementType& type, std::string_view text, std::span<std::byte> out);

/// As above, for a JSON value of any form that ToJson returns; null is NaN among floats.
bool ParseElementJson(const ElementType& type, const Json& value, std::span<std::byte> out);

/// Returns JSON in which NaN, Infinity and -Infinity, as Python's json module writes them, are the
/// strings that ParseElementJson reads. Text within strings is unchanged.
std::string QuoteNonFinite(std::string_view json);

/// Returns what to write instead, for messages: "an int64 number", "a time (2024-05-01T12:30:00Z)".
std::string ExpectedElement(const ElementType& type);

/// Returns the current row of `vertex` in an array.
Result<std::vector<std::byte>> ReadVertexRow(const GraphSnapshot& graph, const ChunkArray& array,
                                             VertexId vertex);

/// Class names of the vertices of a store: its integer array `label`, and the names of the classes
/// if it has them (ReadClassNames). Open returns nullopt if the store has no such array.
class ClassNames {
 public:
  static Result<std::optional<ClassNames>> Open(const OpenedGraph& opened);

  /// Returns the class of a vertex: its name if known, otherwise its number.
  Result<Json> Of(const GraphSnapshot& graph, VertexId vertex) const;

 private:
  std::shared_ptr<const ChunkArray> array_;  // shared, so that ClassNames can be copied
  std::vector<std::string> names_;
};

}  // namespace rhizome
