#include "index/generation/read_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace rhizome {
inline namespace internal {

namespace {

// The follower reads only a few pieces ahead of the one that it hashes, because other threads use
// the disk concurrently.
constexpr std::uint32_t kFollowerDepth = 4;

}  // namespace

ReadBack::ReadBack(FileSystem& fs, IoPacer* pacer, const JobControl& control)
    : fs_(fs), pacer_(pacer), control_(control) {
  static_cast<void>(follower_.Start([this] { return Follow(); }));
}

ReadBack::~ReadBack() { static_cast<void>(Stop()); }

// Ends the follower thread and returns its result.
Status ReadBack::Stop() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.NotifyAll();
  return follower_.Join();
}

void ReadBack::Add(const Path& root, const FileEntry& file) {
  if (!follower_.started()) return;
  {
    const MutexLock lock(mutex_);
    waiting_.push_back({root, file});
    seen_.insert(file.path);
  }
  changed_.NotifyAll();
}

// The main loop of the follower thread. It reports no progress, because the writer does; it only
// forwards a cancellation.
Status ReadBack::Follow() {
  JobControl* own = nullptr;
  JobControl quiet([&](const JobControl::Progress&) {
    if (control_.cancelled()) own->Cancel();
  });
  own = &quiet;
  while (true) {
    std::vector<Task> tasks;
    {
      const MutexLock lock(mutex_);
      while (waiting_.empty() && !ended_) changed_.Wait(mutex_);
      if (waiting_.empty()) return Status::Ok();
      tasks.swap(waiting_);
    }
    RHIZOME_RETURN_IF_ERROR(
        Compare(tasks, {.threads = 1, .io = {.depth = kFollowerDepth}, .pacer = pacer_}, quiet));
  }
}

Status ReadBack::Compare(const std::vector<Task>& tasks, const ScanOptions& options,
                         const JobControl& control) {
  std::vector<ScanFile> files;
  files.reserve(tasks.size());
  for (const Task& task : tasks)
    files.push_back({task.root / task.file.path, task.file.size_bytes});
  RHIZOME_ASSIGN_OR_RETURN(const auto outcomes, ScanFiles(fs_, files, options, control));
  for (std::size_t i = 0; i < files.size(); ++i) {
    RHIZOME_RETURN_IF_ERROR(outcomes[i].status);
    const FileEntry& wanted = tasks[i].file;
    if (outcomes[i].xxh3 != wanted.xxh3 || outcomes[i].crc32c != wanted.crc32c)
      return Status::Corruption(fmt::format(
          "'{}': the bytes read back do not have the hash of the bytes written; check the disk",
          files[i].path.string()));
  }
  return Status::Ok();
}

Status ReadBack::Finish(const Path& root, const std::vector<FileEntry>& files,
                        std::uint32_t threads) {
  RHIZOME_RETURN_IF_ERROR(Stop());
  std::vector<Task> tasks;
  {
    const MutexLock lock(mutex_);
    for (const FileEntry& file : files)
      if (!seen_.contains(file.path)) tasks.push_back({root, file});
  }
  return Compare(tasks, {.threads = std::max(threads, 1U), .pacer = pacer_}, control_);
}

}  // namespace internal
}  // namespace rhizome
