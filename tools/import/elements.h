#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rhizome/chunk_array.h"
#include "tools/cli/cli.h"

namespace rhizome {

/// Converts elements of `dtype` to float32. `raw` holds out.size() elements.
void ToFloats(DataType dtype, std::span<const std::byte> raw, std::span<float> out);

/// Returns elements as JSON numbers: integers exactly, floats as the shortest decimal that reads
/// back to the same value (0.1f prints as 0.1). JSON has no numbers for infinities and NaN; they
/// are printed as the strings "Infinity", "-Infinity" and "NaN". A NaN whose sign or payload
/// differs from the default NaN is printed with its bits, as in "NaN(0xffc00000)". ParseElementJson
/// restores the same bits.
Json ToJson(DataType dtype, std::span<const std::byte> raw);

/// Parses a number and writes it to the beginning of `out`, which has at least DataTypeBytes(dtype)
/// bytes. Returns false if `text` is not a finite decimal or is out of range of the type. Integers
/// must be written without a fraction.
bool ParseElement(DataType dtype, std::string_view text, std::span<std::byte> out);

/// As ParseElement, for a JSON value: a number, or one of the strings by which ToJson represents
/// infinities and NaN.
bool ParseElementJson(DataType dtype, const Json& value, std::span<std::byte> out);

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
