#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core.h"
#include "log.h"
#include "rhizome/graph_service.h"
#include "rhizome/manifest.h"
#include "storage/base/process.h"

namespace rhizome::python {

/// A store opened from Python, shared by its graph and all objects created from it. Close is
/// immediate: these objects refer to the engine through a Lease, which Close revokes, so that files
/// and locks are free when it returns, except for calls of other threads in progress. A snapshot
/// has a separate handle, which is closed with it and all objects created from it. Closing a handle
/// also closes its snapshots.
/// Threads: requires the GIL. The objects returned by Use and Lease::Use may be used without it.
class Handle {
 public:
  /// `log` may be null.
  Handle(std::shared_ptr<GraphService> service, std::shared_ptr<LogSink> log)
      : service_(std::move(service)), log_(std::move(log)) {}
  ~Handle() { Close(); }

  /// Returns a handle of the same store for a snapshot. It keeps `whole` alive, which may be
  /// closed.
  static std::shared_ptr<Handle> ForSnapshot(std::shared_ptr<Handle> whole) {
    auto part = std::make_shared<Handle>(whole->service_, nullptr);
    part->owner_ = whole->owner_;  // also in a forked child
    std::erase_if(whole->parts_, [](const auto& one) { return one.expired(); });
    whole->parts_.push_back(part);
    part->whole_ = std::move(whole);
    return part;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// Owns an object of the engine until the Lease is destroyed or the handle is closed.
  template <typename T>
  class Lease {
   public:
    /// Throws ValueError if the handle was closed while the object was created.
    Lease(std::shared_ptr<Handle> handle, std::shared_ptr<T> object)
        : handle_(std::move(handle)), object_(object) {
      if (handle_->closed()) {
        handle_->Drop(std::move(object));
        handle_->RaiseClosed();
      }
      handle_->leased_.insert(std::move(object));
    }
    ~Lease() {
      // After Close the object may still be in use, but it no longer belongs to the handle.
      std::shared_ptr<const void> object = object_.lock();
      const auto leased = handle_->leased_.find(object);
      if (leased == handle_->leased_.end()) return;
      handle_->leased_.erase(leased);
      handle_->Drop(std::move(object));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    /// Returns the object. Throws ValueError after the handle was closed.
    std::shared_ptr<T> Use() const {
      auto object = object_.lock();
      // The object may have other owners, e.g. a graph keeps its latest snapshot.
      if (!object || handle_->closed()) handle_->RaiseClosed();
      return object;
    }
    const std::shared_ptr<Handle>& handle() const { return handle_; }

   private:
    std::shared_ptr<Handle> handle_;
    std::weak_ptr<T> object_;
  };

  /// Returns the service. Throws ValueError after Close.
  std::shared_ptr<GraphService> Use() const {
    if (!service_) RaiseClosed();
    return service_;
  }
  bool closed() const { return service_ == nullptr; }

  /// Throws InvalidArgument in a forked child, because `what` needs threads of the process that
  /// opened the store.
  void CheckHere(std::string_view what) const { Check(owner_.Check(what)); }

  void Close() {
    // From here on other threads, which may get the GIL, cannot create new objects.
    std::shared_ptr<GraphService> service = std::exchange(service_, nullptr);
    for (const std::weak_ptr<Handle>& one : std::exchange(parts_, {}))
      if (const auto part = one.lock()) part->Close();
    for (std::multiset<std::shared_ptr<const void>> leased = std::exchange(leased_, {});
         !leased.empty();)
      Drop(std::move(leased.extract(leased.begin()).value()));
    Drop(std::move(service));
    if (const auto log = std::exchange(log_, nullptr)) log->Deliver();
  }

 private:
  [[noreturn]] void RaiseClosed() const {
    const Handle* store = this;
    while (store->whole_) store = store->whole_.get();
    throw nb::value_error(store->closed() ? "the store is closed" : "the snapshot is closed");
  }

  /// Destroys an object of the engine. This may wait for threads that request the GIL, so it runs
  /// without the GIL. In a forked child the object belongs to the parent and is leaked.
  void Drop(std::shared_ptr<const void> object) {
    if (!object) return;
    if (!owner_.here()) {
      new std::shared_ptr<const void>(std::move(object));
      return;
    }
    Unlocked([&] { object.reset(); });
  }

  OwnerProcess owner_;
  std::shared_ptr<GraphService> service_;
  std::shared_ptr<LogSink> log_;
  std::multiset<std::shared_ptr<const void>> leased_;
  std::shared_ptr<Handle> whole_;             // for a snapshot: the handle it was created from
  std::vector<std::weak_ptr<Handle>> parts_;  // snapshots created from this handle
};

/// A graph as seen from Python: the live graph of a handle, or a snapshot. Copies refer to the same
/// graph.
class PyGraph {
 public:
  explicit PyGraph(std::shared_ptr<Handle> handle) : handle_(std::move(handle)) {}
  /// `handle` belongs to the snapshot.
  PyGraph(std::shared_ptr<Handle> handle, std::shared_ptr<const GraphSnapshot> snapshot)
      : handle_(handle),
        snapshot_(std::make_shared<Handle::Lease<const GraphSnapshot>>(std::move(handle),
                                                                       std::move(snapshot))) {}

  /// Returns the graph to read from. It is valid as long as the result exists.
  std::shared_ptr<const Graph> Use() const {
    if (snapshot_) return snapshot_->Use();
    const std::shared_ptr<GraphService> service = handle_->Use();
    return {service, &service->graph()};
  }
  /// Returns a current snapshot, or this one. A live graph reuses its snapshot until the next
  /// commit, so a call only costs a lock.
  std::shared_ptr<const GraphSnapshot> Snapshot() const {
    return snapshot_ ? snapshot_->Use() : handle_->Use()->graph().Snapshot();
  }
  /// Returns the service, for operations of a live graph. Throws ValueError for a snapshot.
  std::shared_ptr<GraphService> Live() const {
    if (snapshot_) throw nb::value_error("a snapshot never changes: use the graph it was made of");
    return handle_->Use();
  }
  bool is_snapshot() const { return snapshot_ != nullptr; }
  const std::shared_ptr<Handle>& handle() const { return handle_; }

  /// Optional columns of neighbour lists: types if there are several, weights if there are any.
  struct Columns {
    std::uint64_t generation = 0;
    std::uint64_t sequence = std::numeric_limits<std::uint64_t>::max();
    bool types = false;
    bool weights = false;
  };
  /// Returns the columns of `now`, a result of Snapshot(). Only a commit adds types, and only a new
  /// generation weights.
  const Columns& ColumnsOf(const GraphSnapshot& now) const {
    const std::uint64_t generation = now.store().manifest().generation;
    if (columns_.sequence != now.sequence() || columns_.generation != generation)
      columns_ = {generation, now.sequence(), now.edge_types().size() > 1, now.info().weighted};
    return columns_;
  }

 private:
  std::shared_ptr<Handle> handle_;
  std::shared_ptr<const Handle::Lease<const GraphSnapshot>> snapshot_;
  mutable Columns columns_;
};

/// Returns the names of the arrays of vertices, for messages.
std::string ListedArrays(const Manifest& manifest);

/// Returns the vertex with an external id.
VertexId VertexOf(const Graph& graph, nb::handle id);

}  // namespace rhizome::python
