#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome {

/// Converts elements of `dtype` to float32; `raw` holds out.size() elements.
void ToFloats(DataType dtype, std::span<const std::byte> raw, std::span<float> out);

/// Elements as JSON numbers: integers exactly, floats by their shortest decimal that reads back to
/// the same value (so that 0.1f prints as 0.1); NaN and infinities as null, which JSON has not.
Json ToJson(DataType dtype, std::span<const std::byte> raw);

/// Writes the number that `text` is as the first element of `out`, of DataTypeBytes(dtype) bytes at
/// least. False where it is not a finite decimal, or does not fit: integers must be written as
/// such.
bool ParseElement(DataType dtype, std::string_view text, std::span<std::byte> out);

/// The row of `vertex` in an array, as it was put last.
Result<std::vector<std::byte>> ReadVertexRow(const GraphSnapshot& graph, const ChunkArray& array,
                                             VertexId vertex);

/// The classes of a store: its integer array `label`, and their names where the importer knew them
/// (attribute kLabelNames). Absent if the store has no such array.
inline constexpr const char* kLabelNames = "label_names";
class ClassNames {
 public:
  static Result<std::optional<ClassNames>> Open(const OpenedGraph& opened);

  /// The class of a vertex: its name, else its number.
  Result<Json> Of(const GraphSnapshot& graph, VertexId vertex) const;

 private:
  std::shared_ptr<const ChunkArray> array_;  // shared only so that ClassNames can be copied
  std::vector<std::string> names_;
};

}  // namespace rhizome
