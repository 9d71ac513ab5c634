// Group commit. Write queues its request and waits until another writer has handled it or it is
// first in the queue. The first writer takes the batches at the front (FirstGroup), resolves them,
// and writes them as one commit of the catalogue (Commit); then it publishes the new state and
// wakes the writers of the group (Leave).

#include "index/graph/graph_writer.h"

#include <fmt/format.h>

#include <utility>

#include "index/delta/batch_resolver.h"
#include "storage/base/exceptions.h"
#include "storage/catalog/delta_head.h"

namespace rhizome {
inline namespace internal {

namespace {

// Maximum number of operations in one write of the catalogue, which bounds its memory; the group
// shares one sync.
constexpr std::size_t kGroupOperations = std::size_t{1} << 16;

// The catalogue stores a record as one value, and holds several copies of it in memory.
constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 30;

}  // namespace

GraphWriter::GraphWriter(Store& store, Base base, Make make, Show show)
    : store_(store), make_(std::move(make)), show_(std::move(show)), base_(std::move(base)) {}

// Enqueues a request and waits until it is first in the queue, or done.
void GraphWriter::Queue(Request& request) noexcept {
  (last_ == nullptr ? first_ : last_->behind) = &request;
  last_ = &request;
  ++queued_;
  while (!request.done && first_ != &request) turn_.Wait(mutex_);
}

// Returns the batches at the front of the queue, up to a request of Alone.
GraphWriter::Group GraphWriter::FirstGroup() const noexcept {
  Group group{first_, 0};
  std::size_t operations = 0;
  for (const Request* request = first_; request != nullptr; request = request->behind) {
    if (request->batch == nullptr) break;
    operations += request->batch->size();
    if (group.count > 0 && operations > kGroupOperations) break;
    ++group.count;
  }
  return group;
}

void GraphWriter::Leave(const Group& group) noexcept {
  for (std::size_t i = 0; i < group.count; ++i) {
    first_->done = true;
    first_ = first_->behind;
    --queued_;
  }
  if (first_ == nullptr) last_ = nullptr;
  turn_.NotifyAll();
}

Result<WriteResult> GraphWriter::Write(const WriteBatch& batch, const WriteOptions& options) {
  std::optional<IoPacer::Commit> commit;
  if (options.sync) commit.emplace(pacer_);
  Request own{.batch = &batch, .options = options, .result = {}};
  Group group;
  {
    const MutexLock lock(mutex_);
    Queue(own);
    if (own.done) return *std::move(own.result);
    group = FirstGroup();
  }
  Commit(group);
  const MutexLock lock(mutex_);
  Leave(group);
  return *std::move(own.result);
}

std::size_t GraphWriter::pending() const {
  const MutexLock lock(mutex_);
  return queued_;
}

Status GraphWriter::Rebase(const std::function<Result<Base>()>& change,
                           const std::function<Status()>& commit) {
  return Alone([&] { return Switch(change, commit); });
}

Status GraphWriter::Switch(const std::function<Result<Base>()>& change,
                           const std::function<Status()>& commit) {
  RHIZOME_ASSIGN_OR_RETURN(Base base, change());
  auto state = make_(base);
  RHIZOME_RETURN_IF_ERROR(commit());
  base_ = std::move(base);
  dictionaries_.Clear();
  show_(std::move(state));
  return Status::Ok();
}

Status GraphWriter::Alone(const std::function<Status()>& work) {
  Request own;
  {
    const MutexLock lock(mutex_);
    Queue(own);
  }
  const Status status = Guarded(work);
  const MutexLock lock(mutex_);
  Leave({&own, 1});
  return status;
}

// Sets the result of every request. A batch that does not fit the store is refused without
// affecting the others.
void GraphWriter::Commit(const Group& group) noexcept {
  Next next;
  const Status status = Guarded([&] { return TryCommit(group, next); });
  if (!status.ok()) {
    group.ForEach([&](Request& request) {
      auto refused = Guarded([&]() -> Result<WriteResult> { return Fail(status); });
      request.result = std::move(refused);
    });
  } else if (!next.resolved.empty()) {
    base_.delta = std::move(next.delta);
    show_(std::move(next.state));
    Count(group, next.resolved);
  }
}

// Everything that allocates memory happens before the write.
Status GraphWriter::TryCommit(const Group& group, Next& next) {
  bool sync = false;
  group.ForEach([&](const Request& request) { sync = sync || request.options.sync; });
  next.delta = base_.delta;
  return store_.CommitDelta(sync, [&](std::uint64_t sequence, const HistoryState& before) {
    next.history = before;
    group.ForEach([&](Request& request) { Resolve(request, sequence, next); });
    std::vector<DeltaCommit> commits;
    commits.reserve(next.resolved.size());
    for (const Resolved& one : next.resolved)
      commits.push_back({.sequence = one.sequence, .record = one.record, .rows = one.rows});
    if (!commits.empty()) next.state = make_({base_.store, base_.parts, next.delta});
    return commits;
  });
}

void GraphWriter::Count(const Group& group, const std::vector<Resolved>& resolved) const noexcept {
  Metrics* const metrics = store_.metrics();
  if (metrics == nullptr) return;
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  group.ForEach([&](const Request& request) {
    if (request.result->has_value()) operations += request.batch->size();
  });
  for (const Resolved& one : resolved) {
    bytes += one.record.size();
    for (const DeltaRow& row : one.rows) bytes += row.bytes.size();
  }
  metrics->Add(Counter::kGroupCommits);
  metrics->Add(Counter::kWrites, resolved.size());
  metrics->Add(Counter::kWriteOperations, operations);
  metrics->Add(Counter::kWriteBytes, bytes);
}

void GraphWriter::Resolve(Request& request, std::uint64_t& sequence, Next& next) {
  BatchResolver resolver(*base_.store, *base_.parts, next.delta, dictionaries_, request.options);
  if (Status refused = resolver.Resolve(*request.batch); !refused.ok()) {
    request.result = Fail(std::move(refused));
    return;
  }
  const bool empty = request.batch->empty() && !request.options.leader;
  request.result = WriteResult{.commit = empty ? next.delta->sequence() : sequence,
                               .vertices_added = resolver.vertices_added()};
  if (empty) return;
  DeltaRun run = resolver.builder().Finish(sequence);
  run.state.leader = request.options.leader ? request.options.leader : next.history.leader;
  std::vector<std::byte> record = EncodeDeltaRecord(run, next.delta->Context());
  if (record.size() > kMaxRecordBytes) {
    request.result = Fail(Status::InvalidArgument(fmt::format(
        "a batch of {} bytes is too large; write batches of fewer operations", record.size())));
    return;
  }
  run.state.commits = SealDeltaRecord(record, next.history.commits, resolver.rows());
  next.history = run.state;
  next.resolved.push_back({.sequence = sequence,
                           .record = std::move(record),
                           .rows = resolver.rows(),
                           .row_bytes = resolver.TakeRowBytes()});
  next.delta = next.delta->With(std::move(run));
  ++sequence;
}

}  // namespace internal
}  // namespace rhizome
