#include "rhizome/index/graph_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "rhizome/index/batch_resolver.h"

namespace rhizome {

namespace {

// Operations that go into one write of the catalogue: its memory is bounded, its sync shared.
constexpr std::size_t kGroupOperations = std::size_t{1} << 16;

// The catalogue keeps a record as one value, which it holds in memory more than once.
constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 30;

}  // namespace

GraphWriter::GraphWriter(Store& store, Base base, Publish publish)
    : store_(store), publish_(std::move(publish)), base_(std::move(base)) {}

void GraphWriter::Queue(Request& request) {
  queue_.push_back(&request);
  while (!request.done && queue_.front() != &request) turn_.Wait(mutex_);
}

// The batches from the front on, up to a Rebase.
std::vector<GraphWriter::Request*> GraphWriter::Group() const {
  std::vector<Request*> group;
  std::size_t operations = 0;
  for (Request* request : queue_) {
    if (request->batch == nullptr) break;
    operations += request->batch->size();
    if (!group.empty() && operations > kGroupOperations) break;
    group.push_back(request);
  }
  return group;
}

void GraphWriter::Leave(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) queue_[i]->done = true;
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
  turn_.NotifyAll();
}

Result<WriteResult> GraphWriter::Write(const WriteBatch& batch, const WriteOptions& options) {
  std::optional<IoPacer::Commit> commit;
  if (options.sync) commit.emplace(pacer_);
  Request own{.batch = &batch, .options = options, .result = {}};
  std::vector<Request*> group;
  {
    const MutexLock lock(mutex_);
    Queue(own);
    if (own.done) return *std::move(own.result);
    group = Group();
  }
  Commit(group);
  const MutexLock lock(mutex_);
  Leave(group.size());
  return *std::move(own.result);
}

std::size_t GraphWriter::pending() const {
  const MutexLock lock(mutex_);
  return queue_.size();
}

Status GraphWriter::Rebase(const std::function<Result<Base>()>& change) {
  Request own;
  {
    const MutexLock lock(mutex_);
    Queue(own);
  }
  auto base = change();
  if (base) {
    base_ = *std::move(base);
    publish_(base_);
  }
  const MutexLock lock(mutex_);
  Leave(1);
  return base ? Status::Ok() : base.error();
}

// Gives every request its result. A batch that does not fit is refused by itself.
void GraphWriter::Commit(const std::vector<Request*>& group) {
  std::shared_ptr<const Delta> delta = base_.delta;
  std::vector<Resolved> resolved;
  const auto make = [&](std::uint64_t sequence) {
    for (Request* request : group) Resolve(*request, sequence, delta, resolved);
    std::vector<DeltaCommit> commits;
    commits.reserve(resolved.size());
    for (const Resolved& one : resolved)
      commits.push_back({.sequence = one.sequence, .record = one.record, .rows = one.rows});
    return commits;
  };
  const bool sync = std::any_of(group.begin(), group.end(),
                                [](const Request* request) { return request->options.sync; });
  Status status;
  try {
    status = store_.CommitDelta(sync, make);
  } catch (const std::bad_alloc&) {
    status = Status::OutOfMemory("no memory for the changes of a batch; write smaller ones");
  }
  if (!status.ok()) {
    for (Request* request : group) request->result = Fail(status);
  } else if (!resolved.empty()) {
    base_.delta = std::move(delta);
    publish_(base_);
    Count(group, resolved);
  }
}

void GraphWriter::Count(const std::vector<Request*>& group,
                        const std::vector<Resolved>& resolved) const {
  Metrics* const metrics = store_.metrics();
  if (metrics == nullptr) return;
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  for (const Request* request : group)
    if (request->result->has_value()) operations += request->batch->size();
  for (const Resolved& one : resolved) {
    bytes += one.record.size();
    for (const DeltaRow& row : one.rows) bytes += row.bytes.size();
  }
  metrics->Add(Counter::kGroupCommits);
  metrics->Add(Counter::kWrites, resolved.size());
  metrics->Add(Counter::kWriteOperations, operations);
  metrics->Add(Counter::kWriteBytes, bytes);
}

void GraphWriter::Resolve(Request& request, std::uint64_t& sequence,
                          std::shared_ptr<const Delta>& delta, std::vector<Resolved>& resolved) {
  BatchResolver resolver(*base_.store, *base_.parts, *delta, request.options);
  if (Status refused = resolver.Resolve(*request.batch); !refused.ok()) {
    request.result = Fail(std::move(refused));
    return;
  }
  const bool empty = request.batch->empty();
  request.result = WriteResult{.commit = empty ? delta->sequence() : sequence,
                               .vertices_added = resolver.vertices_added()};
  if (empty) return;
  DeltaRun run = resolver.builder().Finish(sequence);
  std::vector<std::byte> record = EncodeDeltaRecord(run, delta->Context());
  if (record.size() > kMaxRecordBytes) {
    request.result = Fail(Status::InvalidArgument(fmt::format(
        "a batch of {} bytes is too large; write batches of fewer operations", record.size())));
    return;
  }
  resolved.push_back({.sequence = sequence, .record = std::move(record), .rows = resolver.rows()});
  delta = delta->With(std::move(run));
  ++sequence;
}

}  // namespace rhizome
