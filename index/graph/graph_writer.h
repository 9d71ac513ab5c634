#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "index/delta/delta.h"
#include "index/delta/graph_parts.h"
#include "index/delta/graph_texts.h"
#include "rhizome/status.h"
#include "rhizome/store.h"
#include "rhizome/write_batch.h"
#include "storage/base/mutex.h"
#include "storage/catalog/catalog.h"
#include "storage/io/io_pacer.h"

namespace rhizome {
inline namespace internal {

class GraphState;

/// Turns batches into commits of the delta. Concurrent writers queue up. The first of them resolves
/// the batches of all and writes them with one sync (group commit); each batch is applied
/// completely or not at all.
///
/// Everything that allocates memory is done before the catalogue is written. If memory runs out,
/// the batches are refused (kOutOfMemory), nothing is written, and the writer remains usable.
/// Threads: any.
/// Ownership: `store`, open for writing, must outlive it.
class GraphWriter {
 public:
  /// The state that batches are resolved against.
  struct Base {
    std::shared_ptr<const Store> store;
    std::shared_ptr<const GraphParts> parts;
    std::shared_ptr<const Delta> delta;
  };

  /// Creates the state for a base, before that base is committed.
  using Make = std::function<std::shared_ptr<const GraphState>(const Base&)>;

  /// Called with each new state, in order, before the Write calls that created it return. Must not
  /// throw, because the state is already durable.
  using Show = std::function<void(std::shared_ptr<const GraphState>)>;

  GraphWriter(Store& store, Base base, Make make, Show show);

  /// Returns the pacer, which is notified of every synced write, so that background work yields to
  /// it.
  IoPacer& pacer() { return pacer_; }

  Result<WriteResult> Write(const WriteBatch& batch, const WriteOptions& options)
      RHIZOME_EXCLUDES(mutex_);

  /// Returns the number of requests that wait for a result.
  std::size_t pending() const RHIZOME_EXCLUDES(mutex_);

  /// Runs `change` and then `commit` while no other commit is running or can begin; publishes the
  /// base that `change` returns once `commit` is done. On error nothing has changed.
  /// Errors: any error of `change` and `commit`.
  Status Rebase(const std::function<Result<Base>()>& change, const std::function<Status()>& commit)
      RHIZOME_EXCLUDES(mutex_);

  /// Runs `work` while no commit is running or can begin. `work` may call Switch, which does what
  /// Rebase does.
  /// Errors: any error of `work`.
  Status Alone(const std::function<Status()>& work) RHIZOME_EXCLUDES(mutex_);
  Status Switch(const std::function<Result<Base>()>& change, const std::function<Status()>& commit);

 private:
  /// A request on the stack of its caller, which waits for it; the queue therefore needs no memory.
  struct Request {
    const WriteBatch* batch = nullptr;  // null: Alone, which only waits for its turn
    WriteOptions options;
    std::optional<Result<WriteResult>> result;  // set by the first request in the queue
    Request* behind = nullptr;                  // the next in the queue
    bool done = false;                          // `result` may be read
  };
  /// The first requests of the queue. Other requests may join and leave the queue behind them at
  /// the same time.
  struct Group {
    Request* first = nullptr;
    std::size_t count = 0;
    template <typename Visit>
    void ForEach(const Visit& visit) const {
      Request* request = first;
      for (std::size_t i = 0; i < count; ++i) {
        Request* const behind = i + 1 < count ? request->behind : nullptr;
        visit(*request);
        request = behind;
      }
    }
  };
  struct Resolved {
    std::uint64_t sequence = 0;
    std::vector<std::byte> record;
    std::vector<DeltaRow> rows;
    std::vector<std::vector<std::byte>> row_bytes;  // of those rows that the batch has as texts
  };
  /// The result of resolving a group.
  struct Next {
    std::vector<Resolved> resolved;
    HistoryState history;  // state after these commits
    std::shared_ptr<const Delta> delta;
    std::shared_ptr<const GraphState> state;
  };

  void Queue(Request& request) noexcept RHIZOME_REQUIRES(mutex_);
  Group FirstGroup() const noexcept RHIZOME_REQUIRES(mutex_);
  void Leave(const Group& group) noexcept RHIZOME_REQUIRES(mutex_);
  void Commit(const Group& group) noexcept;
  Status TryCommit(const Group& group, Next& next);
  void Count(const Group& group, const std::vector<Resolved>& resolved) const noexcept;
  void Resolve(Request& request, std::uint64_t& sequence, Next& next);

  Store& store_;
  const Make make_;
  const Show show_;
  IoPacer pacer_;
  mutable Mutex mutex_;
  CondVar turn_;
  Request* first_ RHIZOME_GUARDED_BY(mutex_) = nullptr;
  Request* last_ RHIZOME_GUARDED_BY(mutex_) = nullptr;
  std::size_t queued_ RHIZOME_GUARDED_BY(mutex_) = 0;

  // Used by the request that is first in the queue.
  Base base_;
  OpenDictionaries dictionaries_;  // of base_.store
};

}  // namespace internal
}  // namespace rhizome
