// Runs RunFaults: records the disk operations of an undisturbed run, lists the faults (operation,
// error, once or from then on), and on each CPU takes the next one, runs the scenario with it
// (RunOn) and checks the store that it leaves.

#include "reliability/faults/fault_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "reliability/harness/crash_check.h"
#include "reliability/harness/fault_kinds.h"
#include "reliability/harness/process.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"

namespace rhizome::testing {
namespace {

constexpr std::size_t kDrawnErrors = 4;  // besides EIO, for each operation

struct Fault {
  std::uint64_t operation = 0;  ///< counted from the scenario's first
  int error = 0;
  bool sticky = false;
};

class FaultRun {
 public:
  FaultRun(const Scenario& scenario, const History& history, const FaultPlan& plan)
      : scenario_(scenario), history_(history), plan_(plan) {
    StoreDisk disk;
    wrong_ = Prepare(disk);
    prepared_ = disk.Image();
    const std::uint64_t before = disk.operation_count();
    if (!wrong_) wrong_ = RunOn(disk, nullptr).second;
    trace_ = disk.Trace();
    trace_.erase(trace_.begin(), trace_.begin() + static_cast<std::ptrdiff_t>(before));
    for (std::uint64_t at = plan.seed % plan.stride; at < trace_.size(); at += plan.stride) {
      if (trace_[at].find(plan.at) == std::string::npos) continue;
      for (const int error : plan.only.empty() ? FaultKinds(trace_[at], at, plan.seed, kDrawnErrors)
                                               : AllFaultKinds(trace_[at]))
        for (const bool sticky : {false, true}) faults_.push_back({at, error, sticky});
    }
  }

  FaultCounts Run() {
    if (wrong_) {
      Fail("undisturbed", *wrong_);
      const MutexLock lock(mutex_);
      return counts_;
    }
    OnAllProcessors([this] { Work(); });
    const MutexLock lock(mutex_);
    return counts_;
  }

 private:
  std::optional<std::string> Prepare(StoreDisk& disk) {
    Status status = CreateDirectories(disk, kStorePath.parent_path());
    if (status.ok()) status = scenario_.prepare(disk);
    if (status.ok()) return std::nullopt;
    return "cannot be prepared: " + status.ToString();
  }

  /// Runs the scenario. Returns its status, and what is wrong with the store that it leaves.
  std::pair<Status, std::optional<std::string>> RunOn(StoreDisk& disk, const Fault* fault) {
    const std::uint64_t at = fault == nullptr ? 0 : disk.operation_count() + fault->operation;
    if (fault != nullptr) disk.FailAt(at, fault->error, fault->sticky);
    Recorder recorder;
    // Threads may order operations in another way than in the undisturbed run.
    const auto failed = [&disk, at] {
      const std::vector<std::string> trace = disk.Trace();
      return at < trace.size() ? trace[at] : std::string();
    };
    if (fault != nullptr) recorder.ExpectFailStop([&] { return IsOfACommit(failed()); });
    const Status status = scenario_.run(disk, recorder);
    disk.ClearFailures();
    if (disk.lock_count() != 0) return {status, "locks are still held when all is closed"};
    // The power was not cut, so unsynced changes exist, too.
    const int last = static_cast<int>(history_.states.size()) - 1;
    if (status.ok() && recorder.done() != last) return {status, "ended early without an error"};
    if (!status.ok() && fault != nullptr && fault->error == FakeFileSystem::kShortRead)
      return {status, "a short read, which is none, is an error"};
    if (status.code() == StatusCode::kCorruption && fault != nullptr && fault->error > 0)
      return {status, "a fault is taken for damage"};
    if (!recorder.complaint().empty()) return {status, recorder.complaint()};
    const int begun = std::min(recorder.begun(), last);
    CrashCheck check(history_, recorder.done(), begun);
    auto wrong = check.Run(disk.ImageAfterCrash(FakeFileSystem::CrashMode::kKeepUnsynced, 0),
                           /*verify_first=*/false);
    if (wrong || fault == nullptr || !failed().starts_with("sync")) return {status, wrong};
    // Changes that a failed sync left unsynced must not have been acknowledged.
    CrashCheck cut(history_, recorder.acknowledged(), begun);
    wrong = cut.Run(disk.ImageAfterCrash(FakeFileSystem::CrashMode::kDropUnsynced, 0),
                    /*verify_first=*/false);
    if (wrong) wrong = "after a power cut: " + *wrong;
    return {status, wrong};
  }

  /// Returns whether an error in this operation must make the handle refuse all later writes.
  static bool IsOfACommit(const std::string& operation) {
    const bool writes = operation.starts_with("append ") || operation.starts_with("sync ");
    return writes &&
           (operation.ends_with(".log") || (operation.find("/MANIFEST-") != std::string::npos &&
                                            operation.find("/catalog/") == std::string::npos));
  }

  bool Enough() {
    const MutexLock lock(mutex_);
    return plan_.stop_at_first && counts_.failures > 0;
  }

  void Work() {
    for (std::size_t at = next_++; at < faults_.size() && !Enough(); at = next_++) {
      const Fault& fault = faults_[at];
      const std::string name = fmt::format("{}:{}:{}:{}", scenario_.name, fault.operation,
                                           fault.error, fault.sticky ? 1 : 0);
      if (!plan_.only.empty() && plan_.only != name) continue;
      StoreDisk disk(prepared_);
      const auto [status, wrong] = RunOn(disk, &fault);
      if (wrong)
        Fail(name, fmt::format("{}: {} (the history ended with {})", trace_[fault.operation],
                               *wrong, status.ToString()));
      const MutexLock lock(mutex_);
      ++counts_.injected;
      if (!status.ok()) ++counts_.refused;
    }
  }

  void Fail(const std::string& name, const std::string& wrong) {
    const MutexLock lock(mutex_);
    if (++counts_.failures > 20) return;
    std::printf("RHIZOME_FAULT=%s: %s\n", name.c_str(), wrong.c_str());
    std::fflush(stdout);
  }

  const Scenario& scenario_;
  const History& history_;
  const FaultPlan& plan_;
  std::vector<std::string> trace_;  // of the undisturbed run
  std::optional<std::string> wrong_;
  FakeImage prepared_;
  std::vector<Fault> faults_;
  std::atomic<std::size_t> next_{0};
  Mutex mutex_;
  FaultCounts counts_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace

FaultCounts RunFaults(const Scenario& scenario, const History& history, const FaultPlan& plan) {
  PrepareProcess();
  return FaultRun(scenario, history, plan).Run();
}

}  // namespace rhizome::testing
