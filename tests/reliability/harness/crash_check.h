#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reliability/harness/history.h"

namespace rhizome::testing {

/// A crash of a history: before which operation, what the disk did to what was not synced, and the
/// number that it chose by.
struct Crash {
  const History* history = nullptr;
  const FakeCrashPoint* point = nullptr;
  FakeFileSystem::CrashMode mode = FakeFileSystem::CrashMode::kDropUnsynced;
  std::uint64_t seed = 0;

  FakeImage Image() const;
};

/// What a store that went through a crash must keep: a reader sees one of the states
/// [acknowledged, begun] of the oracle, an open for writing sees the same, clears the crash's
/// rubbish away and can write on, and verify finds neither damage nor rubbish afterwards.
class CrashCheck {
 public:
  CrashCheck(const History& history, int acknowledged, int begun)
      : history_(history), acknowledged_(acknowledged), begun_(begun) {}

  /// `verify_first`: finds verify no damage before the recovery, too? `recovery`: where to put the
  /// crash points of the open for writing; crashes there have to leave the state `found`.
  /// Returns what is wrong; nothing if all is well.
  std::optional<std::string> Run(const FakeImage& after, bool verify_first,
                                 std::vector<FakeCrashPoint>* recovery = nullptr);

  /// The state that was found.
  int found() const { return found_; }

 private:
  bool none() const { return history_.states[static_cast<std::size_t>(found_)] == "none"; }
  std::optional<std::string> Find(const Result<std::string>& seen);
  std::optional<std::string> Verify(FileSystem& fs, bool recovered) const;
  std::optional<std::string> Recover(StoreDisk& disk, std::vector<FakeCrashPoint>* recovery);

  const History& history_;
  const int acknowledged_;
  const int begun_;
  int found_ = -1;
};

}  // namespace rhizome::testing
