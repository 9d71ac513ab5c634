#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rhizome/index/delta.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome::inline internal {

/// Puts rows of an array into the delta, for a job that publishes an array: those of vertices that
/// the generation does not have. The array may be one that no manifest names yet; until one does,
/// nobody asks for its rows. Should the job end before, compaction leaves them out.
/// Threads: one. Ownership: `store` must outlive it.
class DeltaRowWriter {
 public:
  /// `store` is open for writing, and has no Graph that was written to. Errors: kBusy, it has;
  /// kCorruption; kIoError.
  static Result<std::unique_ptr<DeltaRowWriter>> Open(Store& store);
  ~DeltaRowWriter() { store_.ReleaseDelta(); }
  DeltaRowWriter(const DeltaRowWriter&) = delete;
  DeltaRowWriter& operator=(const DeltaRowWriter&) = delete;

  /// Bound of the vertex ids, those of the delta among them.
  std::uint64_t vertices() const { return delta_->vertices(); }

  /// Puts the rows of the vertices `first`, `first` + 1, ... as one commit, which is durable with
  /// the next synced one. `rows`: n rows of row_bytes. Errors: kInvalidArgument, no such vertices;
  /// those of Store::CommitDelta.
  Status Put(std::uint64_t array_id, VertexId first, std::uint64_t row_bytes,
             std::span<const std::byte> rows);

 private:
  explicit DeltaRowWriter(Store& store) : store_(store) {}

  Store& store_;
  std::shared_ptr<const Delta> delta_;
};

}  // namespace rhizome::inline internal
