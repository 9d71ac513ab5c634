#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/ingest/ingest_context.h"

namespace rhizome {
inline namespace internal {

/// The content of an array file, indexed by row of the file.
/// Threads: const.
class LoadedArray {
 public:
  virtual ~LoadedArray() = default;

  /// Copies row `row` to `out`, of row_bytes() bytes; rows beyond `rows` get the values of
  /// FillMissingRows.
  virtual void CopyRow(std::uint64_t row, std::span<std::byte> out) const = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  std::string name;
  std::string path;  ///< for messages
  /// dense: the exact number; sparse: one more than the last row with a triplet
  std::uint64_t rows = 0;
  bool exact_rows = false;  ///< true for dense files
  std::uint64_t dim = 0;
  DataType dtype = DataType::kInvalid;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< ArrayFile::attributes

  std::uint64_t row_bytes() const { return dim * DataTypeBytes(dtype); }
};

/// Reads rows (dense: .npy, Zarr, or an importer's own) or triplets `row column value` (sparse),
/// converted to the requested dtype and held in memory.
/// Errors: kInvalidArgument, naming the file (and line or row): a wrong dtype or dimension, a value
/// that the dtype cannot represent, a repeated pair (row, column); any error of InputStream;
/// kOutOfMemory; kInterrupted.
Result<std::unique_ptr<LoadedArray>> ReadArrayFile(IngestContext& context, const ArrayFile& file);

/// Sets the attribute of a new array that records the values of vertices without a row
/// (MissingOfNewArray).
void SetMissing(ArrayInput& input);

/// Returns an array of the graph: vertex v gets row row_of_vertex[v] of the file (none if -1), or
/// row v if the table is empty.
ArrayInput BindArray(const std::shared_ptr<const LoadedArray>& array,
                     const std::shared_ptr<const std::vector<std::int64_t>>& row_of_vertex);

}  // namespace internal
}  // namespace rhizome
