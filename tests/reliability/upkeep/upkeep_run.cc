#include "reliability/upkeep/upkeep_run.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <cstdio>

#include "reliability/harness/fault_kinds.h"
#include "reliability/harness/process.h"
#include "rhizome/status.h"
#include "storage/base/mutex.h"

namespace rhizome::testing {
namespace {

using CrashMode = FakeFileSystem::CrashMode;

/// One fault or crash of an upkeep operation.
struct Case {
  std::string name;
  std::function<std::optional<std::string>(UpkeepCounts&)> run;
};

UpkeepCounts RunCases(const std::vector<Case>& cases, const std::string& only) {
  PrepareProcess();
  std::atomic<std::size_t> next{0};
  Mutex mutex;
  UpkeepCounts counts;
  OnAllProcessors([&] {
    for (std::size_t at = next++; at < cases.size(); at = next++) {
      if (!cases[at].name.starts_with(only)) continue;
      UpkeepCounts one{.cases = 1};
      const auto wrong = cases[at].run(one);
      const MutexLock lock(mutex);
      counts.cases += one.cases;
      counts.refused += one.refused;
      if (!wrong || ++counts.failures > 20) continue;
      std::printf("RHIZOME_UPKEEP='%s': %s\n", cases[at].name.c_str(), wrong->c_str());
      std::fflush(stdout);
    }
  });
  return counts;
}

std::optional<std::string> Check(const Upkeep& upkeep, StoreDisk& disk, const Status& ended) {
  if (disk.lock_count() != 0) return "locks are still held";
  auto wrong = upkeep.check(disk, ended);
  if (wrong) *wrong += fmt::format(" (it ended with {})", ended.ToString());
  return wrong;
}

std::optional<std::string> RunFault(const Upkeep& upkeep, std::uint64_t operation, int error,
                                    bool sticky, UpkeepCounts& counts) {
  StoreDisk disk(upkeep.before);
  disk.FailAt(disk.operation_count() + operation, error, sticky);
  std::string wrong;
  const Status ended = upkeep.run(disk, wrong);
  disk.ClearFailures();
  if (!ended.ok()) ++counts.refused;
  if (!wrong.empty()) return wrong;
  if (upkeep.sound && error > 0 && ended.code() == StatusCode::kCorruption)
    return "a fault is taken for damage: " + ended.ToString();
  if (upkeep.sound && error == FakeFileSystem::kShortRead && !ended.ok())
    return "a short read, which is none, is an error: " + ended.ToString();
  return Check(upkeep, disk, ended);
}

}  // namespace

UpkeepCounts RunUpkeepFaults(const Upkeep& upkeep, const UpkeepPlan& plan) {
  StoreDisk disk(upkeep.before);
  const std::uint64_t first = disk.Trace().size();
  std::string wrong;
  const Status undisturbed = upkeep.run(disk, wrong);
  if (undisturbed.ok() && wrong.empty()) wrong = Check(upkeep, disk, undisturbed).value_or("");
  if (!undisturbed.ok() || !wrong.empty()) {
    std::printf("%s, undisturbed: %s %s\n", upkeep.name.c_str(), undisturbed.ToString().c_str(),
                wrong.c_str());
    return {.cases = 1, .failures = 1};
  }
  const std::vector<std::string> trace = disk.Trace();
  std::vector<Case> cases;
  for (std::uint64_t at = plan.seed % plan.stride; first + at < trace.size(); at += plan.stride) {
    const std::string& what = trace[first + at];
    for (const int error :
         plan.only.empty() ? FaultKinds(what, at, plan.seed, 1) : AllFaultKinds(what)) {
      for (const bool sticky : {false, true}) {
        cases.push_back({fmt::format("{}:{}:{}:{}", upkeep.name, at, error, sticky ? 1 : 0),
                         [&upkeep, &what, at, error, sticky](UpkeepCounts& counts) {
                           auto wrong_then = RunFault(upkeep, at, error, sticky, counts);
                           if (wrong_then) wrong_then = what + ": " + *wrong_then;
                           return wrong_then;
                         }});
      }
    }
  }
  return RunCases(cases, plan.only);
}

UpkeepCounts RunUpkeepCrashes(const Upkeep& upkeep, const UpkeepPlan& plan) {
  constexpr std::array kModes = {CrashMode::kDropUnsynced, CrashMode::kKeepUnsynced,
                                 CrashMode::kRandom, CrashMode::kNamesUndone,
                                 CrashMode::kNamesReordered};
  StoreDisk disk(upkeep.before);
  disk.RecordCrashPoints();
  std::string wrong;
  const Status undisturbed = upkeep.run(disk, wrong);
  const std::vector<FakeCrashPoint> points = disk.TakeCrashPoints();
  std::vector<Case> cases;
  for (std::uint64_t at = plan.seed % plan.stride; at < points.size(); at += plan.stride) {
    for (const CrashMode mode : kModes) {
      cases.push_back({fmt::format("{}:{}:{}", upkeep.name, at, static_cast<int>(mode)),
                       [&upkeep, &point = points[at], mode, seed = plan.seed](UpkeepCounts&) {
                         StoreDisk after(point.image);
                         after.Crash(mode, seed);
                         auto wrong_then =
                             Check(upkeep, after, Status::Interrupted("the power was cut"));
                         if (wrong_then) wrong_then = "before " + point.what + ": " + *wrong_then;
                         return wrong_then;
                       }});
    }
  }
  UpkeepCounts counts = RunCases(cases, plan.only);
  if (!undisturbed.ok() || !wrong.empty()) ++counts.failures;
  return counts;
}

}  // namespace rhizome::testing
