#include "reliability/harness/crash_check.h"

#include <fmt/format.h>

#include "reliability/harness/description.h"
#include "rhizome/maintenance.h"
#include "rhizome/store.h"
#include "testing/fake_file_state.h"

namespace rhizome::testing {

FakeImage Crash::Image() const {
  FakeImage image{CopyTree(point->image.root)};
  CrashTree(*image.root, mode, seed);
  return image;
}

namespace {

/// Removes the line with the hash of the commits.
std::string WithoutCommits(std::string description) {
  const std::size_t at = description.find("\ncommits ");
  if (at != std::string::npos) description.erase(at, description.find('\n', at + 1) - at);
  return description;
}

/// Returns whether a reader who saw `seen` saw state `state`, possibly with unused rows.
bool IsState(const History& history, int state, const std::string& seen) {
  const std::string& wanted = history.states[static_cast<std::size_t>(state)];
  if (wanted == seen) return true;
  return history.unused_rows.contains(state) && WithoutCommits(wanted) == WithoutCommits(seen);
}

}  // namespace

std::optional<std::string> CrashCheck::Find(const Result<std::string>& seen) {
  if (!seen) return "cannot be read: " + seen.error().ToString();
  for (int state = begun_; state >= acknowledged_; --state) {
    if (!IsState(history_, state, *seen)) continue;
    found_ = state;
    return std::nullopt;
  }
  for (std::size_t state = 0; state < history_.states.size(); ++state) {
    if (history_.states[state] == *seen)
      return fmt::format("has state {}, but {} to {} are allowed", state, acknowledged_, begun_);
  }
  return "has a state that never was:\n" + *seen;
}

std::optional<std::string> CrashCheck::Verify(FileSystem& fs, bool recovered) const {
  const auto report = VerifyStore(fs, kStorePath, JobControl());
  if (none() && !recovered && !report && report.error().code() == StatusCode::kNotFound)
    return std::nullopt;
  if (!report) return "cannot be verified: " + report.error().ToString();
  if (!report->ok()) return "verify: " + report->verdict().ToString();
  if (recovered && !report->orphans.empty()) return "rubbish is left: " + report->orphans[0];
  return std::nullopt;
}

std::optional<std::string> CrashCheck::Recover(StoreDisk& disk,
                                               std::vector<FakeCrashPoint>* recovery) {
  if (recovery != nullptr) disk.RecordCrashPoints();
  const auto store = Store::Open(disk, kStorePath, Store::Mode::kWrite);
  if (recovery != nullptr) *recovery = disk.TakeCrashPoints();
  if (!store && none() && store.error().code() == StatusCode::kNotFound) {
    const Status again = IngestSmall(disk);
    return again.ok() ? std::nullopt : std::optional("ingesting again fails: " + again.ToString());
  }
  if (!store) return "cannot be opened for writing: " + store.error().ToString();
  const int before = found_;
  if (auto wrong = Find(Describe(**store))) return "after recovery: " + *wrong;
  const auto text = [&](int state) { return history_.states[static_cast<std::size_t>(state)]; };
  if (text(before) != text(found_))
    return fmt::format("state {} became {} by recovery", before, found_);
  const Status more = WriteOneMore(**store);
  return more.ok() ? std::nullopt : std::optional("writing on fails: " + more.ToString());
}

std::optional<std::string> CrashCheck::Run(const FakeImage& after, bool verify_first,
                                           std::vector<FakeCrashPoint>* recovery) {
  StoreDisk disk(after);
  if (auto wrong = Find(Describe(disk, kStorePath))) return wrong;
  if (verify_first) {
    if (auto wrong = Verify(disk, /*recovered=*/false)) return wrong;
  }
  if (auto wrong = Recover(disk, recovery)) return wrong;
  return Verify(disk, /*recovered=*/true);
}

}  // namespace rhizome::testing
