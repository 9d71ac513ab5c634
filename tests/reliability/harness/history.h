#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reliability/harness/rocks_disk.h"
#include "rhizome/storage/store.h"

namespace rhizome::testing {

/// Where every history keeps its store.
inline const Path kStorePath = "/data/g.rz";

/// What happened to a store, as an oracle outside of it knows: state i is what a reader saw when
/// step i had returned (0: before the first).
struct History {
  std::string name;
  std::vector<std::string> states;     ///< descriptions
  std::vector<FakeCrashPoint> points;  ///< before each operation, and at the end
};

/// Runs the steps of a history and keeps the oracle.
class Recorder {
 public:
  /// From now on the disk's operations are crash points.
  Recorder(std::string name, StoreDisk& disk);

  /// Only counts.
  Recorder() = default;

  /// Does a step, which is acknowledged when it returns OK: from then on it must survive, and all
  /// steps before it with it. One that is not `durable` (sync = false) may be lost, but only
  /// together with every later one.
  Status Step(const std::function<Status()>& step, bool durable = true);

  Result<History> Finish();

  /// What a new reader saw after the last step; nothing where only counts are kept.
  std::string seen() const { return history_.states.empty() ? "" : history_.states.back(); }

  /// Steps that must survive a power cut now.
  int acknowledged() const { return acknowledged_; }

  /// The step that fails must be the last one of its handle: scenarios try another and complain.
  void ExpectFailStop() { fail_stop_ = true; }
  bool expects_fail_stop() const { return fail_stop_; }
  void Complain(std::string what) { complaint_ = std::move(what); }
  const std::string& complaint() const { return complaint_; }

  /// Steps that returned OK, and those that were begun.
  int done() const { return done_; }
  int begun() const { return begun_; }

 private:
  Status Look();
  StoreDisk* disk_ = nullptr;
  History history_;
  Status broken_;
  int acknowledged_ = 0;
  int begun_ = 0;
  int done_ = 0;
  bool fail_stop_ = false;
  std::string complaint_;
};

/// A history that can be run any number of times.
struct Scenario {
  std::string name;

  /// Makes what is there before the first recorded operation.
  std::function<Status(StoreDisk&)> prepare;

  /// The steps, on whatever disk: also with faults.
  std::function<Status(StoreDisk&, Recorder&)> run;
};

Result<History> Record(const Scenario& scenario);

/// All of them: ingestion, updates, arrays, compaction, attributes, publishing.
const std::vector<Scenario>& Scenarios();

/// Ingests the small graph that every scenario begins with.
Status IngestSmall(FileSystem& fs);

/// One more vertex, durable: whatever a crash left must not be in the way.
Status WriteOneMore(Store& store);

/// What processes beside each other owe each other: a second writer is refused, and a reader goes
/// on seeing what it saw while writers change and drop arrays and compact. Returns what is wrong.
std::optional<std::string> CheckSharing();

}  // namespace rhizome::testing
