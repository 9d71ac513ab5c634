#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rhizome/index/delta_run.h"
#include "rhizome/index/placed_rows.h"
#include "rhizome/index/publish_array.h"
#include "rhizome/index/vertex_order.h"
#include "rhizome/storage/chunk_array.h"

namespace rhizome::inline internal {

/// A job's array on its way into a generation that has other rows: the vertices of that generation
/// get theirs in its order, in new files; vertices that came after it get theirs in its delta.
/// Threads: one. Ownership: what it is made of must outlive it.
class MovedArray {
 public:
  /// `current`: at the generation to publish in. `root`: a folder to write in, which is emptied.
  MovedArray(const MadeArray& made, const Store& current, Path root, const JobControl& control)
      : made_(made), current_(current), root_(std::move(root)), control_(control) {}

  /// Writes the files. Errors: those of the arrays and of the disk; kInterrupted.
  Status Write();
  ArraySource source() const { return {array_.arrays, root_, array_.files}; }

  /// Within a change that has published source(): the marks of an embedding's stale rows, and rows
  /// for the delta. What the marks are published from must live until the change is committed.
  Status PublishRest(ArrayChange& change);

 private:
  /// An array in the rows of one generation, below root_.
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
  Result<bool> LinkChunk(ChunkArrayWriter& writer, std::uint64_t chunk) const;
  Status PublishMarks(ArrayChange& change);
  Status PutNewRows(Store& store);

  const MadeArray& made_;
  const Store& current_;
  const Path root_;
  const JobControl& control_;

  // What was made: open from Write on.
  std::optional<VertexOrder> from_;
  std::unique_ptr<ChunkArray> old_;
  std::unique_ptr<PlacedRows> rows_;
  std::vector<PlacedRows::Place> places_;

  // Of rows that are appended: the array that they are appended to, as it is by now.
  std::unique_ptr<ChunkArray> kept_;  // or null
  std::unique_ptr<PlacedRows> kept_rows_;
  std::vector<PlacedRows::Place> kept_places_;
  std::shared_ptr<const DeltaRun> put_;  // between the two generations; or null

  std::optional<VertexOrder> to_;
  Files array_;
  Files marks_;
  std::vector<std::uint8_t> stale_;  // by vertex, or empty: none
};

}  // namespace rhizome::inline internal
