#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "index/topology/rank_bitmap.h"
#include "rhizome/export.h"
#include "rhizome/graph.h"
#include "rhizome/manifest.h"
#include "rhizome/status.h"

namespace rhizome {
inline namespace RHIZOME_API internal {

/// The rows of one array that its files do not have: rows put since the generation was created, and
/// the rows of new vertices, which follow the generation's rows and have the values of
/// FillMissingRows until they are put. For readers that request rows by number and read most of
/// them from the files.
/// Memory: 3 bits a vertex, 24 bytes a row that was put.
/// Threads: const.
class DeltaRows {
 public:
  /// Returns null if all rows are in the files. `graph` must be a snapshot (Graph::Snapshot).
  static std::shared_ptr<const DeltaRows> Of(std::shared_ptr<const GraphSnapshot> graph,
                                             const ArrayEntry& array);

  /// Returns the number of rows, including the rows of new vertices.
  std::uint64_t rows() const { return rows_; }

  bool WasPut(Row row) const { return put_at_.Test(static_cast<std::uint64_t>(row)); }
  bool Holds(Row row) const { return static_cast<std::uint64_t>(row) >= file_rows_ || WasPut(row); }

  /// Copies a row for which Holds is true to `out`, which has the bytes of one row.
  /// Errors: kCorruption; kIoError.
  Status Read(Row row, std::span<std::byte> out) const;

  /// Overwrites, among the rows [first, first + n), those for which Holds is true. `rows` has shape
  /// [n, row bytes].
  Status Overlay(Row first, std::span<std::byte> rows) const;

 private:
  struct Put {
    Row row = 0;
    VertexId vertex = 0;
    std::uint64_t sequence = 0;
  };
  DeltaRows() = default;

  std::shared_ptr<const GraphSnapshot> graph_;
  ArrayEntry array_;
  std::size_t row_bytes_ = 0;
  std::uint64_t file_rows_ = 0;
  std::uint64_t rows_ = 0;
  RankBitmap put_at_;
  std::vector<Put> puts_;  // by row
};

}  // namespace internal
}  // namespace rhizome
