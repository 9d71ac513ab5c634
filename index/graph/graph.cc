// Graph and GraphSnapshot. A GraphState is the graph at one commit: a store snapshot, the parts of
// its generation, and the delta. A GraphSnapshot holds one state for its lifetime; a live graph
// (LiveGraph) replaces its state with each write, refresh and compaction. Graph's functions take
// the current state (StateInUse) and answer from the parts and the delta.

#include "rhizome/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <tuple>
#include <utility>

#include "index/base/background.h"
#include "index/compact/compaction.h"
#include "index/delta/delta.h"
#include "index/delta/delta_view.h"
#include "index/delta/graph_parts.h"
#include "index/delta/row_overlay.h"
#include "index/delta/stale_vertices.h"
#include "index/delta/type_facts.h"
#include "index/graph/graph_create.h"
#include "index/graph/graph_writer.h"
#include "index/topology/adjacency.h"
#include "index/topology/file_rows.h"
#include "index/topology/vertex_ids.h"
#include "index/topology/vertex_order.h"
#include "storage/base/call_metrics.h"
#include "storage/base/check.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/base/process.h"
#include "storage/base/stopwatch.h"
#include "storage/base/threads.h"
#include "storage/store/store_files.h"

namespace rhizome {
namespace {

// Appends the part `range` of a vertex's list, whose entries all have one type, as neighbours.
// `list` is the whole list.
void AppendRange(const Adjacency& adjacency, Direction direction, TypeId type,
                 std::span<const LocalId> list, std::uint64_t list_first,
                 const Adjacency::Range& range, const VertexOrder& order,
                 std::vector<Neighbor>& out) {
  for (std::uint64_t position = range.first; position < range.first + range.count; ++position) {
    out.push_back({order.VertexAt(adjacency.RowOf(list[position - list_first])), type,
                   adjacency.Weight(direction, position)});
  }
}

Status AppendList(const Adjacency& adjacency, LocalId local, Direction direction,
                  std::optional<TypeId> wanted, const VertexOrder& order,
                  std::vector<Neighbor>& out) {
  std::vector<LocalId> scratch;
  RHIZOME_ASSIGN_OR_RETURN(const auto list, adjacency.FetchList(local, direction, scratch));
  const Adjacency::Range all = adjacency.Entries(local, direction);
  if (wanted) {
    AppendRange(adjacency, direction, *wanted, list, all.first,
                adjacency.EntriesOfType(local, direction, *wanted), order, out);
    return Status::Ok();
  }
  for (std::uint64_t i = 0; i < all.count;) {
    const TypeId type = adjacency.TypeOfEntry(local, direction, i);
    const auto range = adjacency.EntriesOfType(local, direction, type);
    AppendRange(adjacency, direction, type, list, all.first, range, order, out);
    i += range.count;
  }
  return Status::Ok();
}

// Sorts by global ids, so that the result does not depend on local ids and partitions.
void SortNeighbors(std::vector<Neighbor>& neighbors, std::size_t first) {
  std::sort(neighbors.begin() + static_cast<std::ptrdiff_t>(first), neighbors.end(),
            [](const Neighbor& a, const Neighbor& b) {
              return std::tie(a.type, a.vertex, a.weight) < std::tie(b.type, b.vertex, b.weight);
            });
}

std::vector<Direction> ListsOf(const GenerationInfo& info, Direction direction) {
  if (direction != Direction::kBoth) return {direction};
  if (info.symmetric) return {Direction::kOut};
  return {Direction::kOut, Direction::kIn};
}

}  // namespace

/// A graph at one commit. It is constant, except for the view, which is built at its first use.
class internal::GraphState {
 public:
  GraphState(std::shared_ptr<const Store> store, std::shared_ptr<const GraphParts> parts,
             std::shared_ptr<const Delta> delta)
      : store_(std::move(store)), parts_(std::move(parts)), delta_(std::move(delta)) {}

  static Result<std::shared_ptr<const GraphState>> Load(std::shared_ptr<const Store> store,
                                                        const GraphOptions& options);

  const std::shared_ptr<const Store>& store() const { return store_; }
  const std::shared_ptr<const GraphParts>& parts() const { return parts_; }
  const std::shared_ptr<const Delta>& delta() const { return delta_; }
  const GenerationInfo& info() const { return parts_->info(); }
  Result<std::shared_ptr<const DeltaView>> View() const RHIZOME_EXCLUDES(building_, mutex_);

  /// Checks that `id` is in range. `what` is "vertex" or "row"; both have the same bound.
  Status CheckHolds(std::int64_t id, std::string_view what = "vertex") const;
  Status CheckQuery(VertexId vertex, Direction direction) const;
  Result<std::uint64_t> DegreeInGeneration(VertexId vertex, Direction direction) const;
  Status Gather(VertexId vertex, Direction direction, std::optional<TypeId> type,
                std::vector<Neighbor>& out) const;
  Result<std::vector<Neighbor>> Lists(VertexId vertex, Direction direction,
                                      std::optional<TypeId> type) const;

 private:
  bool InGeneration(VertexId vertex) const {
    return static_cast<std::uint64_t>(vertex) < parts_->order.size();
  }

  const std::shared_ptr<const Store> store_;
  const std::shared_ptr<const GraphParts> parts_;
  const std::shared_ptr<const Delta> delta_;
  const OwnerProcess process_;
  mutable Mutex building_;  // serialises building the view, which takes a while
  mutable ForkMutex mutex_;
  mutable std::shared_ptr<const DeltaView> view_ RHIZOME_GUARDED_BY(mutex_);
};

Result<std::shared_ptr<const GraphState>> GraphState::Load(std::shared_ptr<const Store> store,
                                                           const GraphOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(auto parts, GraphParts::Load(store->SnapshotOfGraph(), options));
  RHIZOME_ASSIGN_OR_RETURN(auto delta, Delta::Load(Delta::Empty(parts->DeltaBase()), *store));
  return std::make_shared<const GraphState>(std::move(store), std::move(parts), std::move(delta));
}

Result<std::shared_ptr<const DeltaView>> GraphState::View() const {
  const auto made = [&] {
    const MutexLock lock(mutex_);
    return view_;
  };
  if (delta_->empty()) return nullptr;
  if (auto view = made()) return view;
  // In a forked child, a thread that was building the view does not exist, so every caller builds
  // its own view.
  if (!process_.here()) return DeltaView::Build(parts_, delta_);
  const MutexLock turn(building_);
  if (auto view = made()) return view;
  RHIZOME_ASSIGN_OR_RETURN(auto view, DeltaView::Build(parts_, delta_));
  const MutexLock lock(mutex_);
  view_ = std::move(view);
  return view_;
}

Status GraphState::CheckHolds(std::int64_t id, std::string_view what) const {
  if (id >= 0 && static_cast<std::uint64_t>(id) < delta_->vertices()) return Status::Ok();
  return Status::InvalidArgument(
      fmt::format("there is no {} {}: the graph has {} vertices", what, id, delta_->vertices()));
}

Status GraphState::CheckQuery(VertexId vertex, Direction direction) const {
  RHIZOME_RETURN_IF_ERROR(CheckHolds(vertex));
  return parts_->CheckDirection(direction);
}

Result<std::uint64_t> GraphState::DegreeInGeneration(VertexId vertex, Direction direction) const {
  const Row row = parts_->order.RowOf(vertex);
  const PartitionId owner = parts_->order.OwnerOf(row);
  const Adjacency& home = parts_->partitions[owner];
  if (!home.loaded())
    return Fail(parts_->CheckLoaded(owner, fmt::format("the degree of vertex {}", vertex)));
  const auto local = home.Find(row);
  if (!local) return Fail(parts_->MissingRow(row, owner, owner));
  RHIZOME_RETURN_IF_ERROR(home.CheckEntries(*local, direction));
  return home.GlobalDegree(*local, direction);
}

// Appends the list of a vertex: first the lists of all partitions that hold edges of it, without
// edges that the delta erases and edges of deleted vertices; then the edges that the delta adds.
Status GraphState::Gather(VertexId vertex, Direction direction, std::optional<TypeId> type,
                          std::vector<Neighbor>& out) const {
  if (delta_->IsDeleted(vertex)) return Status::Ok();
  const std::size_t first = out.size();
  if (InGeneration(vertex)) {
    RHIZOME_RETURN_IF_ERROR(
        parts_->ForEachPart(parts_->order.RowOf(vertex), [&](PartitionId p, LocalId local) {
          return AppendList(parts_->partitions[p], local, direction, type, parts_->order, out);
        }));
  }
  if (!delta_->Touches(vertex, direction)) return Status::Ok();
  const Delta::ListChanges changes = delta_->ChangesOf(vertex, direction);
  const auto gone = [&](const Neighbor& neighbor) {
    const DeltaEdge key{.vertex = vertex, .neighbor = neighbor.vertex, .type = neighbor.type};
    return std::binary_search(changes.erased.begin(), changes.erased.end(), key, KeyLess) ||
           delta_->IsDeleted(neighbor.vertex);
  };
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), gone),
            out.end());
  for (const DeltaEdge& edge : changes.added) {
    if ((type && edge.type != *type) || delta_->IsDeleted(edge.neighbor)) continue;
    out.push_back({edge.neighbor, edge.type, info().weighted ? edge.weight : 1});
  }
  return Status::Ok();
}

Result<std::vector<Neighbor>> GraphState::Lists(VertexId vertex, Direction direction,
                                                std::optional<TypeId> type) const {
  RHIZOME_RETURN_IF_ERROR(CheckQuery(vertex, direction));
  std::vector<Neighbor> neighbors;
  for (const Direction list : ListsOf(info(), direction)) {
    const std::size_t first = neighbors.size();
    RHIZOME_RETURN_IF_ERROR(Gather(vertex, list, type, neighbors));
    SortNeighbors(neighbors, first);
  }
  return neighbors;
}

namespace {

/// Sets the gauges of the store's metrics to a live graph's state.
void SetGauges(const GraphState& state) {
  Metrics* const metrics = state.store()->metrics();
  if (metrics == nullptr) return;
  const Delta& delta = *state.delta();
  const auto set = [&](Gauge gauge, std::uint64_t value) {
    metrics->Set(gauge, static_cast<std::int64_t>(value));
  };
  set(Gauge::kGeneration, state.parts()->store->manifest().generation);
  set(Gauge::kSequence, delta.sequence());
  set(Gauge::kVertices,
      delta.vertices() - delta.deleted_vertices() - state.parts()->ids.deleted_count());
  set(Gauge::kEdges, state.info().edges);
  set(Gauge::kDeltaEntries, delta.entries());
  set(Gauge::kDeltaCommits, delta.commits());
}

}  // namespace

/// A reference to a state. The state of a live graph may be replaced at any time, so it is held by
/// a shared pointer. The state of a snapshot lives as long as the graph, so that millions of calls
/// need no reference count.
class StateInUse {
 public:
  explicit StateInUse(const GraphState& fixed) : state_(&fixed) {}
  explicit StateInUse(std::shared_ptr<const GraphState> held)
      : held_(std::move(held)), state_(held_.get()) {}
  const GraphState* operator->() const { return state_; }

 private:
  const std::shared_ptr<const GraphState> held_;
  const GraphState* const state_;
};

namespace {

/// The changing state of a live graph, and everything that changes it. Snapshots have none of this,
/// so that a snapshot takes no more memory than its pointers.
class LiveGraph {
 public:
  LiveGraph(Store& store, std::shared_ptr<const GraphState> state)
      : store_(store), state_(std::move(state)) {
    SetGauges(*state_);
  }
  ~LiveGraph() {
    if (process_.here()) {
      if (writer_ != nullptr) store_.ReleaseDelta();
    } else {  // neither the queue of writers nor the thread exists in a forked child
      static_cast<void>(writer_.release());
      static_cast<void>(cleaning_.release());
    }
  }

  std::shared_ptr<const GraphState> state() const RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return state_;
  }

  /// Returns the cached snapshot of the current state; null if there is none.
  std::shared_ptr<const GraphSnapshot> kept_snapshot() const RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return snapshot_;
  }

  /// Caches `snapshot`, which belongs to `state`, unless the graph has another state by this time.
  void Keep(const std::shared_ptr<const GraphState>& state,
            std::shared_ptr<const GraphSnapshot> snapshot) RHIZOME_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (state == state_) snapshot_.swap(snapshot);
  }
  Result<WriteResult> Write(const WriteBatch& batch, const WriteOptions& options);
  Result<CompactResult> Compact(const SchemaChange& change, const CompactOptions& options,
                                const JobControl& control);
  Status Refresh() RHIZOME_EXCLUDES(mutex_, refresh_);

 private:
  Status MeteredCompactState(GraphWriter* writer, const GraphState& now, const SchemaChange& change,
                             const CompactOptions& options, const JobControl& control);
  Status CompactState(GraphWriter* writer, const GraphState& now, const SchemaChange& change,
                      const CompactOptions& options, const JobControl& control);
  Status SwitchOwn(GraphWriter& writer, bool alone, std::shared_ptr<const GraphParts> parts,
                   const CommitGeneration& commit);
  Status SwitchBeside(const GraphParts& parts, const CommitGeneration& commit,
                      const JobControl& control);
  Result<std::unique_ptr<Store>> OpenToCommit(const JobControl& control) const;
  Status ChangeRule(const CompactOptions& options, const JobControl& control);
  Result<GraphWriter*> Writer() RHIZOME_EXCLUDES(mutex_, refresh_);
  Result<std::unique_ptr<GraphWriter>> MakeWriter();
  Result<CompactResult> CompactOne(GraphWriter* writer, const SchemaChange& change,
                                   const CompactOptions& options, const JobControl& control);
  Status CompactNow(GraphWriter* writer, const SchemaChange& change, const CompactOptions& options,
                    const JobControl& control, CompactResult& result);
  void CleanUp();
  Status CheckProcess() const { return process_.Check("this graph"); }
  void Publish(std::shared_ptr<const GraphState> state) noexcept RHIZOME_EXCLUDES(mutex_) {
    SetGauges(*state);
    std::shared_ptr<const GraphSnapshot> before;  // destroyed after the lock is released
    const MutexLock lock(mutex_);
    state_.swap(state);
    snapshot_.swap(before);
  }

  Store& store_;
  const OwnerProcess process_;
  std::atomic<bool> compacting_{false};
  Mutex refresh_;  // serialises Refresh and the creation of the writer
  std::unique_ptr<GraphWriter> writer_ RHIZOME_GUARDED_BY(refresh_);
  mutable ForkMutex mutex_;
  std::shared_ptr<const GraphState> state_ RHIZOME_GUARDED_BY(mutex_);
  std::shared_ptr<const GraphSnapshot> snapshot_ RHIZOME_GUARDED_BY(mutex_);  // of state_, or null
  // used by the holder of compacting_
  std::unique_ptr<Thread> cleaning_ = std::make_unique<Thread>();
};

// Returns the writer. The first write of a graph creates it, which makes the graph the only writer
// of the store.
Result<GraphWriter*> LiveGraph::Writer() {
  RHIZOME_RETURN_IF_ERROR(CheckProcess());
  RHIZOME_RETURN_IF_ERROR(state()->parts()->CheckWhole("a graph that is written"));
  const MutexLock lock(refresh_);
  if (writer_ != nullptr) return writer_.get();
  RHIZOME_RETURN_IF_ERROR(store_.ClaimDelta());
  auto writer = Guarded([&] { return MakeWriter(); });
  if (!writer) {
    store_.ReleaseDelta();
    return Fail(writer.error());
  }
  writer_ = *std::move(writer);
  return writer_.get();
}

Result<std::unique_ptr<GraphWriter>> LiveGraph::MakeWriter() {
  const auto now = state();
  RHIZOME_ASSIGN_OR_RETURN(auto delta, Delta::Load(now->delta(), store_));
  return std::make_unique<GraphWriter>(
      store_, GraphWriter::Base{now->store(), now->parts(), std::move(delta)},
      [](const GraphWriter::Base& next) {
        return std::make_shared<const GraphState>(next.store, next.parts, next.delta);
      },
      [this](std::shared_ptr<const GraphState> next) { Publish(std::move(next)); });
}

Result<WriteResult> LiveGraph::Write(const WriteBatch& batch, const WriteOptions& options) {
  Metrics* const metrics = state()->store()->metrics();
  const CallMetrics call(metrics, Timer::kWrite);
  RHIZOME_ASSIGN_OR_RETURN(GraphWriter* const writer, Writer());
  auto result = writer->Write(batch, options);
  if (!result) return Fail(call.Done(result.error()));
  return result;
}

// A graph open for reading compacts without being the writer: only the commit needs the writer's
// lock.
Result<CompactResult> LiveGraph::Compact(const SchemaChange& change, const CompactOptions& options,
                                         const JobControl& control) {
  GraphWriter* writer = nullptr;
  if (store_.writable()) {
    RHIZOME_ASSIGN_OR_RETURN(writer, Writer());
  } else if (store_.fixed()) {
    return Fail(Status::InvalidArgument(
        fmt::format("'{}' is open at one commit and cannot be compacted", store_.path().string())));
  } else if (!change.empty()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "'{}' is open for reading; open it for writing to change it", store_.path().string())));
  } else {
    RHIZOME_RETURN_IF_ERROR(Refresh());
    RHIZOME_RETURN_IF_ERROR(state()->parts()->CheckWhole("a graph that is compacted"));
  }
  if (compacting_.exchange(true))
    return Fail(
        Status::Busy(fmt::format("'{}' is being compacted already", store_.path().string())));
  auto result = Guarded([&] { return CompactOne(writer, change, options, control); });
  compacting_ = false;
  return result;
}

Status CheckChange(const SchemaChange& change, const GraphState& now) {
  if (change.weighted && now.info().weighted)
    return Status::AlreadyExists(
        fmt::format("'{}': the edges have weights already", now.store()->path().string()));
  return CheckEdgeAttributes(change.edge_attributes, now.parts()->edge_attributes)
      .WithContext(now.store()->path().string());
}

// Compacts the current state, unless the delta is below min_delta and the schema does not change.
Status LiveGraph::CompactNow(GraphWriter* writer, const SchemaChange& change,
                             const CompactOptions& options, const JobControl& control,
                             CompactResult& result) {
  const auto now = state();
  result.generation = now->parts()->store->manifest().generation;
  const double share = static_cast<double>(now->delta()->entries()) /
                       static_cast<double>(std::max<std::uint64_t>(now->info().edges, 1));
  const bool due = !now->delta()->empty() && share >= options.min_delta;
  if (!due && change.empty()) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(CheckChange(change, *now));
  RHIZOME_RETURN_IF_ERROR(MeteredCompactState(writer, *now, change, options, control));
  result = {.compacted = true,
            .generation = state()->parts()->store->manifest().generation,
            .commits = now->delta()->commits()};
  return Status::Ok();
}

// Compacts unless the delta is below min_delta and the schema does not change:
// 1. waits for the removal of files that an earlier compaction started;
// 2. compacts the current state (CompactNow); if the schema changes, while no commit is possible;
// 3. if there was nothing to compact, records a changed retention rule;
// 4. removes the files of a failed attempt or, in the background, earlier generations.
Result<CompactResult> LiveGraph::CompactOne(GraphWriter* writer, const SchemaChange& change,
                                            const CompactOptions& options,
                                            const JobControl& control) {
  static_cast<void>(cleaning_->Join());
  CompactResult result;
  const auto compact = [&] { return CompactNow(writer, change, options, control, result); };
  Status status = change.empty() ? Guarded(compact) : writer->Alone(compact);
  if (!result.compacted && status.ok()) status = ChangeRule(options, control);
  if (writer != nullptr) {
    // Removes the files of the attempt; if that fails, the next open for writing retries.
    if (!status.ok()) (void)store_.CollectGarbage();
    if (result.compacted) CleanUp();
  } else if (result.compacted) {
    // Opening for writing removes earlier generations, unless another writer will.
    static_cast<void>(
        Store::Open(store_.fs(), store_.path(), Store::Mode::kWrite, {.id = store_.id()}));
  }
  RHIZOME_RETURN_IF_ERROR(status);
  return result;
}

// Records a changed retention rule, and removes the generations that it does not keep.
Status LiveGraph::ChangeRule(const CompactOptions& options, const JobControl& control) {
  const KeepRule before = store_.Snapshot()->manifest().keep;
  const KeepRule rule = RuleOf(options, before);
  if (rule == before) return Status::Ok();
  if (store_.writable()) {
    RHIZOME_RETURN_IF_ERROR(store_.Keep(rule));
    CleanUp();
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(const auto writer, OpenToCommit(control));
  RHIZOME_RETURN_IF_ERROR(writer->Keep(rule));
  return writer->CollectGarbage();
}

// Opens the store for writing, for a graph that is open for reading. Waits for other writers to
// end, because work of hours may depend on it; the caller can cancel.
Result<std::unique_ptr<Store>> LiveGraph::OpenToCommit(const JobControl& control) const {
  while (true) {
    auto opened = Store::Open(store_.fs(), store_.path(), Store::Mode::kWrite, {.id = store_.id()});
    if (opened || opened.error().code() != StatusCode::kBusy) return opened;
    RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "waiting for another writer"}));
  }
}

// Removes earlier generations on a background thread, as soon as no reader holds them. If the
// system cannot start a thread, it removes them on the caller's.
void LiveGraph::CleanUp() {
  const auto clean = [this] {
    Status cleaned = store_.CollectGarbage();
    if (!cleaned.ok())
      store_.logger().Log(LogLevel::kWarning, "graph",
                          "old files stay until the next open for writing",
                          {{"error", cleaned.ToString()}});
    return cleaned;
  };
  if (!cleaning_->Start(clean).ok()) static_cast<void>(Guarded(clean));
}

Status LiveGraph::MeteredCompactState(GraphWriter* writer, const GraphState& now,
                                      const SchemaChange& change, const CompactOptions& options,
                                      const JobControl& control) {
  const Stopwatch watch;
  const auto commits = static_cast<std::int64_t>(now.delta()->commits());
  store_.logger().Log(LogLevel::kInfo, "graph", "compaction begins",
                      {{"path", store_.path().string()}, {"commits", commits}});
  const Status status =
      Guarded([&] { return CompactState(writer, now, change, options, control); });
  const double seconds = watch.seconds();
  Metrics* const metrics = store_.metrics();
  if (!status.ok()) {
    if (metrics != nullptr) metrics->CountError(status.code());
    store_.logger().Log(
        status.code() == StatusCode::kInterrupted ? LogLevel::kInfo : LogLevel::kError, "graph",
        "compaction failed, nothing has changed",
        {{"error", status.ToString()}, {"seconds", seconds}});
    return status;
  }
  if (metrics != nullptr) {
    metrics->Add(Counter::kCompactions);
    metrics->Add(Counter::kCompactedCommits, static_cast<std::uint64_t>(commits));
    metrics->Observe(Timer::kCompaction, std::chrono::duration_cast<std::chrono::nanoseconds>(
                                             std::chrono::duration<double>(seconds)));
  }
  const auto generation = static_cast<std::int64_t>(state()->parts()->store->manifest().generation);
  store_.logger().Log(LogLevel::kInfo, "graph", "compacted",
                      {{"generation", generation},
                       {"commits", commits},
                       {"edges", static_cast<std::int64_t>(state()->info().edges)},
                       {"seconds", seconds}});
  return status;
}

Status LiveGraph::CompactState(GraphWriter* writer, const GraphState& now,
                               const SchemaChange& change, const CompactOptions& options,
                               const JobControl& control) {
  RHIZOME_ASSIGN_OR_RETURN(auto view, now.View());
  const CompactionInput input{now.store(),
                              now.parts(),
                              now.delta(),
                              std::move(view),
                              writer == nullptr ? nullptr : &writer->pacer(),
                              change};
  const auto switch_to = [&](std::shared_ptr<const GraphParts> parts,
                             const CommitGeneration& commit) {
    return writer == nullptr ? SwitchBeside(*parts, commit, control)
                             : SwitchOwn(*writer, !change.empty(), std::move(parts), commit);
  };
  // The compaction runs at background priority, because readers and writers have precedence.
  return RunInBackground(
      [&] { return CompactGeneration(store_, input, options, control, switch_to); });
}

/// Returns whether edges still have the attributes that `parts` was loaded with: `array drop`
/// removes them from a generation.
bool HasAttributesOf(const Manifest& manifest, const GraphParts& parts) {
  const auto now = EdgeAttributesOf(manifest);
  return std::equal(now.begin(), now.end(), parts.edge_attributes.begin(),
                    parts.edge_attributes.end(),
                    [](const auto& a, const auto& b) { return a.name == b.name; });
}

// `alone`: the caller runs within GraphWriter::Alone.
Status LiveGraph::SwitchOwn(GraphWriter& writer, bool alone,
                            std::shared_ptr<const GraphParts> parts,
                            const CommitGeneration& commit) {
  // Loads the commits made during the compaction; most of them are loaded before writers have to
  // wait.
  RHIZOME_ASSIGN_OR_RETURN(auto delta,
                           Delta::Load(Delta::Empty(parts->DeltaBase()), *parts->store));
  const auto base = [&]() -> Result<GraphWriter::Base> {
    // Loads the remaining commits before the commit of the generation, which cannot be undone.
    RHIZOME_ASSIGN_OR_RETURN(delta, Delta::Load(delta, *parts->store));
    return GraphWriter::Base{parts->store, parts, std::move(delta)};
  };
  const auto commit_own = [&] { return commit(store_); };
  return alone ? writer.Switch(base, commit_own) : writer.Rebase(base, commit_own);
}

// Commits through another handle, and moves this graph to the new generation.
Status LiveGraph::SwitchBeside(const GraphParts& parts, const CommitGeneration& commit,
                               const JobControl& control) {
  {
    RHIZOME_ASSIGN_OR_RETURN(const auto writer, OpenToCommit(control));
    // The commits made during the compaction must fit the new generation.
    RHIZOME_RETURN_IF_ERROR(Delta::Load(Delta::Empty(parts.DeltaBase()), *writer));
    RHIZOME_RETURN_IF_ERROR(commit(*writer));
  }
  // The compaction is committed, whether or not this handle can follow at once.
  const Status moved = Refresh();
  if (!moved.ok())
    store_.logger().Log(LogLevel::kWarning, "graph", "compacted, but cannot show the result yet",
                        {{"error", moved.ToString()}});
  return Status::Ok();
}

Status LiveGraph::Refresh() {
  RHIZOME_RETURN_IF_ERROR(CheckProcess());
  if (store_.writable()) return store_.Refresh();  // only checks that the store was not moved
  const MutexLock lock(refresh_);
  Metrics* const metrics = store_.metrics();
  if (Status status = store_.Refresh(); !status.ok()) {
    if (metrics != nullptr) metrics->CountError(status.code());
    return status;
  }
  if (metrics != nullptr) metrics->Add(Counter::kRefreshes);
  const auto now = state();
  const auto store = store_.Snapshot();
  const bool same = store->manifest().generation == now->parts()->store->manifest().generation;
  if (!same || !HasAttributesOf(store->manifest(), *now->parts())) {
    RHIZOME_ASSIGN_OR_RETURN(auto next, GraphState::Load(store, now->parts()->options));
    Publish(std::move(next));
    store_.logger().Log(LogLevel::kInfo, "graph", "moved on to a new generation",
                        {{"generation", static_cast<std::int64_t>(store->manifest().generation)}});
    return Status::Ok();
  }
  RHIZOME_ASSIGN_OR_RETURN(auto delta, Delta::Load(now->delta(), *store));
  Publish(std::make_shared<const GraphState>(store, now->parts(), std::move(delta)));
  now->parts()->arrays->CloseDropped(*store);
  return Status::Ok();
}

}  // namespace

/// The state of a live graph changes; the state of a snapshot never does.
class Graph::Impl {
 public:
  Impl(Store& store, std::shared_ptr<const GraphState> state, std::unique_ptr<Store> owned = {})
      : owned_(std::move(owned)), live_(std::make_unique<LiveGraph>(store, std::move(state))) {}
  explicit Impl(std::shared_ptr<const GraphState> fixed) : fixed_(std::move(fixed)) {}

  std::shared_ptr<const GraphState> state() const {
    return live_ == nullptr ? fixed_ : live_->state();
  }
  StateInUse use() const {
    return live_ == nullptr ? StateInUse(*fixed_) : StateInUse(live_->state());
  }
  LiveGraph* live() const { return live_.get(); }
  Result<LiveGraph*> Writable() const;
  Status Refresh() { return live_ == nullptr ? Status::Ok() : live_->Refresh(); }

 private:
  const std::unique_ptr<Store> owned_;             // the store of live_, if opened by its path
  const std::unique_ptr<LiveGraph> live_;          // null: a snapshot
  const std::shared_ptr<const GraphState> fixed_;  // null: a live graph
};

Result<LiveGraph*> Graph::Impl::Writable() const {
  if (live_ != nullptr) return live_.get();
  return Fail(Status::InvalidArgument(fmt::format(
      "{}: this graph is a read-only view; write to the graph of a store that is open for writing",
      fixed_->parts()->store->path().string())));
}

Graph::Graph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Graph::~Graph() = default;

Result<std::unique_ptr<Graph>> Graph::Own(std::unique_ptr<Store> store,
                                          const GraphOptions& options) {
  RHIZOME_ASSIGN_OR_RETURN(auto state, GraphState::Load(store->Snapshot(), options));
  Store& opened = *store;
  return std::unique_ptr<Graph>(
      new Graph(std::make_unique<Impl>(opened, std::move(state), std::move(store))));
}

Result<std::unique_ptr<Graph>> Graph::Open(const Path& path, const OpenOptions& options) {
  return Guarded([&]() -> Result<std::unique_ptr<Graph>> {
    RHIZOME_ASSIGN_OR_RETURN(auto store,
                             Store::Open(FileSystem::Posix(), path, options.mode, options.store));
    return Own(std::move(store), options.graph);
  });
}

Result<std::unique_ptr<Graph>> Graph::Create(const Path& path, const GraphSchema& schema,
                                             const StoreOptions& options) {
  return Guarded([&]() -> Result<std::unique_ptr<Graph>> {
    RHIZOME_ASSIGN_OR_RETURN(auto store,
                             CreateEmptyStore(FileSystem::Posix(), path, schema, options));
    return Own(std::move(store), {});
  });
}

Result<std::unique_ptr<Graph>> Graph::Open(Store& store, const GraphOptions& options) {
  return Guarded([&]() -> Result<std::unique_ptr<Graph>> {
    RHIZOME_ASSIGN_OR_RETURN(auto state, GraphState::Load(store.Snapshot(), options));
    return std::unique_ptr<Graph>(new Graph(std::make_unique<Impl>(store, std::move(state))));
  });
}

Result<std::unique_ptr<GraphSnapshot>> Graph::Open(const Store& store,
                                                   const GraphOptions& options) {
  return Guarded([&]() -> Result<std::unique_ptr<GraphSnapshot>> {
    RHIZOME_ASSIGN_OR_RETURN(auto state, GraphState::Load(store.Snapshot(), options));
    return std::unique_ptr<GraphSnapshot>(
        new GraphSnapshot(std::make_unique<Impl>(std::move(state))));
  });
}

// Returns a snapshot of the current state. A live graph caches it, because each look-up needs one
// until the next write.
std::shared_ptr<const GraphSnapshot> Graph::Snapshot() const {
  LiveGraph* const live = impl_->live();
  if (live != nullptr) {
    if (auto kept = live->kept_snapshot()) return kept;
  }
  auto state = impl_->state();
  std::shared_ptr<const GraphSnapshot> made(new GraphSnapshot(std::make_unique<Impl>(state)));
  if (live != nullptr) live->Keep(state, made);
  return made;
}

Result<WriteResult> Graph::Write(const WriteBatch& batch, const WriteOptions& options) {
  return Guarded([&]() -> Result<WriteResult> {
    RHIZOME_ASSIGN_OR_RETURN(LiveGraph* const live, impl_->Writable());
    return live->Write(batch, options);
  });
}
Result<CompactResult> Graph::Compact(const CompactOptions& options, const JobControl& control) {
  return Guarded([&]() -> Result<CompactResult> {
    RHIZOME_ASSIGN_OR_RETURN(LiveGraph* const live, impl_->Writable());
    return live->Compact({}, options, control);
  });
}
Result<CompactResult> Graph::Alter(const SchemaChange& change, const CompactOptions& options,
                                   const JobControl& control) {
  return Guarded([&]() -> Result<CompactResult> {
    RHIZOME_ASSIGN_OR_RETURN(LiveGraph* const live, impl_->Writable());
    if (change.empty()) return CompactResult{};
    return live->Compact(change, options, control);
  });
}
Status Graph::Refresh() {
  return Guarded([&] { return impl_->Refresh(); });
}

std::uint64_t Graph::sequence() const { return impl_->use()->delta()->sequence(); }
std::uint64_t Graph::vertex_count() const { return impl_->use()->delta()->vertices(); }
std::uint64_t Graph::live_vertex_count() const {
  const auto state = impl_->use();
  return state->delta()->vertices() - state->delta()->deleted_vertices() -
         state->parts()->ids.deleted_count();
}

Result<std::uint64_t> Graph::CountEdges() const try {
  const auto state = impl_->use();
  RHIZOME_ASSIGN_OR_RETURN(const auto view, state->View());
  return view == nullptr ? state->info().edges : view->edge_count();
} catch (...) {
  return Fail(StatusOfException());
}

std::vector<std::string> Graph::vertex_types() const {
  return impl_->use()->delta()->vertex_types();
}
std::vector<std::string> Graph::edge_types() const { return impl_->use()->delta()->edge_types(); }
std::vector<EdgeEnds> Graph::edge_ends() const {
  const auto state = impl_->use();
  return EdgeEndsOf(*state->parts(), *state->delta());
}
std::vector<std::uint64_t> Graph::live_vertices_by_type() const {
  const auto state = impl_->use();
  return VerticesByType(*state->parts(), *state->delta());
}
std::vector<EdgeAttributeInfo> Graph::edge_attributes() const {
  return impl_->use()->parts()->edge_attributes;
}

Result<VertexId> Graph::Find(const ExternalId& id) const try {
  const auto state = impl_->use();
  const auto vertex = state->parts()->Find(id, *state->delta());
  if (!vertex)
    return Fail(Status::NotFound(fmt::format("{}: there is no vertex with the external id \"{}\"",
                                             state->store()->path().string(), ToString(id))));
  return *vertex;
} catch (...) {
  return Fail(StatusOfException());
}

Result<VertexId> Graph::FindText(std::string_view text) const try {
  return Find(ExternalId(std::string(text)));
} catch (...) {
  return Fail(StatusOfException());
}

Result<ExternalId> Graph::ExternalIdOf(VertexId vertex) const try {
  const auto state = impl_->use();
  RHIZOME_RETURN_IF_ERROR(state->CheckHolds(vertex));
  const GraphParts& parts = *state->parts();
  return static_cast<std::uint64_t>(vertex) < parts.order.size() ? parts.ids.IdOf(vertex)
                                                                 : state->delta()->IdOf(vertex);
} catch (...) {
  return Fail(StatusOfException());
}

std::string Graph::NameOf(VertexId vertex) const {
  const auto id = ExternalIdOf(vertex);
  return id ? ToString(*id) : std::string();
}

bool Graph::IsDeleted(VertexId vertex) const {
  const auto state = impl_->use();
  if (!state->CheckHolds(vertex).ok()) return true;
  return state->delta()->IsDeleted(vertex) || state->parts()->ids.IsDeleted(vertex);
}

Result<Row> Graph::RowOf(VertexId vertex) const try {
  const auto state = impl_->use();
  RHIZOME_RETURN_IF_ERROR(state->CheckHolds(vertex));
  return state->parts()->RowOf(vertex);
} catch (...) {
  return Fail(StatusOfException());
}

Result<VertexId> Graph::VertexAt(Row row) const try {
  const auto state = impl_->use();
  RHIZOME_RETURN_IF_ERROR(state->CheckHolds(row, "row"));
  return state->parts()->VertexAt(row);
} catch (...) {
  return Fail(StatusOfException());
}

Result<TypeId> Graph::TypeOf(VertexId vertex) const try {
  const auto state = impl_->use();
  RHIZOME_RETURN_IF_ERROR(state->CheckHolds(vertex));
  return TypeOfVertex(state->parts()->order, *state->delta(), vertex);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::uint64_t> Graph::Degree(VertexId vertex, Direction direction) const try {
  const auto state = impl_->use();
  RHIZOME_RETURN_IF_ERROR(state->CheckQuery(vertex, direction));
  std::uint64_t degree = 0;
  for (const Direction list : ListsOf(state->info(), direction)) {
    if (!state->delta()->Touches(vertex, list) &&
        static_cast<std::uint64_t>(vertex) < state->parts()->order.size()) {
      RHIZOME_ASSIGN_OR_RETURN(const std::uint64_t stored, state->DegreeInGeneration(vertex, list));
      degree += stored;
      continue;
    }
    std::vector<Neighbor> neighbors;
    RHIZOME_RETURN_IF_ERROR(state->Gather(vertex, list, std::nullopt, neighbors));
    degree += neighbors.size();
  }
  return degree;
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<Neighbor>> Graph::Neighbors(VertexId vertex, Direction direction) const try {
  return impl_->use()->Lists(vertex, direction, std::nullopt);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::vector<Neighbor>> Graph::Neighbors(std::string_view id, Direction direction) const {
  RHIZOME_ASSIGN_OR_RETURN(const VertexId vertex, FindText(id));
  return Neighbors(vertex, direction);
}

Result<std::vector<Neighbor>> Graph::NeighborsOfType(VertexId vertex, Direction direction,
                                                     TypeId type) const try {
  const auto state = impl_->use();
  const std::size_t types = state->delta()->edge_types().size();
  if (type >= types)
    return Fail(Status::InvalidArgument(
        fmt::format("there is no edge type {}: the graph has {} edge types", type, types)));
  return state->Lists(vertex, direction, type);
} catch (...) {
  return Fail(StatusOfException());
}

Status Graph::ReadRows(std::string_view array, std::span<const VertexId> vertices,
                       std::span<std::byte> out) const try {
  const auto state = impl_->use();
  const GraphParts& parts = *state->parts();
  RHIZOME_ASSIGN_OR_RETURN(const auto rows, parts.arrays->Of(*state->store(), array));
  RHIZOME_RETURN_IF_ERROR(
      CheckRowRequest(rows->entry(), parts.info(), vertices.size(), out.size()));
  std::vector<RowTarget> targets(vertices.size());
  const RowOverlay overlay{*state->store(), parts, *state->delta(), rows->entry()};
  RHIZOME_ASSIGN_OR_RETURN(const std::size_t count, overlay.Split(vertices, out, targets));
  return rows->Read(std::span(targets).first(count));
} catch (...) {
  return StatusOfException();
}

Result<TypeId> Graph::TypeOfEdge(EdgeId edge) const try {
  const auto state = impl_->use();
  const auto& partitions = state->parts()->partitions;
  if (edge.partition >= partitions.size() ||
      edge.position >= partitions[edge.partition].edge_count()) {
    return Fail(Status::InvalidArgument(fmt::format(
        "there is no edge {} in partition {} of this generation", edge.position, edge.partition)));
  }
  RHIZOME_RETURN_IF_ERROR(state->parts()->CheckLoaded(edge.partition, "the type of an edge"));
  return partitions[edge.partition].TypeOfEdge(edge.position);
} catch (...) {
  return Fail(StatusOfException());
}

Result<std::uint64_t> Graph::CountDeleted(const Store& store) {
  return Guarded([&] { return CountDeletedVertices(store); });
}

std::uint64_t Graph::topology_bytes() const {
  std::uint64_t bytes = 0;
  for (const Adjacency& partition : impl_->use()->parts()->partitions)
    bytes += partition.size_bytes();
  return bytes;
}

GraphSnapshot::~GraphSnapshot() = default;

const GenerationInfo& GraphSnapshot::info() const { return impl().use()->info(); }
std::uint64_t GraphSnapshot::generation_edge_count() const { return info().edges; }
const Store& GraphSnapshot::store() const { return *impl().use()->store(); }
StorePoint GraphSnapshot::point() const {
  const auto state = impl().use();
  const Manifest& manifest = state->store()->manifest();
  return {.store = state->store()->id(),
          .generation = manifest.generation,
          .manifest_version = manifest.version,
          .base_sequence = state->store()->base_sequence(),
          .first_commit = state->delta()->first_commit(),
          .sequence = state->delta()->sequence(),
          .state = {.files = state->store()->HashOfFiles(), .commits = history().commits}};
}

HistoryState GraphSnapshot::history() const {
  const auto state = impl().use();
  if (state->delta()->state().known()) return state->delta()->state();
  return state->store()->StateAt(state->delta()->sequence()).value_or(HistoryState{});
}

StateId GraphSnapshot::StateWith(std::span<const std::string> arrays) const {
  const Manifest& manifest = store().manifest();
  std::vector<std::byte> facts;
  const auto add = [&](const Hash128& hash) {
    facts.insert(facts.end(), hash.begin(), hash.end());
  };
  add(HashOfGraph(manifest));
  for (const std::string& name : arrays)
    if (const ArrayEntry* const array = manifest.FindArray(name))
      add(HashOfArray(manifest, *array));
  return {.files = Xxh3(facts), .commits = history().commits};
}

std::uint32_t GraphSnapshot::partition_count() const {
  return static_cast<std::uint32_t>(impl().use()->parts()->partitions.size());
}

bool GraphSnapshot::is_loaded(std::uint32_t p) const { return partition(p).loaded(); }

const Adjacency& GraphSnapshot::partition(std::uint32_t p) const {
  RHIZOME_CHECK(p < partition_count());
  return impl().use()->parts()->partitions[p];
}

GraphSnapshot::DeltaSize GraphSnapshot::delta_size() const {
  const auto changes = delta();
  return {.entries = changes->entries(), .runs = changes->runs()};
}

std::vector<VertexId> GraphSnapshot::ChangedRows(const ArrayEntry& array) const {
  std::vector<VertexId> changed;
  const auto merged = delta()->Merged();
  if (merged == nullptr) return changed;
  for (const DeltaRowRef& row : merged->rows)
    if (row.array_id == array.array_id && !IsDeleted(row.vertex)) changed.push_back(row.vertex);
  return changed;
}

Result<Staleness> GraphSnapshot::StalenessOf(const ArrayEntry& array) const {
  return StalenessFrom(store(), *parts(), sequence(), array);
}

const VertexOrder& GraphSnapshot::order() const { return impl().use()->parts()->order; }
std::shared_ptr<const GraphParts> GraphSnapshot::parts() const { return impl().use()->parts(); }
std::shared_ptr<const Delta> GraphSnapshot::delta() const { return impl().use()->delta(); }
Result<std::shared_ptr<const DeltaView>> GraphSnapshot::delta_view() const {
  return Guarded([&] { return impl().use()->View(); });
}

}  // namespace rhizome
