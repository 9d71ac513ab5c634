#include "storage/catalog/catalog_threads.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "rhizome/status.h"

namespace rhizome {
inline namespace internal {

// The thread finishes the queued jobs before it ends (WorkOff).
CatalogThreads::Lane::~Lane() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
  }
  changed_.NotifyAll();
}

Status CatalogThreads::Lane::Start() {
  return thread_.Start([this] { return WorkOff(); });
}

Status CatalogThreads::Lane::WorkOff() {
  while (true) {
    Job job;
    {
      const MutexLock lock(mutex_);
      while (jobs_.empty() && !ends_) changed_.Wait(mutex_);
      if (jobs_.empty()) return Status::Ok();
      job = jobs_.front();
      jobs_.pop_front();
    }
    // RocksDB's work must not throw: a database that waits for unfinished work would never close.
    // So an exception ends the process.
    [&]() noexcept { job.work(job.argument); }();
  }
}

void CatalogThreads::Lane::Add(const Job& job) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(job);
  }
  changed_.NotifyAll();
}

int CatalogThreads::Lane::Remove(void* tag) {
  std::vector<Job> removed;
  {
    const MutexLock lock(mutex_);
    const auto has_tag = [&](const Job& job) { return job.tag == tag; };
    std::copy_if(jobs_.begin(), jobs_.end(), std::back_inserter(removed), has_tag);
    jobs_.erase(std::remove_if(jobs_.begin(), jobs_.end(), has_tag), jobs_.end());
  }
  for (const Job& job : removed)
    if (job.unscheduled != nullptr) job.unscheduled(job.argument);
  return static_cast<int>(removed.size());
}

std::size_t CatalogThreads::Lane::length() const {
  const MutexLock lock(mutex_);
  return jobs_.size();
}

CatalogThreads::~CatalogThreads() = default;

std::size_t CatalogThreads::LaneOf(rocksdb::Env::Priority priority) {
  return priority == rocksdb::Env::Priority::HIGH ? 1 : 0;
}

int CatalogThreads::CountOf(rocksdb::Env::Priority priority) {
  return priority == rocksdb::Env::Priority::HIGH || priority == rocksdb::Env::Priority::LOW ? 1
                                                                                             : 0;
}

Status CatalogThreads::Start() {
  for (Lane& lane : lanes_) RHIZOME_RETURN_IF_ERROR(lane.Start());
  // RocksDB starts one more thread itself, and leaves the database locked if it cannot. So first
  // check whether the system would grant one.
  Thread one_more;
  RHIZOME_RETURN_IF_ERROR(one_more.Start([] { return Status::Ok(); }));
  return one_more.Join();
}

void CatalogThreads::Schedule(rocksdb::Env::Priority priority, Work work, void* argument, void* tag,
                              Work unscheduled) {
  lanes_[LaneOf(priority)].Add({work, argument, tag, unscheduled});
}

int CatalogThreads::Unschedule(rocksdb::Env::Priority priority, void* tag) {
  return lanes_[LaneOf(priority)].Remove(tag);
}

std::size_t CatalogThreads::QueueLength(rocksdb::Env::Priority priority) const {
  return lanes_[LaneOf(priority)].length();
}

}  // namespace internal
}  // namespace rhizome
