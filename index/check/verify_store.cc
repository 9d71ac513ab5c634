// Overlaps the two halves of a verification: a second thread checks the structure of the graph
// while the arrays are still being read. It uses the bytes of topology, order and ids that were
// read for their hashes.

#include <atomic>
#include <cstring>
#include <map>
#include <memory>

#include "index/check/topology_check.h"
#include "index/check/verify_graph.h"
#include "index/homes/home_array.h"
#include "rhizome/graph.h"
#include "rhizome/maintenance.h"
#include "storage/array/array_rules.h"
#include "storage/array/chunk_writer.h"
#include "storage/base/exceptions.h"
#include "storage/base/mutex.h"
#include "storage/base/threads.h"
#include "storage/maintenance/verify_files.h"

namespace rhizome {
namespace {

/// Checks the rows of a home array while they are read for their hashes.
/// Threads: any.
class SeenHomes {
 public:
  SeenHomes(ArrayEntry array, const StoredHomes& homes) : array_(std::move(array)), homes_(homes) {}

  void See(std::uint64_t row, std::span<const std::byte> bytes) {
    std::int32_t home = 0;
    std::memcpy(&home, bytes.data(), sizeof(home));
    rows_.fetch_add(1, std::memory_order_relaxed);
    if (homes_.Allows(home)) return;
    const MutexLock lock(mutex_);
    const auto [at, added] = wrong_.try_emplace(row / array_.chunk_rows, row, home);
    if (!added && row < at->second.first) at->second = {row, home};
  }

  /// Adds the first wrong row of each chunk. Returns whether all rows were checked.
  bool AddTo(TopologyFindings& findings) {
    if (rows_.load() != array_.rows) return false;
    const MutexLock lock(mutex_);
    for (const auto& [chunk, wrong] : wrong_)
      findings.damaged.push_back(
          {ChunkPath(array_.name, chunk), WrongHome(wrong.first, wrong.second, homes_.homes)});
    return true;
  }

 private:
  const ArrayEntry array_;
  const StoredHomes homes_;
  std::atomic<std::uint64_t> rows_{0};
  Mutex mutex_;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::int32_t>> wrong_
      RHIZOME_GUARDED_BY(mutex_);  // by chunk
};

/// Runs CheckTopology in a separate thread, on files that VerifyFiles hands over. Files that exceed
/// the memory limit are read again.
/// Threads: as FileTaker and GenerationFiles.
class OverlappedCheck : public FileTaker, public GenerationFiles {
 public:
  OverlappedCheck(FileSystem& fs, Path path) : fs_(fs), path_(std::move(path)) {}
  ~OverlappedCheck() override { End(false); }

  // Implements FileTaker.
  void Begin(const Manifest& manifest) override {
    auto opened = Store::Open(fs_, path_, Store::Mode::kRead);
    // A failure, or a newer generation of a writer, is detected again later.
    if (!opened || (*opened)->manifest().generation != manifest.generation || store_) return;
    store_ = *std::move(opened);
    const Status started = worker_.Start([this]() -> Status {
      RHIZOME_ASSIGN_OR_RETURN(findings_, CheckTopology(store_->manifest(), *this, quiet_));
      return Status::Ok();
    });
    if (!started.ok()) store_.reset();  // the check runs later instead
  }

  bool Wants(const FileEntry& file) const override {
    const std::string_view path = file.path;
    return store_ && (path.starts_with("topology/") || IsAlwaysHeld(path));
  }

  bool Admit(const FileEntry& file) override {
    const MutexLock lock(mutex_);
    const bool room =
        IsAlwaysHeld(file.path) || held_bytes_ + file.size_bytes <= kTopologyCheckBytes;
    if (!room) {
      files_[file.path].state = State::kElsewhere;
      changed_.NotifyAll();
    } else if (!IsAlwaysHeld(file.path)) {
      held_bytes_ += files_[file.path].held_bytes = file.size_bytes;
    }
    return room;
  }

  void Take(const FileEntry& file, std::optional<std::vector<std::byte>> bytes) override {
    const MutexLock lock(mutex_);
    Held& held = files_[file.path];
    held.state = bytes ? State::kHere : State::kDamaged;
    if (bytes) held.bytes = *std::move(bytes);
    changed_.NotifyAll();
  }

  SeeRow RowsOf(const ArrayEntry& array) override {
    const auto homes = HomesOfArray(array);
    if (!homes || !*homes) return {};  // VerifyOpened reports the error
    SeenHomes& seen = homes_.try_emplace(array.name, array, **homes).first->second;
    return [&seen](std::uint64_t row, std::span<const std::byte> bytes) { seen.See(row, bytes); };
  }

  // Implements GenerationFiles.
  Result<SectionFile> Load(const std::string& path, FileKind kind) override {
    std::vector<std::byte> bytes;
    {
      const MutexLock lock(mutex_);
      while (!ended_ && files_[path].state == State::kAwaited) changed_.Wait(mutex_);
      RHIZOME_RETURN_IF_ERROR(quiet_.CheckCancelled());
      Held& held = files_[path];
      if (held.state == State::kDamaged)
        // VerifyFiles reports the details.
        return Fail(Status::Corruption("'" + path + "': damaged"));
      // The bytes are returned only once; a second Load reads the file again.
      if (std::exchange(held.state, State::kElsewhere) == State::kHere)
        bytes = std::move(held.bytes);
    }
    if (bytes.empty()) return store_->LoadSectionFile(path, kind);
    return SectionFile::Parse(std::move(bytes), store_->GenerationFolder() / path, kind,
                              store_->id());
  }

  void Release(const std::string& path) override {
    const MutexLock lock(mutex_);
    held_bytes_ -= std::exchange(files_[path].held_bytes, 0);
  }

  /// Must be called when VerifyFiles is done. Waits for the findings if they are wanted; otherwise
  /// cancels the check.
  void End(bool wanted) {
    if (!worker_.started()) return;
    if (!wanted) quiet_.Cancel();
    {
      const MutexLock lock(mutex_);
      ended_ = true;
      changed_.NotifyAll();
    }
    if (const Status status = worker_.Join(); !status.ok()) findings_ = Fail(status);
    if (!findings_) return;
    for (auto& [name, seen] : homes_)
      if (seen.AddTo(*findings_)) findings_->homes_seen.insert(name);
  }

  /// Valid after End(true); null if nothing was checked.
  const std::shared_ptr<const Store>& store() const { return store_; }
  Result<TopologyFindings>& findings() { return findings_; }

 private:
  enum class State { kAwaited, kHere, kElsewhere, kDamaged };
  struct Held {
    State state = State::kAwaited;
    std::vector<std::byte> bytes;
    std::uint64_t held_bytes = 0;  // until it is released
  };
  /// Returns whether a file is held in memory until the end, regardless of the limit.
  static bool IsAlwaysHeld(std::string_view path) {
    return path.starts_with("order/") || path.starts_with("ids/");
  }

  FileSystem& fs_;
  const Path path_;
  std::shared_ptr<const Store> store_;  // constant once the worker runs
  JobControl quiet_;                    // discards progress, because the scan reports it
  Thread worker_;
  // The worker owns the findings until it is joined.
  Result<TopologyFindings> findings_ = TopologyFindings();

  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Held> files_ RHIZOME_GUARDED_BY(mutex_);
  std::map<std::string, SeenHomes> homes_;  // filled before the scan begins
  std::uint64_t held_bytes_ RHIZOME_GUARDED_BY(mutex_) = 0;
  bool ended_ RHIZOME_GUARDED_BY(mutex_) = false;
};

}  // namespace

Result<VerifyReport> VerifyStore(FileSystem& fs, const Path& store, const JobControl& control) try {
  OverlappedCheck check(fs, store);
  auto report = VerifyFiles(fs, store, control, &check);
  // Checking a damaged graph would only repeat the damage in other words.
  if (!report || !report->ok()) return report;
  RHIZOME_RETURN_IF_ERROR(control.Report({.phase = "verify topology"}));
  check.End(true);
  if (check.store() == nullptr) {
    RHIZOME_RETURN_IF_ERROR(VerifyGraph(fs, store, control, *report));
    return report;
  }
  RHIZOME_RETURN_IF_ERROR(control.CheckCancelled());
  if (!check.findings()) return Fail(check.findings().error());
  RHIZOME_RETURN_IF_ERROR(VerifyOpened(*check.store(), *check.findings(), control, *report));
  return report;
} catch (...) {
  return Fail(StatusOfException());
}

}  // namespace rhizome
