#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rhizome/index/graph_builder.h"
#include "rhizome/index/ingest_context.h"
#include "rhizome/index/spill.h"
#include "rhizome/storage/array_rules.h"

namespace rhizome {

/// An array file that is too large for memory. Opening it reads only the header of a file of rows,
/// or copies triplets into a spill file; the rows go from the order of the file to that of the
/// store through buckets of rows that fit in memory one at a time (two sequential passes). Threads:
/// one at a time. Ownership: `context` and `space` must outlive it.
class SpilledArray {
 public:
  virtual ~SpilledArray() = default;

  /// Errors: those of ReadArrayFile, as far as they show here.
  static Result<std::shared_ptr<SpilledArray>> Open(IngestContext& context, const ArrayFile& file,
                                                    SpillSpace& space, std::uint64_t memory_bytes);

  std::string name;
  std::string path;        ///< for messages
  std::uint64_t rows = 0;  ///< as LoadedArray
  bool exact_rows = false;
  std::uint64_t dim = 0;
  DataType dtype = DataType::kInvalid;
  MissingRow missing = MissingRow::kZeros;  ///< as of a new array, unless the caller sets it
  std::uint64_t row_bytes() const { return dim * DataTypeBytes(dtype); }

  /// Reads the file and divides its rows into buckets. Row i belongs to vertex_of_row[i], to none
  /// if that is -1, or to vertex i if the table is empty. Vertices in [order.size(), vertices) have
  /// the rows behind the others, in the order of their ids. Who has none gets what FillMissingRows
  /// says.
  virtual Status Begin(const VertexOrder& order, std::uint64_t vertices,
                       std::span<const VertexId> vertex_of_row) = 0;

  /// The next of the `vertices` rows.
  virtual Status Read(std::span<std::byte> out) = 0;
};

/// The array of the graph that it becomes.
ArrayInput BindSpilledArray(const std::shared_ptr<SpilledArray>& array,
                            const std::shared_ptr<const std::vector<VertexId>>& vertex_of_row);

}  // namespace rhizome
