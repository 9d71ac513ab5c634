#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gnn/links/link_table.h"
#include "rhizome/job_control.h"
#include "storage/array/row_reader.h"

namespace rhizome {
inline namespace internal {

/// Reads single rows of a table in layout row or in shards.
/// Threads: one at a time.
/// Ownership: borrows the table.
class FewRows {
 public:
  explicit FewRows(const LinkTable& table) : table_(table) {}

  /// Returns whether the layout of the array supports it.
  bool possible() const;

  /// Returns whether reading these rows one by one is likely faster than reading the chunks that
  /// contain them.
  bool better(std::uint64_t rows, std::uint64_t chunks) const;

  /// Reads row rows[i] to out[i * dim, (i + 1) * dim); `rows` ascend. Returns the bytes read.
  Result<std::uint64_t> Read(std::span<const Row> rows, std::span<float> out);

 private:
  Result<std::uint64_t> ReadSingle(std::span<RowTarget> targets);
  Result<std::uint64_t> ReadShards(std::span<const RowTarget> targets);

  const LinkTable& table_;
  std::unique_ptr<RowReader> reader_;  // opened at the first use
  std::vector<std::byte> stored_;
  std::vector<std::byte> run_;
};

/// Rows of a table in memory, found by their numbers.
class GatheredRows {
 public:
  /// Reads `rows`, which ascend and are distinct: one by one where that is better, else in chunks.
  /// Errors: kCorruption; kIoError; kOutOfMemory; kInterrupted.
  static Result<GatheredRows> Read(const LinkTable& table, std::vector<Row> rows,
                                   const JobControl& control);

  const std::vector<Row>& rows() const { return rows_; }
  std::size_t dim() const { return dim_; }
  const float* values() const { return values_.data(); }  ///< [rows, dim]

  /// `row` must be one of rows().
  std::uint32_t PlaceOf(Row row) const;
  const float* At(Row row) const { return values_.data() + PlaceOf(row) * dim_; }

 private:
  GatheredRows(std::vector<Row> rows, std::size_t dim)
      : rows_(std::move(rows)), dim_(dim), values_(rows_.size() * dim) {}

  std::vector<Row> rows_;
  std::size_t dim_;
  std::vector<float> values_;
};

}  // namespace internal
}  // namespace rhizome
