#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "index/generation/graph_builder.h"
#include "index/generation/spill.h"
#include "index/ingest/ingest_context.h"
#include "storage/array/array_rules.h"

namespace rhizome {
inline namespace internal {

/// An array file that is too large for memory. Open reads only the header of a file of rows, or
/// copies triplets to a spill file. The rows are permuted from file order to the store's order
/// through buckets that fit in memory one at a time, in two sequential passes.
/// Threads: one at a time.
/// Ownership: `context` and `space` must outlive it.
class SpilledArray {
 public:
  virtual ~SpilledArray() = default;

  /// Opens a file.
  /// Errors: those errors of ReadArrayFile that the header, or the triplets, reveal.
  static Result<std::shared_ptr<SpilledArray>> Open(IngestContext& context, const ArrayFile& file,
                                                    SpillSpace& space, std::uint64_t memory_bytes);

  std::string name;
  std::string path;        ///< for messages
  std::uint64_t rows = 0;  ///< see LoadedArray
  bool exact_rows = false;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kInvalid;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< ArrayFile::attributes
  MissingRow missing = MissingRow::kZeros;  ///< as for a new array, unless the caller sets it
  std::uint64_t row_bytes() const { return dim * DataTypeBytes(dtype); }

  /// Reads the file and distributes its rows to buckets. Row i belongs to vertex_of_row[i], to no
  /// vertex if that is -1, or to vertex i if the table is empty. The rows of vertices in
  /// [order.size(), vertices) follow the others, in the order of their ids. A vertex without a row
  /// gets the values of FillMissingRows. For a bound array, `of_type` has the rows of its vertex
  /// type, including rows of vertices from order.size() on; null for other arrays.
  /// Errors: kInvalidArgument, a row belongs to a vertex of another type than the array.
  virtual Status Begin(const VertexOrder& order, std::uint64_t vertices,
                       std::span<const VertexId> vertex_of_row, const TypeRows* of_type) = 0;

  /// Reads the next of the `vertices` rows (for a bound array, of the rows of its type), in the
  /// order of the store.
  virtual Status Read(std::span<std::byte> out) = 0;
};

/// Returns an array of the graph that reads this one.
ArrayInput BindSpilledArray(const std::shared_ptr<SpilledArray>& array,
                            const std::shared_ptr<const std::vector<VertexId>>& vertex_of_row);

}  // namespace internal
}  // namespace rhizome
