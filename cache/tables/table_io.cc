#include "cache/tables/table_io.h"

#include <utility>

#include "storage/base/exceptions.h"
#include "storage/base/stopwatch.h"

namespace rhizome {
inline namespace internal {

Status TableIo::Start() {
  return thread_.Start([this] {
    Run();
    return Status::Ok();
  });
}

TableIo::~TableIo() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    changed_.NotifyAll();
  }
  static_cast<void>(thread_.Join());
}

std::uint64_t TableIo::Push(Job job) {
  MutexLock lock(mutex_);
  const std::size_t bytes = job.write.bytes.size();
  const Stopwatch watch;
  while (bytes > 0 && waiting_bytes_ > 0 && waiting_bytes_ + bytes > most_bytes_)
    changed_.Wait(mutex_);
  if (bytes > 0) wait_seconds_ += watch.seconds();
  waiting_bytes_ += bytes;
  jobs_.push_back(std::move(job));
  changed_.NotifyAll();
  return ++pushed_;
}

void TableIo::Write(RowCopies copies) {
  if (!copies.rows.empty()) Push({.write = std::move(copies), .read = {}});
}

std::uint64_t TableIo::Read(std::vector<RowTarget> targets) {
  return Push({.write = {}, .read = std::move(targets)});
}

Status TableIo::WaitFor(std::uint64_t ticket) {
  MutexLock lock(mutex_);
  const Stopwatch watch;
  while (done_ < ticket) changed_.Wait(mutex_);
  wait_seconds_ += watch.seconds();
  return status_;
}

Status TableIo::WaitForAll() {
  std::uint64_t last = 0;
  {
    MutexLock lock(mutex_);
    last = pushed_;
  }
  return WaitFor(last);
}

void TableIo::Run() {
  while (true) {
    Job job;
    bool failed = false;
    {
      MutexLock lock(mutex_);
      while (jobs_.empty() && !stopped_) changed_.Wait(mutex_);
      if (stopped_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
      failed = !status_.ok();
    }
    const std::size_t bytes = job.write.bytes.size();
    Status status;
    if (!failed) status = Guarded([&] { return Do(job); });
    MutexLock lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
    waiting_bytes_ -= bytes;
    ++done_;
    changed_.NotifyAll();
  }
}

Status TableIo::Do(Job& job) {
  std::vector<RowWrite> sources;
  sources.reserve(job.write.rows.size());
  const std::byte* at = job.write.bytes.data();
  for (const Row row : job.write.rows) {
    sources.push_back({row, at});
    at += table_.row_bytes();
  }
  if (!sources.empty()) RHIZOME_RETURN_IF_ERROR(table_.Write(sources));
  return job.read.empty() ? Status::Ok() : table_.Read(job.read);
}

}  // namespace internal
}  // namespace rhizome
