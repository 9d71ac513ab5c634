#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "rhizome/index/delta.h"
#include "rhizome/index/graph_parts.h"
#include "rhizome/index/write_batch.h"
#include "rhizome/storage/catalog.h"
#include "rhizome/storage/io_pacer.h"
#include "rhizome/storage/mutex.h"
#include "rhizome/storage/result.h"
#include "rhizome/storage/store.h"

namespace rhizome {

/// Turns batches into commits of the delta. Concurrent writers queue up; the first of them resolves
/// and writes the batches of all, as one synced write (group commit), each batch whole or not at
/// all.
/// Threads: any. Ownership: `store`, open for writing, must outlive it.
class GraphWriter {
 public:
  /// What batches are resolved against.
  struct Base {
    std::shared_ptr<const Store> store;
    std::shared_ptr<const GraphParts> parts;
    std::shared_ptr<const Delta> delta;
  };

  /// Called with each new state, in order, before the writers that made it return.
  using Publish = std::function<void(const Base&)>;

  GraphWriter(Store& store, Base base, Publish publish);

  /// Told of every synced write: work in the background gives way.
  IoPacer& pacer() { return pacer_; }

  Result<WriteResult> Write(const WriteBatch& batch, const WriteOptions& options)
      RHIZOME_EXCLUDES(mutex_);

  /// Requests that were made and not answered yet.
  std::size_t pending() const RHIZOME_EXCLUDES(mutex_);

  /// Runs `change` while no commit is under way and none can begin; what it gives is published.
  Status Rebase(const std::function<Result<Base>()>& change) RHIZOME_EXCLUDES(mutex_);

 private:
  struct Request {
    const WriteBatch* batch = nullptr;  // null: Rebase, which only waits for its turn
    WriteOptions options;
    std::optional<Result<WriteResult>> result;  // by who stands first
    bool done = false;                          // then it may be read
  };
  struct Resolved {
    std::uint64_t sequence = 0;
    std::vector<std::byte> record;
    std::vector<DeltaRow> rows;
  };

  void Queue(Request& request) RHIZOME_REQUIRES(mutex_);
  std::vector<Request*> Group() const RHIZOME_REQUIRES(mutex_);
  void Leave(std::size_t count) RHIZOME_REQUIRES(mutex_);
  void Commit(const std::vector<Request*>& group);
  void Count(const std::vector<Request*>& group, const std::vector<Resolved>& resolved) const;
  void Resolve(Request& request, std::uint64_t& sequence, std::shared_ptr<const Delta>& delta,
               std::vector<Resolved>& resolved);

  Store& store_;
  const Publish publish_;
  IoPacer pacer_;
  mutable Mutex mutex_;
  CondVar turn_;
  std::deque<Request*> queue_ RHIZOME_GUARDED_BY(mutex_);

  Base base_;  // of whoever stands first in the queue
};

}  // namespace rhizome
