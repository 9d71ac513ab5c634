#include "reliability/allocation/allocation_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>

#include "reliability/harness/allocation_hook.h"
#include "reliability/harness/crash_check.h"
#include "reliability/harness/process.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"
#include "storage/io/files.h"

namespace rhizome::testing {
namespace {

/// Name of the current case, which repeats it; printed if the program is terminated in the middle.
thread_local char running[128] = "";

[[noreturn]] void EndWithItsName() {
  std::fprintf(stderr, "RHIZOME_ALLOCATION=%s: the program was terminated\n", running);
  std::abort();
}

class AllocationRun {
 public:
  AllocationRun(const Scenario& scenario, const History& history, const AllocationPlan& plan)
      : scenario_(scenario), history_(history), plan_(plan) {}

  AllocationCounts Run() {
    StoreDisk disk;
    Status prepared = CreateDirectories(disk, kStorePath.parent_path());
    if (prepared.ok()) prepared = scenario_.prepare(disk);
    if (!prepared.ok()) {
      Fail("prepare", prepared.ToString());
      const MutexLock lock(mutex_);
      return counts_;
    }
    prepared_ = disk.Image();
    const std::uint64_t asked = CountAllocations();
    stride_ = plan_.stride;
    if (stride_ == 0)
      stride_ = std::max<std::uint64_t>(asked / std::max<std::uint64_t>(plan_.points, 1), 1);
    next_ = plan_.seed % stride_;
    const std::terminate_handler before = std::set_terminate(EndWithItsName);
    OnAllProcessors([&] { Work(asked); });
    std::set_terminate(before);
    const MutexLock lock(mutex_);
    counts_.asked = asked;
    return counts_;
  }

 private:
  // Counts the allocations of an undisturbed run, which works sequentially, like the runs with
  // faults.
  std::uint64_t CountAllocations() {
    std::atomic<std::uint64_t> asked = 0;
    OnAllProcessors([&] {
      StoreDisk disk(prepared_);
      Recorder recorder;
      const AllocationFaults faults(~std::uint64_t{0}, false);
      if (scenario_.run(disk, recorder).ok()) asked = faults.asked();
    });
    return asked;
  }

  void Work(std::uint64_t end) {
    if (!plan_.only.empty()) {
      bool expected = false;
      if (!taken_.compare_exchange_strong(expected, true)) return;
      const std::size_t at = plan_.only.find(':');
      if (plan_.only.substr(0, at) != scenario_.name) return;
      char* rest = nullptr;
      const std::uint64_t number = std::strtoull(plan_.only.c_str() + at + 1, &rest, 10);
      return Check(number, *rest == ':' && rest[1] == '1');
    }
    for (std::uint64_t at = next_.fetch_add(stride_); at < end; at = next_.fetch_add(stride_))
      for (const bool sticky : {false, true}) Check(at, sticky);
  }

  void Check(std::uint64_t fail_at, bool sticky) {
    const std::string name = fmt::format("{}:{}:{}", scenario_.name, fail_at, sticky ? 1 : 0);
    std::snprintf(running, sizeof running, "%s", name.c_str());
    StoreDisk disk(prepared_);
    Recorder recorder;
    Status status;
    bool hit = false;
    {
      const AllocationFaults faults(fail_at, sticky);
      try {
        status = scenario_.run(disk, recorder);
      } catch (const std::exception& error) {
        return Fail(name, fmt::format("'{}' crossed the edge of the library", error.what()));
      }
      hit = faults.failed() > 0;
    }
    if (!hit) return;
    if (const auto wrong = LookAt(disk, recorder, status))
      Fail(name, fmt::format("{} (the history ended with {})", *wrong, status.ToString()));
    const MutexLock lock(mutex_);
    ++counts_.injected;
    counts_.refused += status.ok() ? 0 : 1;
  }

  std::optional<std::string> LookAt(const StoreDisk& disk, const Recorder& recorder,
                                    const Status& status) const {
    const int last = static_cast<int>(history_.states.size()) - 1;
    if (disk.lock_count() != 0) return "locks are still held when all is closed";
    if (status.ok() && recorder.done() != last) return "ended early without an error";
    if (!status.ok() && status.code() != StatusCode::kOutOfMemory) return "not out of memory";
    if (!recorder.complaint().empty()) return recorder.complaint();
    CrashCheck check(history_, recorder.done(), std::min(recorder.begun(), last));
    return check.Run(disk.ImageAfterCrash(FakeFileSystem::CrashMode::kKeepUnsynced, 0),
                     /*verify_first=*/false);
  }

  void Fail(const std::string& name, const std::string& wrong) {
    const MutexLock lock(mutex_);
    if (++counts_.failures > 20) return;
    std::printf("RHIZOME_ALLOCATION=%s: %s\n", name.c_str(), wrong.c_str());
    std::fflush(stdout);
  }

  const Scenario& scenario_;
  const History& history_;
  const AllocationPlan& plan_;
  FakeImage prepared_;
  std::uint64_t stride_ = 1;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> taken_{false};
  Mutex mutex_;
  AllocationCounts counts_ RHIZOME_GUARDED_BY(mutex_);
};

}  // namespace

AllocationCounts RunAllocations(const Scenario& scenario, const History& history,
                                const AllocationPlan& plan) {
  PrepareProcess();
  return AllocationRun(scenario, history, plan).Run();
}

}  // namespace rhizome::testing
