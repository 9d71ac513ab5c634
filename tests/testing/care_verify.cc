#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "rhizome/backup.h"
#include "rhizome/store.h"
#include "rhizome/verify.h"
#include "storage/array_fixture.h"
#include "storage/maintenance/verify_files.h"
#include "testing/care.h"
#include "testing/harmed_store.h"

namespace rhizome::testing {
namespace {

/// Calls a function after each attempt to take a lock.
class NotedLocks final : public ForwardingFileSystem {
 public:
  explicit NotedLocks(std::function<void()> tried)
      : ForwardingFileSystem(Disk()), tried_(std::move(tried)) {}
  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override {
    auto lock = ForwardingFileSystem::Lock(path, mode, content);
    tried_();
    return lock;
  }

 private:
  const std::function<void()> tried_;
};

/// Starts a writer whenever a verification takes the writer's lock to check whether there is a
/// writer.
class WriterAtEveryLook final : public ForwardingFileSystem {
 public:
  WriterAtEveryLook(Path store, std::atomic<int>& writers)
      : ForwardingFileSystem(Disk()), store_(std::move(store)), writers_(writers) {}
  ~WriterAtEveryLook() override { Join(); }

  Result<std::unique_ptr<FileLock>> Lock(const Path& path, LockMode mode,
                                         std::string_view content) override {
    if (path != store_ / "LOCK") return ForwardingFileSystem::Lock(path, mode, content);
    Join();  // one writer at a time
    auto lock = ForwardingFileSystem::Lock(path, mode, content);
    ++count_;
    tried_ = false;
    writer_ = std::thread([this] {
      const auto tried = [this] {
        tried_ = true;
        tried_.notify_all();
      };
      NotedLocks disk(tried);
      writers_ += Store::Open(disk, store_, Store::Mode::kWrite).has_value();
      tried();  // if it failed before it tried the lock
    });
    tried_.wait(false);  // the lock is held while the writer tries to take it
    return lock;
  }

  /// Returns how often the lock was taken. All writers have ended.
  int count() {
    Join();
    return count_;
  }

 private:
  void Join() {
    if (writer_.joinable()) writer_.join();
  }
  const Path store_;
  std::atomic<int>& writers_;
  int count_ = 0;
  std::atomic<bool> tried_ = false;
  std::thread writer_;
};

}  // namespace

Complaint RottenSharedFilesAreCopiedAgain() {
  TempDir dir;
  const Path store = dir / "s";
  const Path backups = dir / "b";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  const auto back = [&](bool trust) {
    return BackupStore(Disk(), store, backups, {.keep = 0, .trust = trust}, JobControl());
  };
  if (const auto first = back(false); !first) return first.error().ToString();
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(backups / "files"))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Change(files.at(0), {0});
  std::filesystem::remove(files.at(1));
  const auto verified = VerifyBackups(Disk(), backups, JobControl());
  if (!verified || verified->damaged.size() != 2) return "verify overlooks rotten files";
  if (const auto trusting = back(true); !trusting || trusting->mended.size() != 1)
    return "a missing file is not copied again";
  const auto second = back(false);
  if (!second) return second.error().ToString();
  if (second->mended.size() != 1) return "a rotten file is shared";
  const auto after = VerifyBackups(Disk(), backups, JobControl());
  if (!after || !after->ok()) return "rotten files are left";
  for (const std::uint64_t number : {1, 2, 3}) {
    const auto restored =
        RestoreStore(Disk(), backups, dir / fmt::format("r{}", number), number, JobControl());
    if (!restored) return restored.error().ToString();
  }
  return std::nullopt;
}

Complaint VerifyLetsWritersIn() {
  TempDir dir;
  const Path store = dir / "s";
  if (!MakeStore(Disk(), store).ok()) return "no store";
  std::mutex one_at_a_time;  // files are read by several threads, which would exclude each other
  bool free = false;
  Watched fs([&](const Path& path) {
    const std::lock_guard lock(one_at_a_time);
    if (path.filename() == "c.0.0")
      free |= Disk().Lock(store / "LOCK", FileSystem::LockMode::kExclusive, "x\n").has_value();
    return Status::Ok();
  });
  const auto report = VerifyFiles(fs, store, JobControl());
  if (!report || !report->ok()) return "the store is not sound";
  if (!free) return "no writer comes in while chunks are read";
  std::atomic<int> writers = 0;
  WriterAtEveryLook looks(store, writers);
  const auto again = VerifyFiles(looks, store, JobControl());
  if (!again || !again->ok()) return "the store is not sound beside writers";
  const int count = looks.count();
  if (count == 0) return "verify looks for no writer: this test sees nothing";
  return writers == count ? std::nullopt : Complaint("a look at the lock refuses a writer");
}

}  // namespace rhizome::testing
