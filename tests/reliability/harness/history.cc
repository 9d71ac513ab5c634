#include "reliability/harness/history.h"

#include <utility>

#include "reliability/harness/description.h"
#include "rhizome/status.h"
#include "storage/io/files.h"

namespace rhizome::testing {

Recorder::Recorder(std::string name, StoreDisk& disk) : disk_(&disk) {
  history_.name = std::move(name);
  broken_ = Look();
  disk_->SetProgress(0, 0);
  disk_->RecordCrashPoints();
}

Status Recorder::Step(const std::function<Status()>& step, bool durable) {
  RHIZOME_RETURN_IF_ERROR(broken_);
  ++begun_;
  if (disk_ != nullptr) disk_->SetProgress(acknowledged_, begun_);
  RHIZOME_RETURN_IF_ERROR(step());
  done_ = begun_;
  if (durable) acknowledged_ = begun_;
  if (disk_ == nullptr) return Status::Ok();
  RHIZOME_RETURN_IF_ERROR(Look());
  disk_->SetProgress(acknowledged_, begun_);
  return Status::Ok();
}

Result<History> Recorder::Finish() {
  RHIZOME_RETURN_IF_ERROR(broken_);
  history_.points = disk_->TakeCrashPoints();
  history_.points.push_back(
      {disk_->operation_count(), "the end", acknowledged_, begun_, disk_->Image()});
  return std::move(history_);
}

// Reads a copy of the disk, so that the reads are not operations of the history.
Status Recorder::Look() {
  StoreDisk copy(disk_->ImageAfterCrash(FakeFileSystem::CrashMode::kKeepUnsynced, 0));
  RHIZOME_ASSIGN_OR_RETURN(history_.states.emplace_back(), Describe(copy, kStorePath));
  return Status::Ok();
}

Result<History> Record(const Scenario& scenario) {
  StoreDisk disk;
  RHIZOME_RETURN_IF_ERROR(CreateDirectories(disk, kStorePath.parent_path()));
  RHIZOME_RETURN_IF_ERROR(scenario.prepare(disk));
  Recorder recorder(scenario.name, disk);
  RHIZOME_RETURN_IF_ERROR(scenario.run(disk, recorder));
  if (disk.lock_count() != 0)
    return Fail(Status::Busy(scenario.name + ": locks are still held when all is closed"));
  if (!recorder.complaint().empty()) return Fail(Status::Corruption(recorder.complaint()));
  return recorder.Finish();
}

}  // namespace rhizome::testing
