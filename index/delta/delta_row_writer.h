#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "index/delta/delta.h"
#include "rhizome/status.h"
#include "rhizome/store.h"

namespace rhizome {
inline namespace internal {

/// Puts rows of an array into the delta, for a job that publishes an array: the rows of vertices
/// that the generation does not have. The manifest need not name the array yet; no reader requests
/// its rows before it does. If the job ends before that, compaction drops the rows.
/// Threads: one.
/// Ownership: `store` must outlive it.
class DeltaRowWriter {
 public:
  /// `store` must be open for writing, and no Graph may have written to it.
  /// Errors: kBusy, a Graph has written to it; kCorruption; kIoError.
  static Result<std::unique_ptr<DeltaRowWriter>> Open(Store& store);
  ~DeltaRowWriter() { store_.ReleaseDelta(); }
  DeltaRowWriter(const DeltaRowWriter&) = delete;
  DeltaRowWriter& operator=(const DeltaRowWriter&) = delete;

  /// Returns the bound of vertex ids, including ids of vertices that the delta added.
  std::uint64_t vertices() const { return delta_->vertices(); }

  /// Puts the rows of the vertices `first`, `first` + 1, ... as one commit, which becomes durable
  /// with the next synced one. `rows` has shape [n, row_bytes].
  /// Errors: kInvalidArgument, vertices out of range; any error of Store::CommitDelta.
  Status Put(std::uint64_t array_id, VertexId first, std::uint64_t row_bytes,
             std::span<const std::byte> rows);

 private:
  explicit DeltaRowWriter(Store& store) : store_(store) {}

  Store& store_;
  std::shared_ptr<const Delta> delta_;
};

}  // namespace internal
}  // namespace rhizome
