#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/arrays/publish_array.h"
#include "index/delta/delta_run.h"
#include "index/generation/placed_rows.h"
#include "index/topology/vertex_order.h"
#include "rhizome/chunk_array.h"
#include "storage/array/chunk_writer.h"

namespace rhizome {
inline namespace internal {

class TypeRows;

/// Moves a job's array into a generation with another order of rows: rows of that generation's
/// vertices are written in its order, in new files; rows of later vertices are put into its delta.
/// Threads: one.
/// Ownership: the constructor's arguments must outlive it.
class MovedArray {
 public:
  /// `current` is at the generation to publish in. `root` is the folder to write in, which is
  /// emptied first.
  MovedArray(const MadeArray& made, const Store& current, Path root, const JobControl& control)
      : made_(made), current_(current), root_(std::move(root)), control_(control) {}

  /// Writes the files.
  /// Errors: any error of the arrays and of the disk; kInterrupted.
  Status Write();
  ArraySource source() const { return {array_.arrays, root_, array_.files}; }

  /// Publishes the marks of an embedding's stale rows, and the rows for the delta, within a change
  /// that has published source(). The source of the marks must live until the change is committed.
  Status PublishRest(ArrayChange& change);

 private:
  /// An array in the row order of one generation, below root_.
  struct Files {
    std::vector<ArrayEntry> arrays;
    std::vector<FileEntry> files;
  };
  using Fill = std::function<Status(std::span<const VertexId> vertices, std::span<std::byte> out)>;

  std::uint64_t vertices() const { return current_.manifest().info.vertices; }
  bool same_generation() const;
  std::uint64_t memory_bytes() const;
  Status OpenMade();
  Status OpenKept();
  bool IsKept(VertexId vertex) const;
  Status ReadRows(std::span<const VertexId> wanted, std::span<std::byte> out);
  ArrayEntry NewEntry() const;
  Status MarkStale(ArrayEntry& entry);
  Result<Files> WriteFiles(const ArrayEntry& entry, bool link, const Fill& fill) const;
  Status FillChunk(const ArrayEntry& entry, const TypeRows* of_type, std::uint64_t begin,
                   const Fill& fill, std::span<std::byte> rows) const;
  Result<bool> LinkChunk(ChunkArrayWriter& writer, std::uint64_t chunk) const;
  Status PublishMarks(ArrayChange& change);
  Status PutNewRows(Store& store);

  const MadeArray& made_;
  const Store& current_;
  const Path root_;
  const JobControl& control_;

  // The job's array, open after Write begins.
  std::optional<VertexOrder> from_;
  std::unique_ptr<ChunkArray> old_;
  std::unique_ptr<PlacedRows> rows_;
  std::vector<PlacedRows::Place> places_;

  // The array that rows are appended to, in its current state.
  std::unique_ptr<ChunkArray> kept_;  // null: no rows are appended
  std::unique_ptr<PlacedRows> kept_rows_;
  std::vector<PlacedRows::Place> kept_places_;
  std::shared_ptr<const DeltaRun> put_;  // changes between the two generations; may be null

  std::optional<VertexOrder> to_;
  Files array_;
  Files marks_;
  std::vector<std::uint8_t> stale_;  // by vertex; empty: no row is stale
};

}  // namespace internal
}  // namespace rhizome
