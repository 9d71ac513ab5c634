// Runs RunCrashes: lists all crashes of a history (operation, mode, seed), and on each CPU takes
// the next one, makes the disk after it, checks recovery (Check) and, for some, crashes of the
// recovery (CheckNested). Trees that were already checked with the same promises are skipped.

#include "reliability/crash/crash_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <random>
#include <set>

#include "reliability/harness/crash_check.h"
#include "reliability/harness/process.h"
#include "rhizome/types.h"
#include "storage/base/mutex.h"

namespace rhizome::testing {
namespace {

using Mode = FakeFileSystem::CrashMode;

/// A crash mode, and whether it draws random numbers.
struct ModeKind {
  Mode mode;
  bool draws;
};
constexpr std::array<ModeKind, 8> kModes = {{{Mode::kDropUnsynced, false},
                                             {Mode::kKeepUnsynced, false},
                                             {Mode::kRandom, true},
                                             {Mode::kTornLast, true},
                                             {Mode::kZeroLength, false},
                                             {Mode::kNamesUndone, false},
                                             {Mode::kNamesReordered, true},
                                             {Mode::kHoles, true}}};

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15U + b;
  x = (x ^ x >> 31U) * 0xBF58476D1CE4E5B9U;
  return (x ^ x >> 29U) % 1'000'000;  // short enough to type
}

std::string NameOf(const Crash& crash) {
  return fmt::format("{}:{}:{}", crash.point->operation, static_cast<int>(crash.mode), crash.seed);
}

std::vector<Crash> ListCrashes(const History& history, const std::vector<FakeCrashPoint>& points,
                               const CrashPlan& plan, int draws) {
  std::vector<Crash> crashes;
  for (const FakeCrashPoint& point : points) {
    for (const ModeKind& kind : kModes) {
      for (int draw = 0; draw < (kind.draws ? draws : 1); ++draw) {
        const std::uint64_t seed =
            kind.draws ? Mix(plan.seed, point.operation * 64 + std::uint64_t(draw)) : 0;
        crashes.push_back({&history, &point, kind.mode, seed});
      }
    }
  }
  return crashes;
}

/// One run, in which several threads process a list of crashes.
class CrashRun {
 public:
  CrashRun(const History& history, const CrashPlan& plan)
      : history_(history),
        plan_(plan),
        crashes_(ListCrashes(history, history.points, plan, plan.draws)) {
    // At the end of a history most steps are acknowledged, so crashes there are most likely to
    // fail.
    if (plan.stop_at_first) std::reverse(crashes_.begin(), crashes_.end());
    if (plan.only.empty() && plan.most_crashes < crashes_.size()) {
      std::shuffle(crashes_.begin(), crashes_.end(), std::mt19937_64(plan.seed));
      crashes_.resize(plan.most_crashes);
    }
  }

  CrashCounts Run() {
    OnAllProcessors([this] { Work(); });
    const MutexLock lock(mutex_);
    return {history_.points.size(), states_.size(), recoveries_.size(), failures_};
  }

 private:
  // A tree that two crashes leave is counted once, but is checked for each set of promised steps.
  using Key = std::tuple<Hash128, int, int>;

  bool Enough() {
    const MutexLock lock(mutex_);
    return plan_.stop_at_first && failures_ > 0;
  }

  void Work() {
    for (std::size_t at = next_++; at < crashes_.size() && !Enough(); at = next_++) {
      const Crash& crash = crashes_[at];
      const std::string name = fmt::format("{}:{}", history_.name, NameOf(crash));
      if (!plan_.only.empty() && plan_.only != name && !plan_.only.starts_with(name + ":"))
        continue;
      Check(crash, name);
    }
  }

  void Check(const Crash& crash, const std::string& name) {
    const FakeCrashPoint& point = *crash.point;
    const FakeImage image = crash.Image();
    const Hash128 hash = image.Hash();
    {
      const MutexLock lock(mutex_);
      states_.insert(hash);
      if (!checked_.emplace(hash, point.acknowledged, point.begun).second) return;
    }
    const bool only = !plan_.only.empty();
    const auto number =
        std::to_integer<unsigned>(hash[0]) * 256U + std::to_integer<unsigned>(hash[1]);
    const bool recovery = only || number % static_cast<unsigned>(plan_.recoveries_one_in) == 0;
    std::vector<FakeCrashPoint> points;
    CrashCheck check(history_, point.acknowledged, point.begun);
    const auto wrong =
        check.Run(image, only || number % static_cast<unsigned>(plan_.verify_one_in) == 0,
                  recovery ? &points : nullptr);
    if (wrong) return Fail(name, point.what, *wrong);
    for (const Crash& nested : ListCrashes(history_, points, plan_, 1))
      CheckNested(nested, name + ":" + NameOf(nested), check.found());
  }

  void CheckNested(const Crash& crash, const std::string& name, int state) {
    if (!plan_.only.empty() && plan_.only != name) return;
    const FakeImage image = crash.Image();
    const Hash128 hash = image.Hash();
    {
      const MutexLock lock(mutex_);
      recoveries_.insert(hash);
      if (!checked_.emplace(hash, state, state).second) return;
    }
    CrashCheck check(history_, state, state);
    if (const auto wrong = check.Run(image, /*verify_first=*/false))
      Fail(name, "recovery: " + crash.point->what, *wrong);
  }

  void Fail(const std::string& name, const std::string& what, const std::string& wrong) {
    const MutexLock lock(mutex_);
    if (++failures_ > 20) return;
    std::printf("RHIZOME_CRASH=%s RHIZOME_TEST_SEED=%llu (%s): %s\n", name.c_str(),
                static_cast<unsigned long long>(plan_.seed), what.c_str(), wrong.c_str());
    std::fflush(stdout);
  }

  const History& history_;
  const CrashPlan& plan_;
  std::vector<Crash> crashes_;
  std::atomic<std::size_t> next_{0};
  Mutex mutex_;
  std::set<Hash128> states_ RHIZOME_GUARDED_BY(mutex_);
  std::set<Hash128> recoveries_ RHIZOME_GUARDED_BY(mutex_);
  std::set<Key> checked_ RHIZOME_GUARDED_BY(mutex_);
  std::uint64_t failures_ RHIZOME_GUARDED_BY(mutex_) = 0;
};

}  // namespace

CrashCounts RunCrashes(const History& history, const CrashPlan& plan) {
  PrepareProcess();
  return CrashRun(history, plan).Run();
}

}  // namespace rhizome::testing
