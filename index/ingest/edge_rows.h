#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "index/base/edge_list.h"
#include "rhizome/ingest.h"

namespace rhizome {
inline namespace internal {

/// Reads the rows of an EdgeArrayFile along with the edges that they belong to.
/// Threads: one at a time.
/// Ownership: `fs` and `array` must outlive it.
class EdgeRows {
 public:
  EdgeRows(FileSystem& fs, const EdgeArrayFile& array) : fs_(fs), array_(array) {}

  /// Must be called before the edges of edge file `number`.
  /// Errors: any error of OpenRows; kInvalidArgument, the rows do not have the array's dim and
  /// dtype.
  Status BeginFile(std::size_t number);

  /// Adds the next row to its column.
  /// Errors: kInvalidArgument, naming the file: it has no more rows, or a value does not fit the
  /// array's dtype; any error of RowSource.
  Status AppendTo(EdgeAttribute& column);
  Status AppendTo(std::vector<float>& weights);  ///< adds one finite number

  /// Returns the next row, in the array's dtype, without adding it to a column; valid until the
  /// next call. Errors: as AppendTo.
  Result<std::span<const std::byte>> Take() { return Next(); }

  /// Must be called after the edges of an edge file. `last` is true for the last file.
  /// Errors: kInvalidArgument, there are more rows.
  Status EndFile(bool last);

 private:
  bool by_edge_file() const { return array_.files.size() > 1; }
  const ArrayFile& file() const { return array_.files[by_edge_file() ? number_ : 0]; }
  Status Open();
  Status Refuse(std::string_view reason) const;

  /// Returns the next row, in the array's dtype; valid until the next call.
  Result<std::span<const std::byte>> Next();
  Status Fill();
  Status CheckNonzero() const;

  FileSystem& fs_;
  const EdgeArrayFile& array_;
  std::size_t number_ = 0;             // number of the current edge file
  std::unique_ptr<RowSource> source_;  // null: the rows are zeros
  std::uint64_t rows_taken_ = 0;  // rows read from the source; block_ ends with the last of them
  std::uint64_t block_rows_ = 0;
  std::uint64_t block_taken_ = 0;
  std::vector<std::byte> block_;
  std::vector<std::byte> converted_;
};

/// Checks each entry of IngestOptions::edge_arrays separately.
/// Errors: kInvalidArgument, naming the array.
Status CheckEdgeArrays(const IngestOptions& options);

}  // namespace internal
}  // namespace rhizome
