#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reliability/harness/history.h"
#include "rhizome/file_system.h"

namespace rhizome::testing {

/// A crash of a history: the operation that it precedes, what the disk did to unsynced changes, and
/// the seed of its random choices.
struct Crash {
  const History* history = nullptr;
  const FakeCrashPoint* point = nullptr;
  FakeFileSystem::CrashMode mode = FakeFileSystem::CrashMode::kDropUnsynced;
  std::uint64_t seed = 0;

  FakeImage Image() const;
};

/// Checks a store after a crash. A reader sees one of the states [acknowledged, begun] of the
/// history; an open for writing sees the same, removes the leftovers of the crash, and can write;
/// afterwards verify finds neither damage nor leftovers.
class CrashCheck {
 public:
  CrashCheck(const History& history, int acknowledged, int begun)
      : history_(history), acknowledged_(acknowledged), begun_(begun) {}

  /// `verify_first`: verify the store before the recovery, too. `recovery` receives the crash
  /// points of the open for writing; crashes there must leave the state `found`. Returns what is
  /// wrong, or nullopt.
  std::optional<std::string> Run(const FakeImage& after, bool verify_first,
                                 std::vector<FakeCrashPoint>* recovery = nullptr);

  /// Returns the state that was found.
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
